"""What goes straight to the driver is what SQLAlchemy would have sent, answered and raised."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import (
    BigInteger,
    Float,
    Text,
    bindparam,
    cast,
    delete,
    event,
    func,
    insert,
    literal,
    select,
    text,
)
from sqlalchemy.exc import DataError, IntegrityError, OperationalError

from headway.domain.work_queue import NewEntry, Source
from headway.errors import DatabaseUnavailable
from headway.store import notifications, triggers, work_queue
from headway.store.engine import TRANSIENT, Store
from headway.store.straight import ask, ask_one
from headway.store.tables import wake
from headway.store.tables import work_queue as queue_table
from headway.store.types import Instant, Listed
from headway.wakeups import Role
from tests.builders import eventually
from tests.statements import sent_statements
from tests.store.factories import has_session

MOMENT = datetime(2030, 1, 1, 12, 30, tzinfo=UTC)
WORDS = ["plain", 'say "hi"', "back\\slash", "100 %", "$1", ""]

EVERY_KIND = select(
    bindparam("moment", type_=Instant).label("moment"),
    bindparam("nothing", type_=Instant).label("nothing"),
    func.unnest(bindparam("words", type_=Listed(Text()))).label("word"),
    (bindparam("number", type_=BigInteger) + literal(1)).label("more"),
    literal("50 % of $1").label("said"),
    cast(literal("1.5"), Float).label("fraction"),
)
PID = text("SELECT pg_backend_pid() AS pid").columns()
ENTRIES = select(func.count().label("many")).select_from(queue_table)
NOBODY = NewEntry("nap", Source.AD_HOC, "null", "NoneType")


@pytest.fixture
def store(emptied_postgres_url: str) -> Iterator[Store]:
    store = Store(emptied_postgres_url)
    yield store
    store.close()


def both_ways(store: Store, statement: Any, given: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    with store.reading() as tx:
        straight = list(ask(tx.connection, statement, given))
        around = list(ask(tx.connection, statement, given, straight=False))
    return straight, around


def test_rows_are_the_same_by_name_and_by_place(store: Store) -> None:
    given = {"moment": MOMENT, "nothing": None, "words": WORDS, "number": 2**40}
    straight, around = both_ways(store, EVERY_KIND, given)
    assert [tuple(row) for row in straight] == [tuple(row) for row in around]
    assert [row.word for row in straight] == WORDS
    assert {(row.moment, row.nothing, row.more, row.said) for row in straight} == {
        (MOMENT, None, 2**40 + 1, "50 % of $1")
    }
    assert {row.fraction for row in straight} == {1.5}


def test_a_moment_comes_back_in_utc_whatever_the_session_says(store: Store) -> None:
    with store.reading() as tx:
        tx.connection.execute(text("SET LOCAL timezone = 'Asia/Kolkata'"))
        given = {"moment": MOMENT, "nothing": None, "words": ["one"], "number": 1}
        [row] = ask(tx.connection, EVERY_KIND, given)
    assert row.moment == MOMENT and row.moment.tzinfo is UTC


def test_what_must_be_given_is_not_taken_for_null(store: Store) -> None:
    with store.reading() as tx, pytest.raises(KeyError, match="number"):
        ask(tx.connection, EVERY_KIND, {"moment": MOMENT, "nothing": None, "words": WORDS})


def test_a_statement_that_returns_nothing_is_carried_out(store: Store) -> None:
    with store.writing() as tx:
        tx.connection.execute(insert(wake), [{"group_id": 7, "scope": "group"}])
        gone = delete(wake).where(wake.c.group_id == bindparam("group"))
        assert list(ask(tx.connection, gone, {"group": 7})) == []
    with store.reading() as tx:
        assert tx.connection.execute(select(wake)).all() == []


def test_errors_are_those_of_sqlalchemy(store: Store) -> None:
    divide = text("SELECT 1 / CAST(:by AS int) AS part").columns()
    with store.reading() as tx, pytest.raises(DataError, match="division by zero"):
        ask(tx.connection, divide, {"by": 0})
    again = insert(queue_table).values(
        id=bindparam("new_id"),
        workflow="nap",
        source="ad_hoc",
        input="null",
        input_type="NoneType",
        created_at=MOMENT,
    )
    with store.writing() as tx:
        ask(tx.connection, again, {"new_id": 7})
    with pytest.raises(IntegrityError), store.writing() as tx:
        ask(tx.connection, again, {"new_id": 7})


def test_a_session_that_was_ended_is_dropped_with_all_of_its_time(store: Store) -> None:
    def end(pid: int) -> None:
        with other.writing() as tx:
            tx.connection.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
        eventually(lambda: not has_session(other, pid))

    other = store.apart()
    with store.reading() as one, store.reading() as two:
        pids = {ask_one(tx.connection, PID).pid for tx in (one, two)}
    assert len(pids) == 2
    with pytest.raises(TRANSIENT) as caught, store.writing() as tx:
        pid = ask_one(tx.connection, PID).pid
        end(pid)
        ask(tx.connection, PID)
    other.close()
    assert isinstance(caught.value, DatabaseUnavailable)
    cause = caught.value.__cause__
    assert isinstance(cause, OperationalError) and cause.connection_invalidated
    with store.reading() as one, store.reading() as two:
        assert not pids & {ask_one(tx.connection, PID).pid for tx in (one, two)}


def test_whoever_listens_hears_it(store: Store) -> None:
    with sent_statements() as sent, store.reading() as tx:
        ask(tx.connection, PID)
    assert any("pg_backend_pid" in statement for _, statement in sent)


@pytest.mark.parametrize("moment", ["before_cursor_execute", "after_cursor_execute"])
def test_whoever_listens_at_one_moment_alone_hears_it(store: Store, moment: str) -> None:
    sent: list[str] = []
    with store.reading() as tx:

        def listener(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
            sent.append(statement)

        event.listen(tx.connection, moment, listener)
        ask(tx.connection, PID)
    assert any("pg_backend_pid" in statement for statement in sent)


def test_what_nobody_listens_to_goes_past_sqlalchemy(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else every other test here would be about SQLAlchemy alone."""
    with store.reading() as tx:
        monkeypatch.setattr(tx.connection, "execute", pytest.fail)
        assert ask_one(tx.connection, PID).pid > 0


