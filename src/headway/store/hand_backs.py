"""Hand-backs of runs that had begun: free of charge, but not without end.

Each needs an event outside the run, and some jobs cause that event: they stop their own worker, or
keep it from renewing its lease. Such a run would be begun and handed back for ever. Reads
execution_history by its index on entries, only where a run that had begun is handed back. Called by
``outcomes``.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, func, literal_column, select

from headway.domain.attempts import handed_back_too_often
from headway.domain.execution import Execution, ExecutionState, Failure, FailureCode, Outcome
from headway.store.tables import execution_history
from headway.store.transaction import Transaction, among, word

# The steps of a run whose body had not begun.
NO_STEPS: ColumnElement[str] = literal_column("'[]'")


@dataclass
class Charge:
    """The limit for a job that is handed back without end: so many crashes.

    ``dead_lettered`` are the last runs of manifests that had no crash left, once they have ended.

    >>> Charge(max_crashes=3).dead_lettered
    []
    """

    max_crashes: int
    dead_lettered: list[Execution] = field(default_factory=list)


def charged(tx: Transaction, ends: Sequence[tuple[Any, Outcome]]) -> list[tuple[Any, Outcome]]:
    """These ends, with a lost worker in place of a hand-back that was one too many."""
    begun = [row for row, outcome in ends if _had_begun(row, outcome)]
    before = _handed_back(tx, {row.entry_id for row in begun}) if begun else {}
    too_often = {
        row.id: number for row in begun if handed_back_too_often(number := before.get(_key(row), 0))
    }
    return [
        (row, _lost(row, too_often[row.id]) if row.id in too_often else outcome)
        for row, outcome in ends
    ]


def _had_begun(row: Any, outcome: Outcome) -> bool:
    """Whether a body may have run: the first claim of an entry records its first step already."""
    if outcome.state is not ExecutionState.HANDED_BACK or row.state != ExecutionState.IN_PROGRESS:
        return False
    return row.running_step is not None if outcome.steps is None else bool(outcome.steps)


def _key(row: Any) -> tuple[int, int, int]:
    return row.entry_id, row.attempt, row.crashes


def _handed_back(tx: Transaction, entry_ids: Collection[int]) -> dict[tuple[int, int, int], int]:
    """How often each was handed back in a row: any other end changes its attempt or its crashes."""
    history = execution_history.c
    key = (history.entry_id, history.attempt, history.crashes)
    statement = (
        select(*key, func.count().label("number"))
        .where(
            among(tx, history.entry_id, entry_ids),
            history.state == word(ExecutionState.HANDED_BACK),
            history.started_at.is_not(None),
            history.steps != NO_STEPS,
        )
        .group_by(*key)
    )
    return {_key(row): row.number for row in tx.connection.execute(statement)}


def _lost(row: Any, before: int) -> Outcome:
    told = (
        f"was begun and handed back {before + 1} times in a row: each time its worker stopped or "
        "lost its lease; this counts as a lost worker"
    )
    failure = Failure(row.running_step or row.workflow, FailureCode.WORKER_LOST, told)
    return Outcome(ExecutionState.FAILED, failure)
