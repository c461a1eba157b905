"""Reading within a time limit: a statement that takes longer fails, and later ones are free."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from headway.errors import HeadwayError
from headway.store.engine import Store
from headway.store.limits import reading_within
from tests.store.factories import declare

# A few hundred thousand rows: some milliseconds, and many looks at the time.
LONG = text(
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)"
    " SELECT count(*) FROM n"
)


def test_a_statement_that_takes_too_long_fails(store: Store) -> None:
    with (
        pytest.raises((HeadwayError, DBAPIError)),
        reading_within(store, timedelta(milliseconds=1)) as tx,
    ):
        for _ in range(100):
            tx.connection.execute(LONG)


def test_what_is_quick_enough_is_answered_and_what_comes_later_is_free(store: Store) -> None:
    declare(store, "extract")
    for limit in (timedelta(minutes=1), timedelta(milliseconds=50)):
        with reading_within(store, limit) as tx:
            found = tx.connection.execute(text("SELECT external_id FROM headway_manifest"))
            assert found.scalars().all() == ["extract"]
    for _ in range(5):
        with store.reading() as tx:
            assert tx.connection.execute(LONG).scalar_one() == 300_000


def test_who_reads_within_a_limit_cannot_write(store: Store) -> None:
    with (
        pytest.raises((HeadwayError, DBAPIError), match=r"readonly|read-only"),
        reading_within(store, timedelta(minutes=1)) as tx,
    ):
        tx.connection.execute(text("DELETE FROM headway_mark"))


def test_postgresql_ends_such_a_transaction_that_stands_still(
    emptied_postgres_url: str,
) -> None:
    store = Store(emptied_postgres_url)
    with reading_within(store, timedelta(seconds=2)) as tx:
        settings = {
            name: tx.connection.execute(text(f"SHOW {name}")).scalar_one()
            for name in ("statement_timeout", "idle_in_transaction_session_timeout")
        }
    assert settings == {
        "statement_timeout": "2s",
        "idle_in_transaction_session_timeout": "5s",
    }
    with store.reading() as tx:
        assert tx.connection.execute(text("SHOW statement_timeout")).scalar_one() == "0"
    store.close()
