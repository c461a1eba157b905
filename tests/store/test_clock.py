"""Time: one moment per transaction, the database's own unless a test holds the clock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import insert, select, text
from sqlalchemy.exc import StatementError

from headway.store.engine import Store
from headway.store.locks import Lock
from headway.store.migrate import migrate
from headway.store.tables import audit
from tests.pgbouncer import with_setting
from tests.store.factories import NOON, Clock, declare, finish, started, state_of

LAST_MICROSECOND = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)


@pytest.fixture
def real_time(database_url: str) -> Iterator[Store]:
    store = Store(database_url)
    migrate(store)
    yield store
    store.close()


def test_every_way_into_the_store_shows_the_clock_it_was_given(store: Store, clock: Clock) -> None:
    clock.advance(days=400)
    with store.reading() as tx:
        assert tx.now == clock.now
    with store.writing() as tx:
        assert tx.now == clock.now
    with store.leading(Lock.MANAGE) as leader:
        assert leader is not None
        assert leader.now == clock.now


def test_what_is_written_bears_the_moment_of_its_transaction(store: Store, clock: Clock) -> None:
    declare(store, "extract")
    clock.advance(hours=1)
    one = started(store)
    with store.writing() as tx:
        clock.advance(hours=1)
        assert tx.now == NOON + timedelta(hours=1)
    finish(store, one)
    assert (one.dispatched_at, one.started_at) == (NOON + timedelta(hours=1),) * 2
    assert state_of(store).last_success_at == NOON + timedelta(hours=2)


def test_without_a_clock_time_passes_by_itself(real_time: Store) -> None:
    moments = []
    for _ in range(3):
        with real_time.writing() as tx:
            moments.append(tx.now)
    assert moments == sorted(moments)
    assert all(moment.tzinfo is UTC for moment in moments)
    assert abs(datetime.now(UTC) - moments[-1]) < timedelta(minutes=1)


@pytest.mark.story(28)
def test_without_a_clock_postgresql_says_what_time_it_is(postgres_url: str) -> None:
    store = Store(postgres_url)
    said = text("SELECT clock_timestamp()")
    with store.listening() as connection:
        before = connection.execute(said).scalar_one()
        with store.reading() as tx:
            now = tx.now
        after = connection.execute(said).scalar_one()
    store.close()
    assert before <= now <= after


def test_the_time_zone_of_a_session_changes_no_moment(postgres_url: str) -> None:
    store = Store(with_setting(postgres_url, "TimeZone", "Asia/Kolkata"))
    migrate(store)
    with store.writing() as tx:
        row = {"at": NOON, "actor": "me", "action": "look", "subject": "time"}
        tx.connection.execute(insert(audit).values(**row))
        assert tx.now.tzinfo is UTC
        kept = tx.connection.execute(select(audit.c.at)).scalar_one()
    store.close()
    assert (kept, kept.tzinfo) == (NOON, UTC)


@pytest.mark.parametrize(
    "moment",
    [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(2025, 10, 26, 2, 30, tzinfo=timezone(timedelta(hours=2))),
        NOON + timedelta(microseconds=1),
        LAST_MICROSECOND,
    ],
    ids=str,
)
def test_a_moment_comes_back_to_the_microsecond_in_utc(store: Store, moment: datetime) -> None:
    with store.writing() as tx:
        row = {"at": moment, "actor": "me", "action": "look", "subject": "time"}
        tx.connection.execute(insert(audit).values(**row))
    with store.reading() as tx:
        kept = tx.connection.execute(select(audit.c.at).where(audit.c.at == moment)).scalar_one()
    assert (kept, kept.tzinfo) == (moment, UTC)


def test_a_moment_without_a_zone_is_refused(store: Store) -> None:
    row = {"at": datetime(2025, 1, 1), "actor": "me", "action": "look", "subject": "time"}
    with pytest.raises(StatementError, match="has no time zone"), store.writing() as tx:
        tx.connection.execute(insert(audit).values(**row))
