"""Workorders, what they are made from and what comes of them: one of each for an event."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Select, Table, and_, exists, or_, select, update

from headway.domain.azolla.artifacts import (
    Artifact,
    ContextSnapshot,
    DiazotrophType,
    OutputBundle,
    PauseState,
    RunRecord,
    SessionManifest,
    SubstrateQuery,
    SubstrateQueryResponse,
    Workorder,
    WorkorderStatus,
)
from headway.domain.azolla.ids import run_of, session_of, workorder_of
from headway.domain.work_queue import NewEntry
from headway.store.artifact_rows import from_row, to_row
from headway.store.tables import (
    context_snapshot,
    execution,
    output_bundle,
    pause_state,
    run_record,
    session_manifest,
    substrate_query,
    substrate_query_response,
    work_queue,
    workorder,
)
from headway.store.transaction import Transaction, insert_or_ignore, word
from headway.store.work_queue import enqueue

A = TypeVar("A", bound=Artifact)

_CREATED = workorder.c.status == word(WorkorderStatus.CREATED)
_FOR_A_MANIFEST = workorder.c.diazotroph_type == word(DiazotrophType.MANIFEST_BUILDER)


def keep_answers(
    tx: Transaction, asked: Sequence[tuple[SubstrateQuery, SubstrateQueryResponse]]
) -> None:
    """Write down what was asked and answered; a second time changes nothing."""
    _write(tx, substrate_query, [to_row(query) for query, _ in asked])
    _write(tx, substrate_query_response, [to_row(response) for _, response in asked])


def keep_snapshot(tx: Transaction, snapshot: ContextSnapshot) -> ContextSnapshot:
    """Write the snapshot and return it, or the one that stands: whoever is second changes none."""
    _write(tx, context_snapshot, [to_row(snapshot)])
    return _only(find_snapshot(tx, snapshot.snapshot_id))


def create(tx: Transaction, event_id: str, new: Workorder, entry: NewEntry) -> Workorder | None:
    """Write the workorder and the queue entry that executes it, both or neither.

    Returns it, or the one that stands if it was created before; None while another manifest is
    being built.
    """
    known = find(tx, new.work_order_id)
    if known is not None:
        return known
    if open_event(tx) is not None:
        return None
    written = tx.connection.execute(
        insert_or_ignore(tx, workorder)
        .values(**to_row(new, event_id=event_id))
        .returning(workorder.c.work_order_id)
    ).first()
    if written is None:  # somebody else's has come in between
        return None
    [entry_id] = enqueue(tx, [entry])
    own = workorder.c.work_order_id == new.work_order_id
    tx.connection.execute(update(workorder).where(own).values(entry_id=entry_id))
    return new


def open_event(tx: Transaction) -> str | None:
    """The event whose manifest is being built: ordered, and not judged yet."""
    judged = exists().where(run_record.c.work_order_id == workorder.c.work_order_id)
    unfinished = select(workorder.c.event_id).where(_FOR_A_MANIFEST, or_(_CREATED, ~judged))
    return tx.connection.execute(unfinished.limit(1)).scalar_one_or_none()


def abandoned(tx: Transaction) -> list[Workorder]:
    """Those not judged yet whose queue entry has ended: nobody will execute them any more."""
    judged = exists().where(run_record.c.work_order_id == workorder.c.work_order_id)
    queued = exists().where(
        work_queue.c.id == workorder.c.entry_id,
        work_queue.c.status.in_((word("queued"), word("held"))),
    )
    live = exists().where(execution.c.entry_id == workorder.c.entry_id)
    lost = select(workorder).where(_FOR_A_MANIFEST, ~judged, ~queued, ~live)
    return _all(tx, Workorder, lost.order_by(workorder.c.created_at))


def find(tx: Transaction, work_order_id: str) -> Workorder | None:
    """The workorder of this id."""
    chosen = select(workorder).where(workorder.c.work_order_id == work_order_id)
    return _one(tx, Workorder, chosen)


def find_snapshot(tx: Transaction, snapshot_id: str) -> ContextSnapshot | None:
    """The snapshot of this id."""
    chosen = select(context_snapshot).where(context_snapshot.c.snapshot_id == snapshot_id)
    return _one(tx, ContextSnapshot, chosen)


def find_output(tx: Transaction, work_order_id: str) -> OutputBundle | None:
    """What came of a workorder."""
    chosen = select(output_bundle).where(output_bundle.c.work_order_id == work_order_id)
    return _one(tx, OutputBundle, chosen)


def find_run(tx: Transaction, work_order_id: str) -> RunRecord | None:
    """What the gate thought of it."""
    chosen = select(run_record).where(run_record.c.work_order_id == work_order_id)
    return _one(tx, RunRecord, chosen)


def execute(tx: Transaction, order: Workorder, bundle: OutputBundle) -> OutputBundle:
    """Write what came of *order* and end it; returns what stands if somebody was first."""
    _write(tx, output_bundle, [to_row(bundle, work_order_id=order.work_order_id)])
    own = and_(workorder.c.work_order_id == order.work_order_id, _CREATED)
    tx.connection.execute(update(workorder).where(own).values(status=WorkorderStatus.EXECUTED))
    return _only(find_output(tx, order.work_order_id))


def judge(
    tx: Transaction,
    record: RunRecord,
    pause_id: str,
    pause: PauseState,
    page: SessionManifest | None,
) -> None:
    """Write what the gate decided: the record, why work rests now, and the page if it passed."""
    _write(tx, run_record, [to_row(record)])
    _write(tx, pause_state, [to_row(pause, pause_id=pause_id)])
    if page is not None:
        _write(tx, session_manifest, [to_row(page)])


@dataclass(frozen=True)
class Judged:
    """A workorder that is over: what came of it, what the gate thought, and the page if any."""

    record: RunRecord
    bundle: OutputBundle
    page: SessionManifest | None


def newest_judged(tx: Transaction, event_id: str | None = None) -> Judged | None:
    """The last workorder that was judged, or the one of an event."""
    wanted = [] if event_id is None else [run_record.c.run_id == run_of(workorder_of(event_id))]
    order = (run_record.c.created_at.desc(), run_record.c.run_id)
    record = _one(tx, RunRecord, select(run_record).where(*wanted).order_by(*order).limit(1))
    if record is None:
        return None
    key = session_of(record.work_order_id)
    page = select(session_manifest).where(session_manifest.c.manifest_id == key)
    bundle = _only(find_output(tx, record.work_order_id))
    return Judged(record, bundle, _one(tx, SessionManifest, page))


def _write(tx: Transaction, table: Table, rows: list[dict[str, Any]]) -> None:
    if rows:
        tx.connection.execute(insert_or_ignore(tx, table), rows)


def _one(tx: Transaction, kind: type[A], statement: Select[Any]) -> A | None:
    found = _all(tx, kind, statement)
    return found[0] if found else None


def _all(tx: Transaction, kind: type[A], statement: Select[Any]) -> list[A]:
    rows = tx.connection.execute(statement).mappings().all()
    return [from_row(kind, dict(row)) for row in rows]


def _only(found: A | None) -> A:
    assert found is not None, "it was written in this transaction"
    return found