# One statement that queues something is a transaction of its own


def test_what_is_queued_alone_is_there_at_once_and_told(store: Store) -> None:
    heard = notifications.listen(store, seconds=0.01)
    assert not next(heard).topics
    before = datetime.now(UTC)
    with sent_statements() as sent, store.queueing(Role.DISPATCHER) as tx:
        work_queue.enqueue(tx, [NOBODY])
        with store.reading() as other:
            assert ask_one(other.connection, ENTRIES).many == 1
    assert next(one.topics for one in heard if one.topics) == {Role.DISPATCHER}
    heard.close()
    mine = [statement for _, statement in sent if "INSERT" in statement or "notify" in statement]
    assert len(mine) == 1
    with store.reading() as tx:
        queued_at = tx.connection.execute(select(queue_table.c.created_at)).scalar_one()
    assert abs(queued_at - before) < timedelta(minutes=1)


def test_what_queues_nothing_tells_nobody(store: Store) -> None:
    heard = notifications.listen(store, seconds=0.05)
    assert not next(heard).topics
    with store.queueing(Role.DISPATCHER) as tx:
        assert triggers.trigger(tx, "no-such-manifest", None) is None
    assert not next(heard).topics
    heard.close()


def test_under_a_clock_of_its_own_a_store_goes_by_that(emptied_postgres_url: str) -> None:
    store = Store(emptied_postgres_url, clock=lambda: MOMENT)
    with store.queueing(Role.DISPATCHER) as tx:
        work_queue.enqueue(tx, [NOBODY])
    with store.reading() as tx:
        assert tx.connection.execute(select(queue_table.c.created_at)).scalar_one() == MOMENT
    store.close()
