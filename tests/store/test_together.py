"""Statements that are sent together are one transaction, each with a snapshot of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Thread
from typing import Any

import pytest
from sqlalchemy import (
    BigInteger,
    Text,
    bindparam,
    func,
    insert,
    literal,
    literal_column,
    select,
    text,
)
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from headway.domain.work_queue import NewEntry, Source
from headway.store import notifications, work_queue
from headway.store.engine import Store
from headway.store.straight import ask
from headway.store.tables import wake
from headway.store.tables import work_queue as entries
from headway.store.together import Line
from headway.store.types import Instant, Listed
from headway.wakeups import Role
from tests.builders import Scene, eventually
from tests.statements import sent_statements
from tests.store.factories import has_session

pytestmark = pytest.mark.postgresql

MOMENT = datetime(2030, 1, 1, 12, 30, tzinfo=UTC)
EVERY_KIND = select(
    bindparam("moment", type_=Instant).label("moment"),
    bindparam("nothing", type_=Instant).label("nothing"),
    func.unnest(bindparam("words", type_=Listed(Text()))).label("word"),
    (bindparam("number", type_=BigInteger) + literal(1)).label("more"),
    literal("50 % of $1").label("said"),
    literal_column("true").label("yes"),
)
GIVEN = {"moment": MOMENT, "nothing": None, "words": ["a", 'say "b"', ""], "number": 2**40}
ONE = select(literal(1).label("one"))
PID = text("SELECT pg_backend_pid() AS pid").columns()
WAKES = select(func.count().label("many")).select_from(wake)
LOCKED = text("SELECT pg_advisory_xact_lock(7) IS NULL AS taken").columns()
WRITE = (
    insert(wake)
    .values(manifest_id=bindparam("key", type_=BigInteger), scope=bindparam("scope", type_=Text))
    .inline()
)
NOBODY = NewEntry("nap", Source.AD_HOC, "null", "NoneType")


@pytest.fixture
def store(emptied_postgres_url: str) -> Iterator[Store]:
    store = Store(emptied_postgres_url)
    yield store
    store.close()


@contextmanager
def line_of(store: Store) -> Iterator[Line]:
    with store._writer.connect() as connection:
        yield Line(connection)


def wakes(store: Store) -> int:
    with store.reading() as tx:
        return int(tx.connection.execute(WAKES).scalar_one())


def test_rows_are_those_that_come_one_after_another(store: Store) -> None:
    with line_of(store) as line:
        assert line.is_free
        for _ in range(3):  # prepared by the first, and then known
            together, one = line.ask((EVERY_KIND, GIVEN), (ONE, {}))
            assert [row.one for row in one] == [1]
            with store.reading() as tx:
                apart = ask(tx.connection, EVERY_KIND, GIVEN)
            assert [tuple(row) for row in together] == [tuple(row) for row in apart]
            assert [row.word for row in together] == GIVEN["words"]


def test_they_commit_together_without_a_word_from_here(store: Store) -> None:
    with line_of(store) as line:
        given = [{"key": key, "scope": "self"} for key in (1, 2)]
        assert line.ask(*((WRITE, one) for one in given)) == [(), ()]
        assert wakes(store) == 2


def test_where_one_fails_none_has_happened(store: Store) -> None:
    good, bad = {"key": 1, "scope": "self"}, {"key": 1, "scope": "no such scope"}
    with line_of(store) as line:
        with pytest.raises(IntegrityError, match="scope"):
            line.ask((WRITE, good), (WRITE, bad), (WRITE, good))
        assert wakes(store) == 0
        assert not line.connection.invalidated
        assert line.ask((WRITE, good), (ONE, {}))[1]
    assert wakes(store) == 1


def test_what_the_first_waited_for_the_second_sees(store: Store) -> None:
    """A snapshot taken with the lock would be older than what was written under it."""
    seen: list[Any] = []

    def count_under_the_lock() -> None:
        with line_of(store) as line:
            seen.extend(line.ask((LOCKED, {}), (WAKES, {}))[1])

    counting = Thread(target=count_under_the_lock)
    waits = text("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    with store.writing() as tx:
        tx.connection.execute(LOCKED)
        counting.start()
        eventually(lambda: tx.connection.execute(waits).first() is not None)
        tx.connection.execute(WRITE, {"key": 1, "scope": "self"})
    counting.join()

    assert [row.many for row in seen] == [1]


def test_what_is_announced_meanwhile_is_heard_afterwards(store: Store) -> None:
    """It comes by the line that is in use for something else."""
    listening = notifications.listen(store, seconds=0.05)
    line = next(listening).line
    notifications.notify(store, [Role.WORKER])
    heard = {one.topics for one, _ in zip(listening, [line.ask((ONE, {}))] * 2, strict=False)}
    listening.close()
    assert frozenset({Role.WORKER}) in heard


def test_a_table_that_has_changed_costs_one_try(store: Store) -> None:
    every_row = text("SELECT * FROM changing").columns()
    with store.writing() as tx:
        tx.connection.execute(text("CREATE TABLE changing AS SELECT 1 AS a"))
    try:
        with line_of(store) as line:
            assert len(line.ask((every_row, {}))[0][0]) == 1
            with store.writing() as tx:
                tx.connection.execute(text("ALTER TABLE changing ADD b integer"))
            with pytest.raises(DBAPIError, match="cached plan"):
                line.ask((every_row, {}))
            assert len(line.ask((every_row, {}))[0]) == 1
    finally:
        with store.writing() as tx:
            tx.connection.execute(text("DROP TABLE changing"))


def test_a_session_that_was_ended_is_not_used_again(store: Store) -> None:
    with line_of(store) as line:
        [[row]] = line.ask((PID, {}))
        other = Store(store.url.render_as_string(hide_password=False))
        with other.writing() as tx:
            tx.connection.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": row.pid})
        eventually(lambda: not has_session(other, row.pid))
        other.close()
        with pytest.raises(OperationalError) as raised:
            line.ask((ONE, {}))
        assert raised.value.connection_invalidated
    with line_of(store) as line:
        assert line.ask((PID, {}))[0][0].pid != row.pid


def test_where_somebody_listens_to_what_is_sent_a_line_is_not_free(store: Store) -> None:
    with sent_statements() as sent, store.queueing(Role.DISPATCHER) as tx:
        assert tx.line is None
        work_queue.enqueue(tx, [NOBODY])
    assert [statement for _, statement in sent if "INSERT" in statement]


def test_what_is_queued_by_a_line_is_there_at_once_and_told(store: Store) -> None:
    heard = notifications.listen(store, seconds=0.01)
    assert not next(heard).topics
    with store.queueing(Role.DISPATCHER) as tx:
        assert tx.line is not None
        [key] = work_queue.enqueue(tx, [NOBODY])
        with store.reading() as other:
            assert other.connection.execute(select(entries.c.id)).scalar_one() == key
    assert next(one.topics for one in heard if one.topics) == {Role.DISPATCHER}
    heard.close()


def test_what_is_queued_after_something_was_asked_is_there_as_well(store: Store) -> None:
    """A question by the same connection begins a transaction, which has to be committed."""
    with store.queueing(Role.DISPATCHER) as tx:
        assert tx.line is not None
        assert tx.connection.execute(ONE).scalar_one() == 1
        [key] = work_queue.enqueue(tx, [NOBODY])
    with store.reading() as tx:
        assert tx.connection.execute(select(entries.c.id)).scalar_one() == key


def test_what_failed_after_something_was_asked_leaves_nothing(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.queueing(Role.DISPATCHER) as tx:
        tx.connection.execute(ONE)
        work_queue.enqueue(tx, [NOBODY])
        raise ZeroDivisionError
    with store.reading() as tx:
        assert tx.connection.execute(select(entries.c.id)).first() is None


def test_a_trigger_with_an_input_of_its_own_is_not_lost(postgres_url: str) -> None:
    with Scene(postgres_url, virtual_time=False) as scene:

        @scene.app.workflow("double")
        def double(number: int) -> None: ...

        scene.app.schedule("double", "doubling", 2, first_run="at_first_occurrence")
        scene.apply()
        entry = scene.app.trigger("doubling", 21)
        with scene.store.reading() as tx:
            queued = select(entries.c.input).where(entries.c.id == entry)
            assert tx.connection.execute(queued).scalar_one() == "21"
        scene.app.runtime.store.close()


def test_what_a_rollback_has_deallocated_is_prepared_again(store: Store) -> None:
    """The driver deallocates all statements of a session with a rollback, if it has some itself."""
    with store.queueing("manager") as tx:
        work_queue.enqueue(tx, [NOBODY])
    with pytest.raises(ZeroDivisionError), store.writing() as tx:
        for _ in range(8):  # the driver prepares what is sent often
            tx.connection.execute(text("SELECT 7"))
        raise ZeroDivisionError
    with store.writing() as tx:
        names = tx.connection.execute(text("SELECT name FROM pg_prepared_statements")).all()
        assert not [name for (name,) in names if name.startswith("headway_")]
    with store.queueing("manager") as tx:
        assert len(work_queue.enqueue(tx, [NOBODY])) == 1
    with store.reading() as tx:
        found = tx.connection.execute(select(func.count()).select_from(entries))
        assert found.scalar_one() == 2
