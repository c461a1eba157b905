"""kill -9, kill -STOP, jobs that take their worker along: nothing is lost, nothing ends twice."""

import signal
import subprocess
import time

import pytest
from sqlalchemy import select

from headway.domain.execution import Execution, ExecutionState
from headway.store.tables import server
from tests.builders import eventually
from tests.postgres_server import PostgresServer
from tests.scenarios.deployment import Deployment

COMPLETED, FAILED = ExecutionState.COMPLETED, ExecutionState.FAILED
HANDED_BACK = ExecutionState.HANDED_BACK
LEASE = 2.0
SWEEP = 2.0
SHORT = {
    "HEADWAY_SERVER_LEASE": f"{LEASE}s",
    "HEADWAY_WORKER_COUNT": "2",
    "HEADWAY_SHUTDOWN_TIMEOUT": "0.1s",
    "HEADWAY_MAX_ACTIVE_JOBS": "none",
}


def names(count: int) -> list[str]:
    return [f"job-{number}" for number in range(count)]


def living(deployment: Deployment) -> list[str]:
    with deployment.store.reading() as tx:
        return list(tx.connection.execute(select(server.c.id)).scalars())


def start_both(deployment: Deployment, jobs: int) -> tuple[subprocess.Popen[bytes], str]:
    """A worker that has taken *jobs*, and one that is idle; returns the busy one and its id."""
    busy = deployment.start(jobs=jobs, settings=SHORT)
    deployment.wait_for("start", 2)
    [owner] = living(deployment)
    deployment.start("--only", "worker", jobs=jobs, settings=SHORT)
    deployment.start("--only", "dispatcher", jobs=jobs, settings=SHORT)
    eventually(lambda: len(living(deployment)) == 3)
    return busy, owner


def runs(deployment: Deployment, external_id: str) -> list[Execution]:
    found = [one for one in deployment.history.executions.all() if one.external_id == external_id]
    return sorted(found, key=lambda one: one.id)


@pytest.mark.story(3, 24)
def test_the_jobs_of_a_killed_worker_start_again_elsewhere(deployment: Deployment) -> None:
    """Those that ran, and those that were on their way to it."""
    busy, owner = start_both(deployment, jobs=2)
    killed_at = time.monotonic()
    busy.kill()
    deployment.wait_for("start", 4)
    waited = time.monotonic() - killed_at
    deployment.release()
    deployment.wait_until_completed(2)

    assert waited < LEASE + SWEEP + 8, "without any timeout of minutes"
    assert deployment.evidence("end") == dict.fromkeys(names(2), 1)
    assert deployment.states() == {COMPLETED: 2, FAILED: 2}
    for name in names(2):
        lost, again = runs(deployment, name)
        assert (lost.state, lost.owner, lost.lost) == (FAILED, owner, True)
        assert again.state is COMPLETED and again.owner != owner
        assert again.entry_id == lost.entry_id, "the same entry"
        assert (again.attempt, again.crashes) == (1, 1)
    assert owner not in living(deployment)


@pytest.mark.full
def test_what_was_dispatched_to_a_killed_worker_is_claimed_by_another(
    deployment: Deployment,
) -> None:
    busy, _ = start_both(deployment, jobs=6)
    busy.kill()
    deployment.release()
    deployment.wait_until_completed(6)

    assert deployment.evidence("end") == dict.fromkeys(names(6), 1)
    assert deployment.states()[COMPLETED] == 6


@pytest.mark.full
@pytest.mark.story(1, 35)
def test_a_stopped_worker_comes_back_as_another_and_its_results_are_refused(
    deployment: Deployment,
) -> None:
    busy, owner = start_both(deployment, jobs=2)
    deployment.freeze(busy)
    deployment.wait_for("start", 4)  # reclaimed, and running on the other worker
    deployment.release()
    deployment.wait_until_completed(2)
    assert deployment.evidence("end") == dict.fromkeys(names(2), 1)

    busy.send_signal(signal.SIGCONT)
    eventually(lambda: " refused " in deployment.log())
    eventually(lambda: len(living(deployment)) == 3)

    assert "server.dead" in deployment.log()
    assert owner not in living(deployment), "it has a new id"
    assert deployment.states() == {COMPLETED: 2, FAILED: 2}
    assert [one.owner for one in deployment.history.executions.all(states=[FAILED])] == [owner] * 2
    assert busy.poll() is None
    deployment.stop(busy)


