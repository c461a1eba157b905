"""Ids of executions rise, and are above every one there is where they are needed for more."""

from __future__ import annotations

import pytest
from sqlalchemy import text, update

from headway.domain.execution import Outcome
from headway.store.engine import Store
from headway.store.execution_ids import reserve_unused
from headway.store.tables import execution, execution_history
from tests.store.factories import (
    COMPLETED,
    FAILED,
    declare,
    dispatched,
    finish,
    ran,
    rows_of,
    started,
)


def reserved(store: Store, count: int) -> list[int]:
    with store.writing() as tx:
        return list(reserve_unused(tx, count))


def set_back(store: Store) -> None:
    """As somebody does who restores one table of a backup."""
    with store.writing() as tx:
        tx.connection.execute(
            text(
                "SELECT setval(pg_get_serial_sequence('headway_execution', 'id'), 1)"
                if tx.on_postgresql
                else "UPDATE sqlite_sequence SET seq = 1 WHERE name = 'headway_execution'"
            )
        )


def test_ids_are_reserved_one_after_another_and_come_once(store: Store) -> None:
    first = reserved(store, 3)
    second = reserved(store, 2)
    assert first == list(range(first[0], first[0] + 3))
    assert second == list(range(second[0], second[0] + 2))
    assert second[0] > first[-1]
    declare(store, "extract")
    assert dispatched(store) > second[-1]


@pytest.mark.parametrize("lives", [True, False])
def test_what_is_reserved_is_above_all_there_is_wherever_ids_began_anew(
    store: Store, lives: bool
) -> None:
    declare(store, "extract", "load")
    for _ in range(4):
        ran(store)
    highest = dispatched(store) if lives else ran(store).id
    set_back(store)
    assert min(reserved(store, 2)) > highest
    assert dispatched(store, "load") > highest + 2


@pytest.mark.parametrize("outcome", [COMPLETED, FAILED], ids=["completed", "failed"])
def test_a_run_whose_id_is_in_the_history_already_ends_under_another(
    store: Store, outcome: Outcome
) -> None:
    declare(store, "extract", "load")
    before = ran(store, "extract")
    run, other = started(store, "extract"), started(store, "load")
    with store.writing() as tx:
        this = execution.c.id == run.id
        tx.connection.execute(update(execution).where(this).values(id=before.id))
    [ended] = finish(store, run._replace(id=before.id), outcome)
    assert ended.id > other.id
    assert (ended.entry_id, ended.state) == (run.entry_id, outcome.state)
    kept = {row["id"]: row["state"] for row in rows_of(store, execution_history)}
    assert kept == {before.id: "completed", ended.id: outcome.state}
