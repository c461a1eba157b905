"""A store that is closed while it is in use."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import pytest
from sqlalchemy import text

from headway.store.engine import Store
from headway.store.transaction import Transaction

ONE = text("SELECT 1")


def answers(connection: Any) -> bool:
    """Whether a connection of the driver is open still."""
    try:
        connection.cursor().execute("SELECT 1")
    except Exception:
        return False
    return True


@pytest.mark.parametrize("opening", [Store.reading, Store.writing])
def test_a_transaction_that_outlasts_it_ends_with_its_connection(
    store: Store, opening: Any
) -> None:
    open_transaction: AbstractContextManager[Transaction] = opening(store)
    with open_transaction as tx:
        connection = tx.connection.connection.driver_connection
        store.close()
        assert tx.connection.execute(ONE).scalar_one() == 1
    assert not answers(connection)
    with store.reading() as tx:
        assert tx.connection.execute(ONE).scalar_one() == 1


def test_a_store_that_is_used_after_it_was_closed_keeps_its_connections(store: Store) -> None:
    def connection_of_a_reading() -> Any:
        with store.reading() as tx:
            return tx.connection.connection.driver_connection

    store.close()
    assert connection_of_a_reading() is connection_of_a_reading()
