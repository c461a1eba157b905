"""An execution that has ended has no running step; the steps that ran stay on record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import insert, select

from headway.domain.execution import Execution, ExecutionState, Outcome, StepRun
from headway.history import History
from headway.store import executions, outcomes
from headway.store.engine import Store
from headway.store.tables import execution_history
from headway.store.tables import executions as live_and_finished
from headway.store.transaction import Transaction
from tests.store.factories import (
    CANCELLED,
    COMPLETED,
    FAILED,
    ME,
    NOON,
    declare,
    dispatched,
    rows_of,
)

RAN = (StepRun("load", NOON, 1.5),)
UNFINISHED = (StepRun("load", NOON),)
End = Callable[[Transaction, int], Any]


def finished(outcome: Outcome) -> End:
    return lambda tx, key: outcomes.finish(tx, ME, {key: outcome})


ENDS: dict[str, tuple[End, tuple[StepRun, ...]]] = {
    "completed": (finished(COMPLETED._replace(steps=RAN)), RAN),
    "completed without steps": (finished(COMPLETED), UNFINISHED),
    "failed": (finished(FAILED._replace(steps=RAN)), RAN),
    "cancelled": (finished(CANCELLED._replace(steps=RAN)), RAN),
    "handed back": (lambda tx, key: outcomes.hand_back(tx, ME, [key]), UNFINISHED),
    "stale": (lambda tx, key: outcomes.fail_stale_in_progress(tx, [key]), UNFINISHED),
    "orphaned": (lambda tx, key: outcomes.end_orphans(tx, 3), UNFINISHED),
}


def in_step(store: Store, step: str) -> Execution:
    declare(store, "extract")
    key = dispatched(store)
    with store.writing() as tx:
        claimed = executions.claim_one(tx, ME, key, {"work": step})
    assert claimed is not None and claimed.was_claimed_with(step)
    return claimed


def steps_shown(store: Store, key: int) -> list[tuple[Any, Any]]:
    """Step and its start, wherever an execution is shown."""
    history = History(store)
    [listed] = history.executions.all()
    detail = history.executions.detail(key)
    assert history.executions.page().items[0].running_step is None
    assert detail.attempts[0].running_step is None
    return [(one.running_step, one.step_started_at) for one in (listed, detail.execution)]


@pytest.mark.parametrize("how", ENDS)
def test_an_execution_that_has_ended_has_no_running_step(store: Store, how: str) -> None:
    end, steps = ENDS[how]
    claimed = in_step(store, "load")
    with store.writing() as tx:
        end(tx, claimed.id)
    assert steps_shown(store, claimed.id) == [(None, None)] * 2
    assert History(store).executions.detail(claimed.id).steps == steps


@pytest.mark.parametrize("how", [how for how, (_, steps) in ENDS.items() if steps == UNFINISHED])
def test_an_end_that_names_no_steps_keeps_those_that_were_noted(store: Store, how: str) -> None:
    claimed = in_step(store, "load")
    with store.writing() as tx:
        assert executions.note_step(tx, ME, claimed.id, "store", RAN) == ""
    with store.writing() as tx:
        ENDS[how][0](tx, claimed.id)
    assert History(store).executions.detail(claimed.id).steps == (*RAN, StepRun("store", NOON))


@pytest.mark.parametrize("how", sorted(ENDS.keys() - {"completed without steps"}))
def test_the_view_for_sql_has_no_running_step_of_an_ended_execution(store: Store, how: str) -> None:
    claimed = in_step(store, "load")
    with store.writing() as tx:
        ENDS[how][0](tx, claimed.id)
    with store.reading() as tx:
        row = tx.connection.execute(select(live_and_finished)).one()
    assert (row.running_step, row.step_started_at) == (None, None)


def test_what_is_returned_of_an_ended_execution_has_no_running_step(store: Store) -> None:
    claimed = in_step(store, "load")
    with store.writing() as tx:
        [ended] = outcomes.hand_back(tx, ME, [claimed.id])
    assert (ended.running_step, ended.step_started_at) == (None, None)


def test_a_row_of_an_earlier_version_that_kept_its_step_shows_none(store: Store) -> None:
    claimed = in_step(store, "load")
    with store.writing() as tx:
        ENDS["completed"][0](tx, claimed.id)
    [row] = rows_of(store, execution_history)
    kept = {"running_step": "load", "step_started_at": NOON, "steps": None}
    with store.writing() as tx:
        tx.connection.execute(execution_history.delete())
        tx.connection.execute(insert(execution_history).values(row | kept))
    assert steps_shown(store, claimed.id) == [(None, None)] * 2
    assert History(store).executions.detail(claimed.id).steps == UNFINISHED


def test_an_execution_in_progress_shows_its_step(store: Store) -> None:
    claimed = in_step(store, "load")
    shown = History(store).executions.detail(claimed.id).execution
    assert shown.state is ExecutionState.IN_PROGRESS
    assert (shown.running_step, shown.step_started_at) == ("load", NOON)
