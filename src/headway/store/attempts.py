"""Entries with attempts of their own: a failed one is queued again as itself, for later."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import select

from headway.domain.attempts import wait_after
from headway.domain.execution import Failure
from headway.domain.retry import RetryPolicy
from headway.store.manifest_rows import retry_of
from headway.store.tables import manifest
from headway.store.transaction import Transaction, among
from headway.store.work_queue import folded_back, put_back


class Failed(NamedTuple):
    """An execution that has failed, as its row was, and why."""

    row: Any
    failure: Failure | None


def queue_next(tx: Transaction, failed: Sequence[Failed], default: RetryPolicy) -> None:
    """Queue the next attempt of these entries, by their manifests' backoff or the *default*.

    Each attempt may be refused by its task server as often as the first.
    """
    if not failed:
        return
    policies = _policies(tx, {one.row.manifest_id for one in failed})
    rows = []
    for row, failure in failed:
        policy = policies.get(row.manifest_id) or default
        start = tx.now + wait_after(failure, row.attempt, policy, row.entry_id)
        rows.append(folded_back(row) | _waiting(tx, start, row.attempt))
    put_back(tx, rows)


def _waiting(tx: Transaction, start: datetime, attempts: int) -> dict[str, Any]:
    return {
        "attempts": attempts,
        "scheduled_at": start,
        "delayed": start > tx.now,
        "dispatch_attempts": 0,
    }


def _policies(tx: Transaction, manifest_ids: Iterable[int | None]) -> dict[int, RetryPolicy | None]:
    ids = sorted(key for key in manifest_ids if key is not None)
    statement = select(manifest).where(among(tx, manifest.c.id, ids))
    return {row.id: retry_of(row) for row in tx.connection.execute(statement)}
