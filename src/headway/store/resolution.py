"""Resolving dead letters: run again what failed, or leave it at that; an operator decides.

Only letters that still wait are touched: of two people who resolve one letter, one wins.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, func, insert, select, true, update

from headway.domain.dead_letter import DeadLetterStatus
from headway.domain.work_queue import Source
from headway.store.activation import release_held
from headway.store.cancelled_entries import cancel_entries
from headway.store.dead_letters import AWAITING
from headway.store.edges import consume, parents_seen
from headway.store.settling import SCHEDULED, lock_states, settled_until
from headway.store.tables import (
    dead_letter,
    execution_history,
    manifest,
    manifest_group,
    manifest_state,
    work_queue,
)
from headway.store.transaction import Transaction, among, locked_in_order
from headway.store.wakes import Scope, leave_wakes


@dataclass(frozen=True)
class Waiting:
    """Every letter that waits, or those of one group or workflow."""

    group: str | None = None
    workflow: str | None = None


Letters = Collection[int] | Waiting


def requeue(
    tx: Transaction, letters: Letters, note: str | None, input: str | None = None
) -> dict[int, int]:
    """Queue what failed once more, with the input that failed or another one; returns letter →
    queue entry.

    Those of removed manifests are left: nothing runs them.
    """
    resolved = _resolve(tx, _of_living(tx, letters), DeadLetterStatus.RETRIED, note)
    _forget_failures(tx, resolved)
    failures = _with_failures(tx, resolved)
    _end_their_attempts(tx, failures, "its dead letter was requeued")
    entries = [_entry(tx, row, failed) for row, failed in failures]
    if input is not None:
        entries = [entry | {"input": input} for entry in entries]
    made = {}
    for entry in entries:
        statement = insert(work_queue).values(entry).returning(work_queue.c.id)
        made[entry["dead_letter_id"]] = tx.connection.execute(statement).scalar_one()
    return made


def acknowledge(tx: Transaction, letters: Letters, note: str | None) -> list[int]:
    """Leave it at the failure: what it was to run for counts as dealt with; returns the letters.

    The manifest goes on with its next occurrence.
    """
    resolved = _resolve(tx, _chosen(tx, letters), DeadLetterStatus.ACKNOWLEDGED, note)
    _forget_failures(tx, resolved)
    states = lock_states(tx, [row.manifest_id for row in resolved])
    failures = _with_failures(tx, resolved)
    for row, failed in failures:
        _count_as_dealt_with(tx, states[row.manifest_id], failed)
    _end_their_attempts(tx, failures, "its dead letter was acknowledged")
    return [row.id for row in resolved]


def workflow_of(tx: Transaction, letter: int) -> tuple[str, str] | None:
    """The external id and the workflow of the manifest whose letter waits; None if none does."""
    statement = (
        select(manifest.c.external_id, manifest.c.workflow)
        .join(dead_letter, dead_letter.c.manifest_id == manifest.c.id)
        .where(AWAITING, dead_letter.c.id == letter)
    )
    row = tx.connection.execute(statement).one_or_none()
    return None if row is None else (row.external_id, row.workflow)


def removed_manifest_of(tx: Transaction, letter: int) -> str | None:
    """The external id of a dead letter's manifest if that was removed."""
    statement = (
        select(manifest.c.external_id)
        .join(dead_letter, dead_letter.c.manifest_id == manifest.c.id)
        .where(dead_letter.c.id == letter, manifest.c.removed_at.is_not(None))
    )
    return tx.connection.execute(statement).scalar_one_or_none()


def _chosen(tx: Transaction, letters: Letters) -> ColumnElement[bool]:
    if not isinstance(letters, Waiting):
        return AWAITING & among(tx, dead_letter.c.id, letters)
    fits: list[ColumnElement[bool]] = []
    if letters.workflow is not None:
        fits.append(manifest.c.workflow == letters.workflow)
    if letters.group is not None:
        fits.append(manifest_group.c.name == letters.group)
    of = select(manifest.c.id).join(manifest_group).where(*fits)
    return AWAITING & (dead_letter.c.manifest_id.in_(of) if fits else true())


def _of_living(tx: Transaction, letters: Letters) -> ColumnElement[bool]:
    living = select(manifest.c.id).where(manifest.c.removed_at.is_(None))
    return and_(_chosen(tx, letters), dead_letter.c.manifest_id.in_(living))


def _resolve(
    tx: Transaction, chosen: ColumnElement[bool], status: DeadLetterStatus, note: str | None
) -> list[Any]:
    statement = (
        update(dead_letter)
        .where(locked_in_order(tx, dead_letter, chosen))
        .values(status=status.value, resolved_at=tx.now, resolution_note=note)
        .returning(*dead_letter.c)
    )
    return sorted(tx.connection.execute(statement).all(), key=lambda row: int(row.id))


def _forget_failures(tx: Transaction, resolved: Sequence[Any]) -> None:
    """Count failures anew from here, and have the manager look: the guard is lifted."""
    manifests = sorted(row.manifest_id for row in resolved)
    if not manifests:
        return
    lock_states(tx, manifests)
    newest = (
        select(func.coalesce(func.max(execution_history.c.id), manifest_state.c.failures_after))
        .where(execution_history.c.manifest_id == manifest_state.c.manifest_id)
        .scalar_subquery()
    )
    chosen = among(tx, manifest_state.c.manifest_id, manifests)
    tx.connection.execute(update(manifest_state).where(chosen).values(failures_after=newest))
    leave_wakes(tx, [(key, Scope.SELF) for key in manifests])


def _with_failures(tx: Transaction, resolved: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Each letter with the execution that failed last, or None where it is kept no longer."""
    ids = [row.execution_id for row in resolved if row.execution_id is not None]
    statement = select(execution_history).where(among(tx, execution_history.c.id, ids))
    failed = {row.id: row for row in tx.connection.execute(statement)}
    return [(row, failed.get(row.execution_id)) for row in resolved]


def _end_their_attempts(tx: Transaction, failures: Sequence[tuple[Any, Any]], reason: str) -> None:
    """What failed may wait for an attempt of its own: the person has decided otherwise."""
    entries = [failed.entry_id for _, failed in failures if failed is not None]
    cancel_entries(tx, among(tx, work_queue.c.id, entries), reason)
    release_held(tx, [row.manifest_id for row, _ in failures])


def _entry(tx: Transaction, row: Any, failed: Any) -> dict[str, Any]:
    of_manifest = select(manifest, parents_seen(tx, manifest.c.id).label("seen"))
    found = tx.connection.execute(of_manifest.where(manifest.c.id == row.manifest_id)).one()
    return {
        "manifest_id": found.id,
        "group_id": found.group_id,
        "workflow": found.workflow,
        "input_type": found.input_type,
        "input": found.input if row.input is None else row.input,
        "source": Source.REQUEUE.value,
        "priority": found.priority,
        "created_at": tx.now,
        "scheduled_for": _occurrence(failed),
        "parents_seen": found.seen,
        "dead_letter_id": row.id,
    }


def _count_as_dealt_with(tx: Transaction, state: Any, failed: Any) -> None:
    """As a success would: its own occurrence and what came due since, and the parents it saw."""
    occurrence = _occurrence(failed) or state.settled_until or tx.now
    tx.connection.execute(
        update(manifest_state)
        .where(manifest_state.c.manifest_id == state.manifest_id)
        .values(settled_until=settled_until(tx, state, occurrence))
    )
    consume(tx, [None if failed is None else failed.parents_seen])


def _occurrence(failed: Any) -> Any:
    return failed.scheduled_for if failed is not None and failed.source in SCHEDULED else None
