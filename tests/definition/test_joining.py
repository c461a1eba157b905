"""Every verb in the caller's transaction: commit does it once, rollback leaves no trace."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, create_engine, event, make_url, select, text
from sqlalchemy.orm import Session

from headway import Item
from headway.definition.cancelling import Cancelled
from headway.definition.operating import Operator
from headway.definition.runtime import Runtime
from headway.domain.execution import ExecutionState
from headway.errors import (
    ChangedMeanwhile,
    CircularDependencyError,
    DatabaseUnavailable,
    DefinitionError,
    ParentNotFound,
)
from headway.store import bulk, dead_letters
from headway.store.bells import hang
from headway.store.dead_letters import NewDeadLetter
from headway.store.tables import manifest, work_queue
from headway.store.transaction import CHANNEL
from tests.builders import PATIENCE, START, Scene
from tests.databases import database_url, postgres_url, sqlite_url
from tests.runtime_verbs import (
    FINISHED,
    HOURLY,
    VERBS,
    Call,
    dependents,
    picture,
    runtime_of,
    set_the_scene,
)
from tests.store.factories import everything

__all__ = ["database_url", "postgres_url", "sqlite_url"]


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url) as scene:
        set_the_scene(scene)
        yield scene


@pytest.fixture
def runtime(scene: Scene) -> Runtime:
    return runtime_of(scene)


@pytest.fixture
def callers(scene: Scene) -> Iterator[Engine]:
    """The caller's own engine on headway's database, with nothing of headway's settings."""
    engine = create_engine(scene.store.url)
    yield engine
    engine.dispose()


@pytest.mark.parametrize("name", VERBS)
def test_a_rollback_leaves_no_trace(
    scene: Scene, runtime: Runtime, callers: Engine, name: str
) -> None:
    before = everything(scene.store)
    with callers.connect() as connection:
        VERBS[name].call(runtime, connection)
        connection.rollback()
    assert everything(scene.store) == before


@pytest.mark.parametrize("kind", ["connection", "session"])
@pytest.mark.parametrize("name", VERBS)
def test_a_commit_does_it_exactly_once(
    scene: Scene, runtime: Runtime, callers: Engine, name: str, kind: str
) -> None:
    before, verb = picture(scene), VERBS[name]
    with callers.connect() if kind == "connection" else Session(callers) as own:
        verb.call(runtime, own)
        own.commit()
    after = picture(scene)
    assert sorted((after - before).elements()) == sorted(verb.added)
    assert sorted((before - after).elements()) == sorted(verb.gone)


@pytest.mark.parametrize("name", VERBS)
def test_it_means_the_same_as_without_a_connection(
    scene: Scene, runtime: Runtime, name: str
) -> None:
    before, verb = picture(scene), VERBS[name]
    verb.call(runtime, None)
    after = picture(scene)
    assert sorted((after - before).elements()) == sorted(verb.added)
    assert sorted((before - after).elements()) == sorted(verb.gone)


