"""Deleting artifacts that are old enough, in bounded batches; what still waits never is.

What refers to other rows goes before them: a workorder once its gate has judged it, its event and
its snapshot after it, and a claim when what it was about is gone. Kept whatever their age are
events that are not processed (parked ones too), workorders that are not executed or not judged,
PENDING captures, open objectives with what they wait for, the pause of an objective that is
overdue, and the newest page of every deployment.
"""

import json
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Table,
    and_,
    delete,
    exists,
    or_,
    select,
    tuple_,
)

from headway.domain.azolla.artifacts import (
    CaptureStatus,
    ObjectiveStatus,
    ResourceType,
    WorkorderStatus,
)
from headway.store.objectives import IS_OPEN, IS_TICKET
from headway.store.tables import (
    audit,
    blocker_ref,
    capture_buffer,
    claim_record,
    context_snapshot,
    event,
    idempotency,
    logout,
    nonce,
    objective,
    output_bundle,
    pause_state,
    run_record,
    session_manifest,
    substrate_query,
    workorder,
    wrong_try,
)
from headway.store.transaction import Transaction, among, word


def delete_judged_workorders(tx: Transaction, before: datetime, limit: int) -> int:
    """Delete workorders whose gate has judged them, with their output bundles and run records."""
    judged = exists().where(
        run_record.c.work_order_id == workorder.c.work_order_id, run_record.c.created_at < before
    )
    executed = workorder.c.status == word(WorkorderStatus.EXECUTED)
    oldest = (workorder.c.created_at, workorder.c.work_order_id)
    batch = select(workorder.c.work_order_id).where(executed, judged).order_by(*oldest)
    ids = list(tx.connection.execute(batch.limit(limit)).scalars())
    for table in (run_record, output_bundle, workorder) if ids else ():
        chosen = among(tx, table.c.work_order_id, ids)
        tx.connection.execute(delete(table).where(chosen))
    return len(ids)


def delete_processed_events(tx: Transaction, before: datetime, limit: int) -> int:
    """Delete processed events whose workorders are gone, or that led to none."""
    ordered = exists().where(workorder.c.event_id == event.c.event_id)
    old = and_(event.c.processed, event.c.created_at < before, ~ordered)
    return _delete(tx, event.c.event_id, old, event.c.created_at, limit)


def delete_unused_snapshots(tx: Transaction, before: datetime, limit: int) -> int:
    """Delete snapshots no workorder refers to; whoever needs one again makes it again."""
    snapshot = context_snapshot.c
    used = exists().where(workorder.c.context_snapshot_id == snapshot.snapshot_id)
    old = and_(snapshot.created_at < before, ~used)
    return _delete(tx, snapshot.snapshot_id, old, snapshot.created_at, limit)


def delete_ended_claims(tx: Transaction, before: datetime, limit: int) -> int:
    """Delete claims that have expired and whose event or workorder is gone."""
    claim = claim_record.c
    there = or_(
        _names(ResourceType.EVENT, event.c.event_id),
        _names(ResourceType.WORKORDER, workorder.c.work_order_id),
    )
    old = and_(claim.lease_expires_at < before, ~there)
    return _delete_at_once(tx, claim_record, old, claim.lease_expires_at, limit)


def _names(kind: ResourceType, column: Column[Any]) -> ColumnElement[bool]:
    is_kind = claim_record.c.resource_type == word(kind)
    return and_(is_kind, exists().where(column == claim_record.c.resource_id))


def delete_old_queries(tx: Transaction, before: datetime, limit: int) -> int:
    """Delete questions to other deployments; their answers go along."""
    query = substrate_query.c
    old = query.created_at < before
    return _delete(tx, query.query_id, old, query.created_at, limit)


def delete_old_pauses(tx: Transaction, before: datetime, limit: int) -> int:
    """Delete pause states, except that of an objective nobody has touched since: without it the
    deadline monitor would write it once more."""
    pause = pause_state.c
    untouched = exists().where(
        objective.c.objective_id == pause.objective_id,
        IS_TICKET,
        IS_OPEN,
        objective.c.updated_at <= pause.created_at,
    )
    old = and_(pause.created_at < before, ~untouched)
    return _delete(tx, pause.pause_id, old, pause.created_at, limit)


