"""Stories of loops: of what they survive, and of what they cost."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import psycopg
import pytest
from psycopg import errors
from sqlalchemy import Connection, delete, event
from sqlalchemy.engine import Engine

from benchmarks._deep_queue import fill_groups, queue_all
from headway import every, loops
from headway.config import Settings
from headway.dispatcher.cycle import JobDispatcher
from headway.domain.execution import ExecutionState
from headway.domain.work_queue import NewEntry, Source
from headway.loops import Rest
from headway.observe import Observer
from headway.runner import completions, pool
from headway.servers.local import LocalServer
from headway.service import Service
from headway.store.engine import Store
from headway.store.tables import work_queue
from headway.turns import Turn
from headway.wakeups import Role
from tests.builders import Scene, eventually
from tests.postgres_server import PostgresServer, PostgresUnavailable, private_server

OFTEN: dict[str, Any] = {
    "manager_polling_interval": 0.2,
    "dispatcher_polling_interval": 0.2,
    "polling_interval": 0.1,
}
POLL = "dispatcher_polling_interval"
OURS = "FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'headway'"


class Passes:
    """Counts the passes of each loop that ended well, and may have something done before one."""

    def __init__(self, service: Service, before: Callable[[str], None] = lambda name: None) -> None:
        self.loops = list(service._loops.values())
        self.ended: Counter[str] = Counter()
        self._before = before
        for loop in self.loops:
            loop._once = self._counted(loop.name, loop._once)

    def _counted(self, name: str, once: Turn) -> Turn:
        def listening() -> float | Rest:
            # It has no end while all is well: that it got as far as listening must do.
            self._before(name)
            self._note(name)
            return once()

        def noted() -> float | Rest:
            self._before(name)
            pause = once()
            self._note(name)
            return pause

        return listening if name == "listener" else noted

    def _note(self, name: str) -> None:
        self.ended[name] += 1

    @property
    def names(self) -> set[str]:
        return {loop.name for loop in self.loops}

    def all_move(self, since: Counter[str]) -> bool:
        """Whether every loop but the listener has ended a pass since then.

        The pulse comes by itself; the others rest until there is something to do.
        """
        still = [loop for loop in self.loops if self.ended[loop.name] <= since[loop.name]]
        for loop in still:
            if loop.name != "pulse":
                loop.wake()
        return {loop.name for loop in still} <= {"listener"}


@contextmanager
def running(scene: Scene, service: Service | None = None) -> Iterator[Service]:
    service = service or Service(scene.app)
    service.start()
    try:
        yield service
    finally:
        service.request_stop(grace=0)
        service.stop()


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url, virtual_time=False, **OFTEN) as scene:
        yield scene


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (loops, completions):
        monkeypatch.setattr(module, "FIRST_PAUSE", 0.01)
        monkeypatch.setattr(module, "LONGEST_PAUSE", 0.05)
    monkeypatch.setattr(pool, "LOOK_PAUSE", 0.1)


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    try:
        with private_server() as server:
            yield server
    except PostgresUnavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.story(4)
@pytest.mark.long
def test_every_loop_moves_again_after_each_of_twenty_restarts(own_server: PostgresServer) -> None:
    with Scene(own_server.url(), virtual_time=False, **OFTEN) as scene:
        service = Service(scene.app)
        passes = Passes(service)
        with running(scene, service):
            for number in range(20):
                eventually(lambda: passes.all_move(Counter()))
                own_server.stop("immediate" if number % 2 else "fast")
                own_server.start(durable=False)
                before = Counter(passes.ended)
                eventually(lambda before=before: passes.all_move(before))  # type: ignore[misc]
            scene.store.close()
            scene.enqueue(NewEntry("work", Source.AD_HOC, "null"))
            scene.events.wait_for("execution.completed")


@pytest.mark.story(24)
@pytest.mark.parametrize(("lease", "pause"), [(15, 2.0), (6, 1.0), (2, 1 / 3)])
def test_the_sweep_is_quick_enough_for_the_lease(
    database_url: str, lease: int, pause: float
) -> None:
    """What is recovered within a lease and a sweep is recovered within lease + 2 s, or 6 + 1."""
    with Scene(database_url, virtual_time=False, server_lease=lease) as scene:
        service = Service(scene.app)
        orphans, pulse = service._loops["orphans"], service._loops["pulse"]
        rest = orphans._once()
        # It rests until the pulse says that somebody has died, which is asked for as often.
        assert isinstance(rest, Rest) and rest.earliest == pytest.approx(pause)
        assert pulse._once() == pytest.approx(pause)
        service.stop()


@pytest.mark.story(7)
def test_a_loop_whose_start_fails_is_tried_again_and_holds_up_no_other(
    scene: Scene, quick_retries: None
) -> None:
    failed: set[str] = set()

    def fail_once(name: str) -> None:
        if name not in failed:
            failed.add(name)
            raise RuntimeError(f"{name} could not start")

    service = Service(scene.app)
    passes = Passes(service, before=fail_once)
    assert passes.names >= {"manager", "sweep", "retention", "dispatcher", "orphans"}
    with running(scene, service):
        eventually(lambda: passes.ended.keys() == passes.names)
        scene.enqueue(NewEntry("work", Source.AD_HOC, "null"))
        scene.events.wait_for("execution.completed")

    assert {one.fields["loop"] for one in scene.events.named("loop.failed")} == passes.names


@pytest.mark.story(14)
@pytest.mark.long
def test_connections_that_were_cut_are_replaced_and_not_added_to(
    postgres_url: str, postgres_database: str, quick_retries: None
) -> None:
    with (
        Scene(postgres_url, virtual_time=False, server_lease=2, **OFTEN) as scene,
        running(scene),
        psycopg.connect(postgres_database, autocommit=True) as other,
    ):

        def sessions() -> int:
            [count] = other.execute(f"SELECT count(*) {OURS}").fetchone() or (0,)
            return int(count)

        most = 4  # of a process: beat, listener, two pooled; and the scene's own
        cut = 0
        while cut < 300:
            eventually(lambda: sessions() >= most)
            cut += len(other.execute(f"SELECT pg_terminate_backend(pid) {OURS}").fetchall())
        scene.store.close()  # the scene's own session was cut as well
        scene.enqueue(*(NewEntry("work", Source.AD_HOC, "null") for _ in range(50)))
        scene.store.close()
        scene.events.wait_for("execution.completed", 50)
        eventually(lambda: sessions() == most)


STATES = ("40P01", "40001", "57P01", "08006", "53300", "57014")
FATAL = {"57P01", "08006"}


class Faults:
    """Every statement text fails once with each of the errors; the gravest end the session too."""

    def __init__(self) -> None:
        self.on = False
        self.injected: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, cursor: Any, statement: str, *_more: Any) -> None:
        with self._lock:
            number = self.injected[statement]
            ours = threading.current_thread().name.startswith("headway")
            # What SQLAlchemy asks each new connection, it asks in small letters.
            introduction = statement.startswith(("select ", "show "))
            if not (self.on and ours) or introduction or number >= len(STATES):
                return
            self.injected[statement] += 1
        state = STATES[number]
        if state in FATAL:
            cursor.connection.close()
        raise errors.lookup(state)(f"injected {state}")


@pytest.fixture
def faults() -> Iterator[Faults]:
    faults = Faults()
    for hook in ("do_execute", "do_executemany"):
        event.listen(Engine, hook, faults)
    yield faults
    for hook in ("do_execute", "do_executemany"):
        event.remove(Engine, hook, faults)


@pytest.mark.story(15)
def test_every_error_at_every_statement_is_survived(
    postgres_url: str, faults: Faults, quick_retries: None
) -> None:
    with Scene(postgres_url, virtual_time=False, **OFTEN) as scene:
        chain = scene.app.schedule("work", "parent", None, every(days=1))
        chain.then_include("work", "child", None)
        service = Service(scene.app)
        passes = Passes(service)
        with running(scene, service):
            faults.on = True
            scene.trigger("parent")
            for name in ("parent", "child"):
                scene.events.wait_for("execution.completed", external_id=name)
            eventually(lambda: passes.all_move(Counter()))
            faults.on = False
            for loop in passes.loops:
                assert loop._thread.is_alive(), loop.name

        full = [statement for statement, count in faults.injected.items() if count == len(STATES)]
        assert len(full) >= 20, "of every loop, many statements"
        told = Counter(one.fields["external_id"] for one in completed(scene))
        recorded = Counter(one.external_id for one in scene.ended(ExecutionState.COMPLETED))
        assert told == recorded


def completed(scene: Scene) -> list[Any]:
    return scene.events.named("execution.completed")


@pytest.mark.story(19)
def test_a_full_dispatcher_asks_as_little_of_a_deep_queue_as_of_a_short_one(
    database_url: str,
) -> None:
    store = Store(database_url, durable=False)
    statements: list[str] = []

    def note(connection: Connection, cursor: Any, statement: str, *_more: Any) -> None:
        statements.append(statement)

    def cost_when_full() -> int:
        settings = Settings(max_active_jobs=4)
        dispatcher = JobDispatcher(store, settings, Observer(), LocalServer(lambda: None))
        while dispatcher.run_once().dispatched:
            pass
        statements.clear()
        assert dispatcher.run_once().dispatched == ()
        return len(statements)

    event.listen(store._writer, "before_cursor_execute", note)
    fill_groups(store, 20_000, groups=20, cap=None)
    queue_all(store)
    deep = cost_when_full()
    with store.writing() as tx:
        tx.connection.execute(delete(work_queue).where(work_queue.c.manifest_id > 100))
    short = cost_when_full()
    store.close()

    assert deep <= short


@pytest.mark.story(19)
def test_a_dispatcher_that_may_start_nothing_waits_for_its_poll(scene: Scene) -> None:
    """Ready work for thirty-two workers and one slot: no cycle without a reason."""
    release = threading.Event()
    scene.new_app(max_active_jobs=1, worker_count=32, **OFTEN | {POLL: 3600})

    @scene.app.workflow("hold")
    def hold() -> None:
        release.wait()

    scene.enqueue(*(NewEntry("hold", Source.AD_HOC, "null") for _ in range(200)))
    with running(scene) as service:
        scene.events.wait_for("dispatcher.cycle", dispatched=1)
        rests = [service._loops["dispatcher"]._once() for _ in range(3)]
        release.set()

    # The loop may be in the middle of a pass of its own: then this one finds the lock taken.
    assert [replace(cast(Rest, rest), deaf=0.0) for rest in rests] == [Rest(earliest=3600)] * 3


@pytest.mark.story(43)
def test_no_transaction_of_a_job_notifies(postgres_url: str) -> None:
    notifying: list[bool] = []

    def note(connection: Connection, cursor: Any, statement: str, *_more: Any) -> None:
        if "notify" in statement.lower():
            notifying.append(connection.connection.dbapi_connection.autocommit)  # type: ignore[union-attr]

    event.listen(Engine, "before_cursor_execute", note)
    try:
        with Scene(postgres_url, virtual_time=False, **OFTEN) as scene, running(scene):
            scene.enqueue(*(NewEntry("work", Source.AD_HOC, "null") for _ in range(50)))
            scene.events.wait_for("execution.completed", 50)
    finally:
        event.remove(Engine, "before_cursor_execute", note)

    assert notifying and all(notifying), "each on its own, outside any transaction"


@pytest.mark.full
@pytest.mark.story(46)
def test_servers_that_start_beside_a_running_job_leave_it_alone(scene: Scene) -> None:
    release = threading.Event()

    @scene.app.workflow("hold")
    def hold() -> None:
        release.wait()

    with running(scene):
        scene.enqueue(NewEntry("hold", Source.AD_HOC, "null"))
        scene.events.wait_for("dispatcher.cycle", dispatched=1)
        eventually(lambda: bool(live(scene)))
        before = live(scene)
        for _ in range(10):
            newcomers = [Service(scene.app, {Role.WORKER}) for _ in range(5)]
            for one in newcomers:
                one.start()
            for one in newcomers:
                one.request_stop(grace=0)
            for one in newcomers:
                one.stop()
        assert live(scene) == before
        release.set()
        scene.events.wait_for("execution.completed")
    [ended] = scene.history.executions.all()
    assert (ended.id, ended.crashes, ended.attempt) == (before[0].id, 0, 1)


def live(scene: Scene) -> list[Any]:
    return scene.history.executions.all(states=[ExecutionState.IN_PROGRESS])
