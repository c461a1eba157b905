"""A worker that was stopped for three leases wakes up: nobody believes it, and no slot is free."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from headway.domain.execution import Execution, ExecutionState
from headway.domain.work_queue import NewEntry, Source
from headway.store import work_queue
from tests.builders import eventually
from tests.scenarios.deployment import Deployment
from tests.scenarios.test_lost_workers import COMPLETED, FAILED, LEASE, SHORT, living, runs

RUNNING = ExecutionState.IN_PROGRESS


@pytest.mark.full
@pytest.mark.story(1, 35)
def test_a_worker_stopped_for_three_leases_is_not_believed_and_frees_no_slot(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group has one slot, and two manifests wait for it all the time.

    Usually the lost work gets the slot back; a dispatcher that listed the waiting entries just
    before the sweep gives it to the next in line, which is as good.
    """
    monkeypatch.setenv("SCENARIO_CAP", "1")
    zombie, taken = start_one(deployment)
    deployment.start("--only", "worker", jobs=3, settings=SHORT)
    deployment.start("--only", "dispatcher", jobs=3, settings=SHORT)
    eventually(lambda: len(living(deployment)) == 3)

    deployment.freeze(zombie)
    time.sleep(3 * LEASE)  # the pause itself
    deployment.wait_for("start", 2)
    [holder] = running(deployment)
    assert holder.id != taken.id
    deployment.release(taken.id)
    zombie.send_signal(signal.SIGCONT)
    eventually(lambda: refusals(deployment) == 1)
    eventually(lambda: len(living(deployment)) == 3)

    let_dispatchers_look(deployment)
    assert [one.id for one in running(deployment)] == [holder.id], "the only slot is taken"
    assert deployment.evidence("end")[str(taken.external_id)] == 1, "the zombie's own body"
    deployment.release()
    deployment.wait_until_completed(4)

    lost, done = runs(deployment, str(taken.external_id))
    assert (lost.id, lost.state, lost.lost) == (taken.id, FAILED, True)
    assert (done.entry_id, done.state, done.crashes) == (taken.entry_id, COMPLETED, 1)
    assert deployment.states() == {COMPLETED: 4, FAILED: 1}, "one completion of each, one ad hoc"
    assert refusals(deployment) == 1 and "server.dead" in deployment.log()
    assert one_at_a_time(deployment, but=taken.id)
    assert zombie.poll() is None
    deployment.stop(zombie)


def start_one(deployment: Deployment) -> tuple[subprocess.Popen[bytes], Execution]:
    """A process that runs the first job, as the group's cap has it."""
    process = deployment.start(jobs=3, settings=SHORT)
    deployment.wait_for("start", 1)
    [taken] = running(deployment)
    return process, taken


def running(deployment: Deployment) -> list[Execution]:
    return deployment.history.executions.all(states=[RUNNING])


def refusals(deployment: Deployment) -> int:
    return deployment.log().count(" refused ")


def let_dispatchers_look(deployment: Deployment) -> None:
    """Whatever could be dispatched beside this entry has been when it is over."""
    with deployment.store.writing() as tx:
        [entry] = work_queue.enqueue(tx, [NewEntry("nothing", Source.AD_HOC, "null")])
    eventually(
        lambda: any(
            one.entry_id == entry for one in deployment.history.executions.all(states=[COMPLETED])
        )
    )


def one_at_a_time(deployment: Deployment, but: int) -> bool:
    """Whether of all other runs the next one began when the last had ended."""
    lines = [line.split() for line in (deployment.folder / "evidence").read_text().splitlines()]
    others = [what for _, execution_id, what in lines if int(execution_id) != but]
    return others == ["start", "end"] * (len(others) // 2)


@pytest.mark.full
@pytest.mark.parametrize("workflow", ["in_loop", "in_thread"])
def test_a_worker_that_slept_before_a_body_does_not_begin_it(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, workflow: str
) -> None:
    """It had claimed the run, which another worker has ended and run since."""
    monkeypatch.setenv("SCENARIO_WORKFLOW", workflow)
    sleeper = deployment.start(settings=SHORT, app="sleepers:hw")
    os.waitpid(sleeper.pid, os.WUNTRACED)
    other = deployment.start(settings=SHORT, app="sleepers:hw")
    deployment.wait_until_completed(1)

    sleeper.send_signal(signal.SIGCONT)
    eventually(lambda: refusals(deployment) == 1)

    assert deployment.evidence("start") == {"job": 1}
    assert deployment.states() == {COMPLETED: 1, FAILED: 1}
    deployment.stop(sleeper, other)