@pytest.mark.full
@pytest.mark.story(40)
def test_a_job_that_kills_its_worker_becomes_a_dead_letter_and_its_neighbours_finish(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCENARIO_POISON", "1")
    deployment.release()
    deployment.start("--only", "manager", jobs=6, settings=SHORT)
    deployment.start("--only", "dispatcher", jobs=6, settings=SHORT)
    workers = [deployment.start("--only", "worker", jobs=6, settings=SHORT) for _ in range(2)]
    for _ in range(3):
        eventually(lambda: any(worker.poll() is not None for worker in workers))
        [dead] = [worker for worker in workers if worker.poll() is not None]
        workers.remove(dead)
        workers.append(deployment.start("--only", "worker", jobs=6, settings=SHORT))
    eventually(lambda: len(deployment.history.dead_letters.awaiting()) == 1)
    deployment.wait_until_completed(6)

    [letter] = deployment.history.dead_letters.awaiting()
    assert (letter.external_id, letter.reason) == ("poison", "its job killed its worker 3 times")
    poisoned = runs(deployment, "poison")
    assert [one.crashes for one in poisoned] == [0, 1, 2]
    assert {one.lost for one in poisoned} == {True}
    assert set(deployment.evidence("end")) == set(names(6))
    completed = deployment.history.executions.all(states=[COMPLETED])
    assert sorted(str(one.external_id) for one in completed) == names(6)
    assert deployment.history.queue.all() == []
    assert all(worker.poll() is None for worker in workers)


@pytest.mark.full
@pytest.mark.story(4, 17)
@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_of_the_database_reclaims_nothing_from_the_healthy(
    own_server: PostgresServer, on_own_server: Deployment, mode: str
) -> None:
    deployment, patient = on_own_server, SHORT | {"HEADWAY_SERVER_LEASE": "6s"}
    processes = [deployment.start(jobs=4, settings=patient) for _ in range(2)]
    deployment.wait_for("start", 4)
    before = sorted(living(deployment))
    for _ in range(3):
        deployment.store.close()
        own_server.stop(mode)
        own_server.start(durable=True)
        eventually(lambda: renewed_since_restart(deployment, 2))
    assert sorted(living(deployment)) == before
    deployment.release()
    deployment.wait_until_completed(4)
    deployment.stop(*processes)

    assert deployment.states() == {COMPLETED: 4}
    assert deployment.evidence("start") == dict.fromkeys(names(4), 1)
    assert deployment.evidence("end") == dict.fromkeys(names(4), 1)


def renewed_since_restart(deployment: Deployment, count: int) -> bool:
    with deployment.store.reading() as tx:
        [started_at] = tx.connection.exec_driver_sql("SELECT pg_postmaster_start_time()").scalars()
        renewals = tx.connection.execute(select(server.c.renewed_at)).scalars().all()
    return len(renewals) == count and all(one > started_at for one in renewals)


@pytest.mark.full
def test_an_outage_longer_than_the_lease_charges_nobody(
    own_server: PostgresServer, on_own_server: Deployment
) -> None:
    """Jobs go on meanwhile; at the first contact all are dead, and each hands back by itself."""
    deployment = on_own_server
    processes = [deployment.start(jobs=4, settings=SHORT) for _ in range(2)]
    deployment.wait_for("start", 4)
    before = set(living(deployment))
    deployment.store.close()
    own_server.stop()
    time.sleep(LEASE * 1.5)  # the outage itself, nothing is waited for
    assert deployment.evidence("start").total() == 4, "nothing was stopped or begun"
    assert all(process.poll() is None for process in processes)
    own_server.start(durable=True)
    eventually(lambda: len(set(living(deployment)) - before) == 2)
    deployment.release()
    deployment.wait_until_completed(4)
    deployment.stop(*processes)

    assert set(deployment.states()) <= {COMPLETED, HANDED_BACK}
    assert deployment.states()[COMPLETED] == 4
    assert {one.crashes for one in deployment.history.executions.all()} == {0}
