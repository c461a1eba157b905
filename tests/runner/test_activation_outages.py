"""Activations while the database restarts: written once, reported as written, no run fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from headway import Run, every
from headway.domain.execution import Execution, ExecutionState
from headway.domain.work_queue import Source
from headway.runner.cancellation import StopReason
from headway.runner.pool import WorkerPool
from headway.store import activation
from tests.builders import Scene, eventually
from tests.postgres_server import PostgresServer
from tests.runner import isolated_jobs as jobs
from tests.runner.conftest import starting_pools
from tests.runner.isolated_jobs import Place

COMPLETED = ExecutionState.COMPLETED
WAYS = ["sync", "async", "isolated"]


def parent_of(way: str) -> tuple[Callable[..., Any], bool]:
    """A step that waits until it may go on, activates one dependent, and notes the answer."""

    async def act(place: Place, run: Run) -> None:
        place.note("ready")
        while not Path(place.folder, "go").exists():
            await asyncio.sleep(0.01)
        place.note("took", run.activate("later", place))

    steps: dict[str, Callable[..., Any]] = {
        "sync": jobs.activate_when_told,
        "async": act,
        "isolated": jobs.activate_when_told,
    }
    return steps[way], way == "isolated"


def begin(scene: Scene, start_pool: Callable[[], object], folder: Path, way: str = "sync") -> int:
    """Have a run of the parent wait at its activation; returns its id."""
    step, isolated = parent_of(way)
    work = scene.app.workflow("parent", steps=(step,), isolated=isolated)
    later = scene.app.workflow("later", steps=(jobs.note_pid,))
    place = Place(folder=str(folder))
    chain = scene.app.schedule(work, "job", place, every(hours=1))
    chain.include(later, "later", place, dormant=True)
    scene.configure(default_max_retries=0)
    scene.apply()
    scene.manage()
    execution_id = scene.dispatch().dispatched[0]
    start_pool()
    eventually((folder / "ready").exists)
    return execution_id


def go_on(folder: Path) -> None:
    (folder / "go").touch()


def ended(scene: Scene, execution_id: int) -> Execution:
    scene.events.wait_for("execution.completed", execution_id=execution_id)
    return scene.execution(execution_id)


def activations(scene: Scene) -> int:
    return sum(one.source == Source.ACTIVATION for one in scene.history.queue.all())


@pytest.fixture
def restarted(own_server: PostgresServer) -> Iterator[Scene]:
    """A scene on a server that the test may stop."""
    with Scene(own_server.url(), virtual_time=False) as scene:
        yield scene


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_of_the_database_is_waited_for(
    own_server: PostgresServer, restarted: Scene, tmp_path: Path, way: str, mode: str
) -> None:
    scene = restarted
    with starting_pools(scene) as start_pool:
        execution_id = begin(scene, start_pool, tmp_path, way)
        scene.store.close()
        own_server.stop(mode)
        go_on(tmp_path)
        scene.events.wait_for("loop.failed", count=2)
        assert not (tmp_path / "took").exists()
        own_server.start(durable=True)

        run = ended(scene, execution_id)

    assert (run.state, run.failure) == (COMPLETED, None)
    assert (tmp_path / "took").read_text() == "1"
    assert activations(scene) == 1


@pytest.mark.parametrize("way", WAYS)
def test_an_activation_whose_commit_was_not_answered_is_found_written(
    own_server: PostgresServer, restarted: Scene, tmp_path: Path, way: str
) -> None:
    """The commit is durable, but waits for a standby that does not exist; the session ends."""
    scene = restarted
    with (
        starting_pools(scene) as start_pool,
        psycopg.connect(own_server.url(), autocommit=True) as admin,
    ):
        execution_id = begin(scene, start_pool, tmp_path, way)
        admin.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        admin.execute("SELECT pg_reload_conf()")
        shown = "SHOW synchronous_standby_names"
        eventually(lambda: admin.execute(shown).fetchone() == ("nobody",))
        go_on(tmp_path)
        terminated = (
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE wait_event = 'SyncRep' AND backend_type = 'client backend'"
        )
        eventually(lambda: admin.execute(terminated).fetchone() == (1,))
        eventually((tmp_path / "took").exists)
        admin.execute("ALTER SYSTEM RESET synchronous_standby_names")
        admin.execute("SELECT pg_reload_conf()")

        run = ended(scene, execution_id)

    assert (run.state, run.failure) == (COMPLETED, None)
    assert (tmp_path / "took").read_text() == "1", "not skipped as busy: it is the same one"
    assert activations(scene) == 1


DIE_ONCE = (
    "CREATE SEQUENCE deaths",
    "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "IF nextval('deaths') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; "
    "RETURN NULL; END $$",
    "CREATE CONSTRAINT TRIGGER dying AFTER INSERT ON headway_work_queue "
    "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.source = 'activation') "
    "EXECUTE FUNCTION die()",
)


@pytest.mark.parametrize("way", WAYS)
def test_an_activation_whose_commit_failed_is_written_again(
    postgres_url: str, tmp_path: Path, way: str
) -> None:
    """The session ends inside its COMMIT, before anything is durable."""
    with Scene(postgres_url) as scene:
        with scene.store.writing() as tx:
            for statement in DIE_ONCE:
                tx.connection.execute(text(statement))
        with starting_pools(scene) as start_pool:
            execution_id = begin(scene, start_pool, tmp_path, way)
            go_on(tmp_path)
            run = ended(scene, execution_id)

        assert (run.state, run.failure) == (COMPLETED, None)
        assert (tmp_path / "took").read_text() == "1"
        assert activations(scene) == 1
        assert scene.events.named("loop.failed", loop="worker")


def away(*arguments: object) -> None:
    raise OperationalError("INSERT", {}, Exception("database is locked"))


@pytest.mark.parametrize("way", WAYS)
def test_a_run_that_is_asked_to_stop_waits_no_longer(
    scene: Scene, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activation, "find_children", away)
    with starting_pools(scene) as start_pool:
        pools: list[WorkerPool] = []

        def start() -> WorkerPool:
            pools.append(start_pool())
            return pools[-1]

        execution_id = begin(scene, start, tmp_path, way)
        go_on(tmp_path)
        scene.events.wait_for("loop.failed", loop="worker")
        pools[0].cancellations.try_cancel(execution_id, StopReason.REQUESTED)
        scene.events.wait_for("execution.cancelled", execution_id=execution_id)
    assert activations(scene) == 0


@pytest.mark.parametrize("way", WAYS)
def test_a_process_stops_although_a_run_waits_to_activate(
    scene: Scene, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activation, "find_children", away)
    with starting_pools(scene) as start_pool:
        execution_id = begin(scene, start_pool, tmp_path, way)
        go_on(tmp_path)
        scene.events.wait_for("loop.failed", loop="worker")
    assert scene.execution(execution_id).state is ExecutionState.HANDED_BACK


def test_a_run_in_the_callers_own_thread_does_not_wait_for_ever(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activation, "find_children", away)
    go_on(tmp_path)
    execution_id = begin(scene, scene.run, tmp_path)
    failure = scene.execution(execution_id).failure
    assert failure is not None and failure.type == "sqlalchemy.exc.OperationalError"


def test_a_refused_activation_is_not_repeated(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def refuse(*arguments: object) -> None:
        tried.append(1)
        raise ValueError("no")

    monkeypatch.setattr(activation, "find_children", refuse)
    with starting_pools(scene) as start_pool:
        execution_id = begin(scene, start_pool, tmp_path)
        go_on(tmp_path)
        scene.events.wait_for("execution.failed", execution_id=execution_id)
    assert tried == [1]