@pytest.mark.parametrize("name", VERBS)
def test_nothing_but_plain_statements_is_sent(
    runtime: Runtime, callers: Engine, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(bulk, "_copy")
    sent: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        sent.append(" ".join(statement.split()))

    with callers.begin() as connection:
        event.listen(connection, "before_cursor_execute", note)
        VERBS[name].call(runtime, connection)
    words = {statement.split()[0] for statement in sent}
    assert words <= {"BEGIN", "SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "PRAGMA"} | {
        "SAVEPOINT",
        "RELEASE",
    }
    assert not [statement for statement in sent if "set_config" in statement]


QUEUEING = ("trigger", "trigger_group", "rerun", "enqueue")


@pytest.mark.parametrize("name", VERBS)
def test_servers_are_notified_of_what_a_caller_commits(postgres_url: str, name: str) -> None:
    """Once, and not of what is rolled back."""
    topic = "dispatcher" if name in QUEUEING else ""
    with Scene(postgres_url) as scene, scene.store.listening() as listening:
        set_the_scene(scene)
        runtime = runtime_of(scene)
        channel = listening.execute(text(f"SELECT {CHANNEL}")).scalar_one()
        listening.exec_driver_sql(f'LISTEN "{channel}"')
        callers = create_engine(scene.store.url)
        with callers.connect() as connection:
            VERBS[name].call(runtime, connection)
            connection.rollback()
            assert heard(listening, channel) == []
            VERBS[name].call(runtime, connection)
            connection.commit()
        callers.dispose()

        assert heard(listening, channel) == [topic]


def resolve(runtime: Runtime) -> None:
    [letter] = runtime.dead_letters.awaiting()
    assert runtime.dead_letters.requeue(letter.id).success


def acknowledge(runtime: Runtime) -> None:
    assert runtime.dead_letters.acknowledge_all().count == 1


def cancel(runtime: Runtime) -> None:
    assert runtime.cancelling.cancel("extract", None, None, None, None).cancelled == 1


@pytest.mark.parametrize("act", [resolve, acknowledge, cancel])
def test_servers_are_notified_of_what_is_resolved_or_cancelled(
    postgres_url: str, act: Callable[[Runtime], None]
) -> None:
    with Scene(postgres_url) as scene, scene.store.listening() as listening:
        set_the_scene(scene)
        runtime = runtime_of(scene)
        with scene.store.writing() as tx:
            dead_letters.create(tx, [NewDeadLetter(scene.ids_of("report")[0], "broken", 1)])
        channel = listening.execute(text(f"SELECT {CHANNEL}")).scalar_one()
        listening.exec_driver_sql(f'LISTEN "{channel}"')
        act(runtime)
        assert heard(listening, channel) == [""]


@pytest.mark.parametrize("name", VERBS)
def test_servers_in_this_process_are_told_on_sqlite(sqlite_url: str, name: str) -> None:
    with Scene(sqlite_url) as scene:
        set_the_scene(scene)
        topics: list[str] = []
        end = hang(make_url(sqlite_url), topics.append)
        VERBS[name].call(runtime_of(scene), None)
        Operator("alice", runtime_of(scene)).disable("report")
        end()
    assert topics == ["dispatcher" if name in QUEUEING else "", ""]


def heard(listening: Connection, channel: str) -> list[str]:
    """The topics of all notifications since the last call."""
    listening.execute(text("SELECT pg_notify(:channel, 'end')"), {"channel": channel})
    driver = listening.connection.driver_connection
    assert driver is not None
    topics: list[str] = []
    while "end" not in topics:
        arrived = list(driver.notifies(timeout=PATIENCE, stop_after=1))
        assert arrived, "not even the last one has arrived"
        topics += [one.payload.split(" ")[0] for one in arrived]
    return [topic for topic in topics if topic != "end"]


@pytest.mark.full
def test_a_foreign_database_is_refused_whatever_was_joined_before(
    scene: Scene, runtime: Runtime, tmp_path: Path
) -> None:
    """An engine that is gone leaves its address to the next one."""
    for _ in range(20):
        own = create_engine(scene.store.url)
        with own.connect() as connection:
            runtime.trigger("report", connection=connection)
        own.dispose()
        del own, connection
        gc.collect()
        foreign = create_engine(f"sqlite:///{tmp_path / 'foreign.db'}")
        with foreign.connect() as connection, pytest.raises(DatabaseUnavailable):
            runtime.trigger("report", connection=connection)
        foreign.dispose()


def test_several_verbs_are_one_transaction(scene: Scene, runtime: Runtime, callers: Engine) -> None:
    before = everything(scene.store)
    with callers.connect() as connection:
        for name in ("schedule", "disable", "trigger", "enqueue", "schedule_many"):
            VERBS[name].call(runtime, connection)
        runtime.trigger("new", connection=connection)
        connection.rollback()
    assert everything(scene.store) == before


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (
            lambda runtime, own: runtime.schedule_many_dependent(
                "work", "new", [*dependents(1, 2), Item(3, depends_on="nobody")], connection=own
            ),
            ParentNotFound,
        ),
        (
            lambda runtime, own: runtime.schedule_dependent(
                "work", "extract", None, "load", group="loads", connection=own
            ),
            CircularDependencyError,
        ),
    ],
)
def test_a_call_that_fails_leaves_nothing_of_its_own_and_keeps_the_callers_work(
    scene: Scene, runtime: Runtime, callers: Engine, call: Call, error: type[Exception]
) -> None:
    before = picture(scene)
    with callers.begin() as connection:
        runtime.trigger("report", connection=connection)
        with pytest.raises(error):
            call(runtime, connection)
    assert list((picture(scene) - before).elements()) == ["queued report"]
    assert not before - picture(scene)


def test_a_failed_first_call_can_be_rolled_back_and_committed(
    scene: Scene, runtime: Runtime, callers: Engine
) -> None:
    before = everything(scene.store)
    with callers.begin() as connection, pytest.raises(ParentNotFound):
        runtime.schedule_dependent("work", "new", None, "nobody", connection=connection)
    assert everything(scene.store) == before


class AsyncLike:
    """What an async session looks like from outside."""

    def run_sync(self) -> None: ...

    def get_bind(self) -> None: ...


@pytest.mark.parametrize("given", [AsyncLike(), "sqlite://", 5])
def test_what_is_no_connection_is_refused_in_one_line(runtime: Runtime, given: Any) -> None:
    for verb in VERBS.values():
        with pytest.raises(DefinitionError, match=r"connection = .*run_sync") as refused:
            verb.call(runtime, given)
        assert "\n" not in str(refused.value)


def test_the_application_passes_the_connection_on(scene: Scene, callers: Engine) -> None:
    before = everything(scene.store)
    with callers.connect() as connection:
        scene.app.disable("extract", connection=connection)
        scene.app.enable("resting", connection=connection)
        scene.app.rerun(FINISHED, connection=connection)
        scene.app.unschedule("report", connection=connection)
        scene.app.trigger("extract", connection=connection)
        scene.app.trigger_group("loads", connection=connection)
        scene.app.enqueue("work", connection=connection)
        scene.app.enqueue_many("work", [None], connection=connection)
        scene.app.set_group("loads", priority=3, connection=connection)
        connection.rollback()
    assert everything(scene.store) == before
    scene.app.runtime.store.close()


