"""Dead letters: written by the manager, or where orphans are ended; resolved by an operator, or
when their manifest is removed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, bindparam, exists, func, select, update

from headway.domain.azolla.pausing import Pause, pause_of_letter, why_dead
from headway.domain.dead_letter import DeadLetter, DeadLetterStatus
from headway.domain.execution import ExecutionState
from headway.store import pause_states
from headway.store.tables import dead_letter, execution_history, manifest
from headway.store.transaction import (
    Transaction,
    among,
    insert_or_ignore,
    locked_in_order,
    word,
)

AWAITING = dead_letter.c.status == word(DeadLetterStatus.AWAITING_INTERVENTION)
REMOVED = "the manifest was removed"


@dataclass(frozen=True)
class NewDeadLetter:
    """A manifest about to be dead-lettered, and why."""

    manifest_id: int
    reason: str
    failures: int


def create(tx: Transaction, letters: Sequence[NewDeadLetter]) -> list[int]:
    """Dead-letter manifests with the input that failed; returns the manifests concerned.

    A manifest that already awaits intervention or was removed is left out. Each letter leaves a
    pause state.
    """
    letters = _possible(tx, letters)
    if not letters:
        return []
    last = _last_failures(tx, [letter.manifest_id for letter in letters])
    statement = insert_or_ignore(tx, dead_letter).returning(
        dead_letter.c.id, dead_letter.c.manifest_id, dead_letter.c.reason
    )
    rows = [_row(tx, letter, last.get(letter.manifest_id)) for letter in letters]
    created = tx.connection.execute(statement, rows).all()
    pause_states.leave(tx, [_pause(row, last.get(row.manifest_id)) for row in created])
    return [row.manifest_id for row in created]


def _possible(tx: Transaction, letters: Sequence[NewDeadLetter]) -> list[NewDeadLetter]:
    """Return the *letters* whose manifest is declared and has no unresolved dead letter."""
    if not letters:
        return []
    waits = exists().where(dead_letter.c.manifest_id == manifest.c.id, AWAITING)
    chosen = among(tx, manifest.c.id, [letter.manifest_id for letter in letters])
    declared = select(manifest.c.id).where(chosen, manifest.c.removed_at.is_(None), ~waits)
    ids = set(tx.connection.execute(declared).scalars())
    return [letter for letter in letters if letter.manifest_id in ids]


def _pause(letter: Any, failed: Any) -> Pause:
    if failed is None:
        return pause_of_letter(letter.id, f"manifest {letter.manifest_id}", letter.reason)
    why = why_dead(letter.reason, failed.failure_type, failed.failure_message)
    return pause_of_letter(letter.id, failed.external_id, why)


def _row(tx: Transaction, letter: NewDeadLetter, failed: Any) -> dict[str, Any]:
    return {
        "manifest_id": letter.manifest_id,
        "reason": letter.reason,
        "failures": letter.failures,
        "dead_lettered_at": tx.now,
        "execution_id": failed.id if failed else None,
        "input": failed.input if failed else None,
    }


def _last_failures(tx: Transaction, manifest_ids: Sequence[int]) -> dict[int, Any]:
    newest = (
        select(func.max(execution_history.c.id))
        .where(
            among(tx, execution_history.c.manifest_id, manifest_ids),
            execution_history.c.state == word(ExecutionState.FAILED),
        )
        .group_by(execution_history.c.manifest_id)
    )
    history = execution_history.c
    statement = select(
        history.manifest_id,
        history.id,
        history.input,
        history.external_id,
        history.failure_type,
        history.failure_message,
    ).where(history.id.in_(newest))
    return {row.manifest_id: row for row in tx.connection.execute(statement)}


def link_retries(tx: Transaction, retries: Mapping[int, int]) -> None:
    """Note on each dead letter the execution that retries it, now that there is one."""
    if not retries:
        return
    statement = (
        update(dead_letter)
        .where(dead_letter.c.id == bindparam("b_id"))
        .values(retry_execution_id=bindparam("b_execution_id"))
    )
    rows = [{"b_id": key, "b_execution_id": retries[key]} for key in sorted(retries)]
    tx.connection.execute(statement, rows)


def waits() -> ColumnElement[bool]:
    """The condition of a dead letter that an operator can resolve by running it again.

    The letter of a removed manifest is none of them, even before it is resolved.
    """
    # A scalar subquery: PostgreSQL would make a join of EXISTS, and read all manifests for it.
    removed_at = select(manifest.c.removed_at).where(manifest.c.id == dead_letter.c.manifest_id)
    return AWAITING & removed_at.correlate(dead_letter).scalar_subquery().is_(None)


def resolve_of_removed(tx: Transaction, manifest_ids: Sequence[int], reason: str) -> None:
    """Resolve the dead letters of manifests that were just removed."""
    _acknowledge(tx, AWAITING & among(tx, dead_letter.c.manifest_id, manifest_ids), reason)


def resolve_left_behind(tx: Transaction, limit: int) -> None:
    """Resolve at most *limit* dead letters that wait although their manifest was removed.

    Removal resolves them at once. These are of earlier versions, or were written by a manager
    while the manifest was being removed.
    """
    removed = select(manifest.c.id).where(manifest.c.removed_at.is_not(None))
    chosen = select(dead_letter.c.id).where(AWAITING, dead_letter.c.manifest_id.in_(removed))
    ids = tx.connection.execute(chosen.order_by(dead_letter.c.id).limit(limit)).scalars().all()
    if ids:
        _acknowledge(tx, AWAITING & among(tx, dead_letter.c.id, ids), REMOVED)


def _acknowledge(tx: Transaction, chosen: ColumnElement[bool], reason: str) -> None:
    values = {
        "status": DeadLetterStatus.ACKNOWLEDGED.value,
        "resolved_at": tx.now,
        "resolution_note": reason,
    }
    statement = update(dead_letter).where(locked_in_order(tx, dead_letter, chosen)).values(values)
    tx.connection.execute(statement)


def awaiting(tx: Transaction) -> list[DeadLetter]:
    """Every dead letter that waits for an operator, oldest first."""
    statement = (
        select(dead_letter, manifest.c.external_id)
        .join(manifest)
        .where(AWAITING, manifest.c.removed_at.is_(None))
        .order_by(dead_letter.c.id)
    )
    return [
        DeadLetter(
            id=row.id,
            manifest_id=row.manifest_id,
            external_id=row.external_id,
            status=DeadLetterStatus(row.status),
            dead_lettered_at=row.dead_lettered_at,
            reason=row.reason,
            failures=row.failures,
            resolved_at=row.resolved_at,
            resolution_note=row.resolution_note,
        )
        for row in tx.connection.execute(statement)
    ]
