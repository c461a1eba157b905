"""Reading for somebody who must not keep the database busy: no writing, and a time limit."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from sqlalchemy import text

from headway.store.engine import Store
from headway.store.transaction import Transaction

INSTRUCTIONS_BETWEEN_LOOKS = 10_000


@contextmanager
def reading_within(store: Store, limit: timedelta) -> Iterator[Transaction]:
    """A transaction that only reads, whose statements fail when they take longer than *limit*.

    >>> with reading_within(store, timedelta(seconds=2)) as tx: ...  # doctest: +SKIP
    """
    with store.reading() as tx:
        if tx.on_postgresql:
            _limit_statements(tx, limit)
            yield tx
            return
        with _interrupted_after(tx, limit):
            yield tx


def _limit_statements(tx: Transaction, limit: timedelta) -> None:
    milliseconds = max(1, limit // timedelta(milliseconds=1))
    statement = text(
        "SELECT set_config('statement_timeout', :limit, true),"
        " set_config('idle_in_transaction_session_timeout', '5s', true)"
    )
    tx.connection.execute(statement, {"limit": f"{milliseconds}ms"})


@contextmanager
def _interrupted_after(tx: Transaction, limit: timedelta) -> Iterator[None]:
    """SQLite has no timeout for a statement, but asks now and then whether to go on."""
    driver = tx.connection.connection.driver_connection
    assert driver is not None
    deadline = time.monotonic() + limit.total_seconds()
    driver.set_progress_handler(lambda: time.monotonic() > deadline, INSTRUCTIONS_BETWEEN_LOOKS)
    try:
        yield
    finally:
        driver.set_progress_handler(None, 0)
