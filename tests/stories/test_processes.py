"""Stories that need processes of their own: busy ones, locked out ones, many at once."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import psycopg
import pytest

from headway import Headway, Run
from headway.domain.execution import ExecutionState
from headway.domain.work_queue import NewEntry, Source
from headway.history import History
from headway.service import Service
from headway.store import work_queue
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.tables import server
from headway.wakeups import Role
from tests.builders import Recorder, eventually
from tests.scenarios.deployment import Deployment
from tests.scenarios.fleet import FORKS, Fleet, serve
from tests.store.factories import rows_of
from tests.store.test_contention import work_through

TWO_AT_A_TIME = {"HEADWAY_WORKER_COUNT": "2"}
LEASE = 6.0  # so long that a busy machine alone makes nobody late
JOBS = 15
PROCESSES = 8


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    store = Store(database_url)
    migrate(store)
    yield store
    store.close()


@pytest.fixture
def fleet(database_url: str, store: Store, tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(database_url, tmp_path)
    yield fleet
    fleet.close()


def calculate(run: Run) -> None:
    """All of a processor, and of the interpreter, until it is told that this was long enough."""
    folder = Path(os.environ["STORY_FOLDER"])
    (folder / f"started-{run.execution_id}").touch()
    while not (folder / "released").exists():
        sum(number * number for number in range(20_000))


def calculating(url: str, folder: Path, lease: float | None) -> Headway:
    os.environ["STORY_FOLDER"] = str(folder)
    app = Headway("busy", database_url=url, server_lease=lease, worker_count=1)
    app.workflow("calculate")(calculate)
    return app


def work_hard(lease: float | None, url: str, log: Path) -> None:
    serve(calculating(url, log.parent, lease), Role.DISPATCHER, Role.WORKER, log=log)


def enqueue(store: Store, workflow: str) -> None:
    with store.writing() as tx:
        work_queue.enqueue(tx, [NewEntry(workflow, Source.AD_HOC, "null")])


@pytest.mark.full
@pytest.mark.story(9, 38)
@pytest.mark.parametrize(
    ("lease", "seconds"),
    [
        pytest.param(LEASE, 4 * LEASE, id="four short leases"),
        pytest.param(None, 60.0, id="a minute by default", marks=pytest.mark.long),
    ],
)
def test_a_job_that_takes_a_whole_processor_for_long_starts_once(
    fleet: Fleet, store: Store, lease: float | None, seconds: float
) -> None:
    busy, idle = (fleet.start(partial(work_hard, lease)) for _ in range(2))
    eventually(lambda: len(rows_of(store, server)) == 2)
    living = server_ids(store)
    enqueue(store, "calculate")
    eventually(lambda: len(starts(fleet)) == 1)
    time.sleep(seconds)  # the long run itself; nothing is waited for
    [running] = History(store).executions.all()
    assert server_ids(store) == living, "nobody was buried"
    (fleet.log.parent / "released").touch()
    eventually(lambda: states(store) == [ExecutionState.COMPLETED])

    assert starts(fleet) == [f"started-{running.id}"], "nobody else has started it"
    assert [one.crashes for one in History(store).executions.all()] == [0]
    assert busy.is_alive() and idle.is_alive()


def server_ids(store: Store) -> set[str]:
    return {row["id"] for row in rows_of(store, server)}


def starts(fleet: Fleet) -> list[str]:
    return sorted(path.name for path in fleet.log.parent.glob("started-*"))


def states(store: Store) -> list[ExecutionState]:
    return [one.state for one in History(store).executions.all()]


@pytest.mark.story(38)
def test_a_locked_table_kills_nobody(postgres_url: str, tmp_path: Path) -> None:
    """Tables of work for longer than a lease, that of the leases for a third of one."""
    app = calculating(postgres_url, tmp_path, LEASE)
    events = Recorder(app.observer)
    store = Store(postgres_url)
    migrate(store)
    service = Service(app)
    service.start()
    try:
        owner = service.owner
        enqueue(store, "calculate")
        eventually(lambda: bool(list(tmp_path.glob("started-*"))))
        locked_out(postgres_url, "headway_execution, headway_work_queue", LEASE * 1.5)
        locked_out(postgres_url, "headway_server", LEASE / 3)
        (tmp_path / "released").touch()
        events.wait_for("execution.completed")
        assert service.owner == owner
    finally:
        service.request_stop(grace=0)
        service.stop()
        store.close()
    assert events.named("server.dead") == []
    assert len(list(tmp_path.glob("started-*"))) == 1


@pytest.mark.full
@pytest.mark.story(38)
@pytest.mark.parametrize("tables", ["headway_server", "headway_execution"])
def test_a_table_locked_for_five_seconds_kills_nobody(
    postgres_deployment: Deployment, tables: str
) -> None:
    """Real processes with the lease they have by default, some of whose jobs end meanwhile."""
    deployment = postgres_deployment
    processes = [deployment.start(jobs=4, settings=TWO_AT_A_TIME) for _ in range(2)]
    eventually(lambda: len(server_ids(deployment.store)) == 2)
    living = server_ids(deployment.store)
    deployment.wait_for("start", 4)
    first, *_ = deployment.history.executions.all()
    deployment.release(first.id)
    locked_out(deployment.url, tables, 5)
    deployment.release()
    deployment.wait_until_completed(4)
    assert server_ids(deployment.store) == living
    deployment.stop(*processes)

    assert deployment.states() == {ExecutionState.COMPLETED: 4}
    assert {(one.attempt, one.crashes) for one in deployment.history.executions.all()} == {(1, 0)}
    assert set(deployment.evidence("start").values()) == {1}
    for word in ("WorkerLost", "server.dead", "server.buried"):
        assert word not in deployment.log()


def locked_out(url: str, tables: str, seconds: float) -> None:
    """Nobody else gets at these tables for so long."""
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        connection.execute(f"LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE".encode())
        time.sleep(seconds)  # the lock itself


def queue_and_run(url: str, log: Path) -> None:
    """Queue, dispatch, claim and finish as a server does, and read in between."""
    store = Store(url)
    work_through(store, f"worker-{os.getpid()}", JOBS)
    store.close()


@pytest.mark.story(45)
def test_eight_processes_on_one_database_see_no_lock(store: Store, database_url: str) -> None:
    processes: list[ForkServerProcess] = []
    for _ in range(PROCESSES):
        process = FORKS.Process(target=queue_and_run, args=(database_url, Path()), daemon=True)
        process.start()
        processes.append(process)
    for process in processes:
        process.join(60)

    assert [process.exitcode for process in processes] == [0] * PROCESSES, "no error surfaced"
    assert len(states(store)) + len(History(store).queue.all()) == PROCESSES * JOBS
    assert states(store).count(ExecutionState.COMPLETED) > 0


@pytest.mark.full
@pytest.mark.story(47)
def test_four_processes_that_embed_the_same_application_run_each_job_once(
    deployment: Deployment,
) -> None:
    deployment.release()
    processes = [deployment.start(jobs=8) for _ in range(4)]
    eventually(lambda: len(rows_of(deployment.store, server)) == 4)
    deployment.wait_until_completed(8)
    deployment.stop(*processes)

    assert deployment.evidence("start") == {f"job-{number}": 1 for number in range(8)}
    assert deployment.evidence("end") == deployment.evidence("start")
