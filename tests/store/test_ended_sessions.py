"""A process that is stopped in a transaction loses its session: an outage, no fault of its work."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from headway.domain.execution import ExecutionState, Outcome
from headway.store import executions, outcomes
from headway.store.engine import TRANSIENT, Store
from tests.builders import eventually
from tests.store.factories import ME, Clock, declare, has_session, started

SOON = text("SELECT set_config('idle_in_transaction_session_timeout', '50ms', true)")


@pytest.fixture
def store(emptied_postgres_url: str, clock: Clock) -> Iterator[Store]:
    store = Store(emptied_postgres_url, clock=clock)
    yield store
    store.close()


def test_a_session_that_was_ended_is_an_outage_and_the_next_one_works(store: Store) -> None:
    declare(store, "extract")
    one = started(store)

    def finish_after_a_pause() -> None:
        with store.writing() as tx:
            pid = tx.connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
            tx.connection.execute(SOON)
            eventually(lambda: not has_session(store, pid))
            outcomes.finish(tx, ME, {one.id: Outcome(ExecutionState.COMPLETED)})

    with pytest.raises(TRANSIENT):
        finish_after_a_pause()
    with store.writing() as tx:
        assert outcomes.finish(tx, ME, {one.id: Outcome(ExecutionState.COMPLETED)})
    with store.reading() as tx:
        found = executions.find(tx, one.id)
    assert found is not None and found.state is ExecutionState.COMPLETED