def delete_old_pages(tx: Transaction, before: datetime, limit: int) -> int:
    """Delete session manifests, except the newest of each deployment."""
    page, newer = session_manifest.c, session_manifest.alias("newer")
    place = tuple_(page.created_at, page.manifest_id)
    followed = exists().where(
        newer.c.azolla_id == page.azolla_id,
        tuple_(newer.c.created_at, newer.c.manifest_id) > place,
    )
    old = and_(page.created_at < before, followed)
    return _delete(tx, page.manifest_id, old, page.created_at, limit)


def delete_processed_captures(tx: Transaction, before: datetime, limit: int) -> int:
    """Delete captures somebody has dealt with."""
    capture = capture_buffer.c
    processed = capture.status == word(CaptureStatus.PROCESSED)
    old = and_(processed, capture.updated_at < before)
    return _delete(tx, capture.capture_id, old, capture.updated_at, limit)


def delete_done_objectives(tx: Transaction, before: datetime, limit: int) -> int:
    """Delete tickets that are DONE, with their blockers."""
    done = objective.c.status == word(ObjectiveStatus.DONE)
    old = and_(done, IS_TICKET, objective.c.updated_at < before)
    key = objective.c.objective_id
    batch = select(key).where(old).order_by(objective.c.updated_at).limit(limit)
    statement = delete(objective).where(key.in_(batch), old).returning(objective.c.blocked_on)
    named = [json.loads(one) for one in tx.connection.execute(statement).scalars()]
    ids = {blocker for blockers in named for blocker in blockers}
    if ids:
        chosen = among(tx, blocker_ref.c.blocker_id, ids)
        tx.connection.execute(delete(blocker_ref).where(chosen))
    return len(named)


def delete_old_nonces(tx: Transaction, before: datetime, limit: int) -> int:
    """Forget requests that are too old to be sent again."""
    return _delete_at_once(tx, nonce, nonce.c.seen_at < before, nonce.c.seen_at, limit)


def delete_old_answers(tx: Transaction, before: datetime, limit: int) -> int:
    """Forget answers to requests that nobody will send again."""
    asked = idempotency.c.created_at
    return _delete_at_once(tx, idempotency, asked < before, asked, limit)


def delete_old_logouts(tx: Transaction, before: datetime, limit: int) -> int:
    """Forget sessions that were ended and would be over by themselves."""
    return _delete_at_once(tx, logout, logout.c.until < before, logout.c.until, limit)


def delete_old_tries(tx: Transaction, before: datetime, limit: int) -> int:
    """Forget wrong tries that count no more."""
    minute = wrong_try.c.minute
    return _delete_at_once(tx, wrong_try, minute < before, minute, limit)


def delete_old_audit(tx: Transaction, before: datetime, limit: int) -> int:
    """Delete what the audit says about long ago."""
    return _delete(tx, audit.c.id, audit.c.at < before, audit.c.id, limit)


def _delete(
    tx: Transaction,
    key: Column[Any],
    old: ColumnElement[bool],
    oldest: Column[Any],
    limit: int,
) -> int:
    """Lock first, then look again: a reference that came in between is seen by the second look."""
    batch = select(key).where(old).order_by(oldest).limit(limit)
    ids: list[Any] = list(tx.connection.execute(batch.with_for_update(skip_locked=True)).scalars())
    if not ids:
        return 0
    chosen = and_(among(tx, key, ids), old)
    return tx.connection.execute(delete(key.table).where(chosen)).rowcount


def _delete_at_once(
    tx: Transaction, table: Table, old: ColumnElement[bool], oldest: Column[Any], limit: int
) -> int:
    """For what nothing refers to and whose key is more than a column."""
    key = list(table.primary_key)
    batch = select(*key).where(old).order_by(oldest).limit(limit)
    return tx.connection.execute(delete(table).where(tuple_(*key).in_(batch), old)).rowcount