def test_the_application_passes_every_option_on(scene: Scene) -> None:
    hw = scene.app

    @hw.workflow
    def count(number: int) -> None: ...

    hw.schedule(count, "sum", 1)
    scene.apply()
    with scene.store.reading() as tx:
        earlier = set(tx.connection.execute(select(work_queue.c.id)).scalars())
    hw.trigger("sum", 7, delay=timedelta(minutes=5), max_attempts=3)
    hw.enqueue("count", 8, priority=4, max_attempts=2)
    hw.enqueue_many("count", [9], priority=5, max_attempts=6)
    hw.rerun(FINISHED, None, max_attempts=7)
    with scene.store.reading() as tx:
        rows = tx.connection.execute(select(work_queue).order_by(work_queue.c.id)).all()
    added = [row for row in rows if row.id not in earlier]
    told = [
        (row.source, row.workflow, row.input, row.input_type, row.priority, row.max_attempts)
        for row in added
    ]
    assert told == [
        ("trigger", "count", "7", "int", 0, 3),
        ("ad_hoc", "count", "8", "int", 4, 2),
        ("ad_hoc", "count", "9", "int", 5, 6),
        ("rerun", "work", "null", "", 0, 7),
    ]
    assert [row.scheduled_at is not None for row in added] == [True, False, False, False]
    hw.runtime.store.close()


def test_the_application_passes_on_what_a_group_is_to_be(scene: Scene) -> None:
    hw = scene.app
    hw.set_group("reports", max_active_jobs=2, priority=9, enabled=False)
    [group] = [one for one in scene.history.groups.all() if one.name == "reports"]
    assert (group.max_active_jobs, group.priority, group.enabled) == (2, 9, False)
    changes: list[Callable[[], None]] = [
        lambda: hw.set_group("reports", priority=8, expected="0"),
        lambda: hw.enable("resting", expected="0"),
        lambda: hw.disable("extract", expected="0"),
    ]
    for change in changes:
        with pytest.raises(ChangedMeanwhile):
            change()
    hw.runtime.store.close()


def test_the_application_passes_on_what_to_cancel_and_why(scene: Scene) -> None:
    hw = scene.app
    [queued] = scene.history.queue.all()
    execution = scene.pending("work")
    assert hw.cancel(entry=queued.id) == Cancelled(cancelled=1)
    assert hw.cancel(execution=FINISHED) == Cancelled(finished=ExecutionState.COMPLETED)
    assert hw.cancel(execution=execution, reason="wrong day") == Cancelled(cancelled=1)
    failure = scene.execution(execution).failure
    assert failure is not None
    assert failure.message == "cancelled before it started: wrong day"
    assert hw.cancel(group="loads") == Cancelled()
    hw.runtime.store.close()


@pytest.mark.parametrize("at", [HOURLY, START, None, "tomorrow"])
def test_once_takes_a_single_moment_as_it_does_in_a_declaration(
    scene: Scene, runtime: Runtime, at: Any
) -> None:
    with pytest.raises(DefinitionError) as declared:
        scene.app.schedule_once("work", "new", None, at)
    with pytest.raises(DefinitionError, match="new: schedule_once") as called:
        runtime.schedule_once("work", "new", None, at)
    assert str(called.value) == str(declared.value)


def test_a_batch_that_names_an_item_twice_is_refused(scene: Scene, runtime: Runtime) -> None:
    before = everything(scene.store)
    with pytest.raises(DefinitionError, match="'new-1': is already declared"):
        runtime.schedule_many("work", "new", [Item(1), Item(1)], HOURLY)
    assert everything(scene.store) == before


def hold_everything(connection: Connection) -> None:
    """Have every write of others wait until this transaction ends."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"LOCK TABLE {manifest}, {work_queue} IN EXCLUSIVE MODE"))
    else:
        connection.exec_driver_sql("BEGIN IMMEDIATE")


@pytest.mark.parametrize("name", ["trigger", "schedule_dependent", "disable", "unschedule"])
def test_from_async_code_a_thread_keeps_the_loop_free(
    scene: Scene, runtime: Runtime, callers: Engine, name: str
) -> None:
    """The call waits for a transaction that only the loop itself can end."""

    async def handler(connection: Connection) -> None:
        call = asyncio.create_task(asyncio.to_thread(VERBS[name].call, runtime, None))
        await asyncio.sleep(0)
        assert not call.done()
        connection.rollback()
        await call

    before = picture(scene)
    with callers.connect() as connection:
        hold_everything(connection)
        asyncio.run(handler(connection))
    assert sorted((picture(scene) - before).elements()) == sorted(VERBS[name].added)
