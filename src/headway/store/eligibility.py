"""Which queue entries may be dispatched at all: asked of every entry before any limit."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    FromClause,
    Select,
    TextClause,
    and_,
    exists,
    false,
    not_,
    or_,
    select,
    text,
    true,
)
from sqlalchemy.sql.selectable import NamedFromClause

from headway.domain.dead_letter import DeadLetterStatus
from headway.domain.routing import Share
from headway.domain.work_queue import AUTOMATIC, EntryStatus, Source
from headway.store.tables import dead_letter, execution, manifest, manifest_group, work_queue
from headway.store.transaction import Transaction, among, word

QUEUED = work_queue.c.status == word(EntryStatus.QUEUED)
# Exclusions are about what runs by time: what a person asks for, or a parent, is not held up.
SCHEDULED = work_queue.c.source == word(Source.SCHEDULE)
# In the words of the index: SQLAlchemy's "single_flight = 1" would keep SQLite from using it.
SINGLE_FLIGHT = text(f"{execution.name}.single_flight")
OVERLAPPING = text(f"NOT {execution.name}.single_flight")

entry = work_queue.alias("entry")
better = work_queue.alias("better")
routed_group = manifest_group.alias("routed_group")


def queued(one: FromClause) -> ColumnElement[bool]:
    """Whether *one* is queued, for now or for later."""
    status: ColumnElement[bool] = one.c.status == word(EntryStatus.QUEUED)
    return status


def delayed(one: NamedFromClause) -> TextClause:
    """Whether *one* waits for its time, in the words of the index."""
    return text(f"{one.name}.delayed")


def ready(one: NamedFromClause) -> ColumnElement[bool]:
    """Whether *one* is in the order that the dispatcher reads, in the words of the index."""
    return and_(queued(one), text(f"NOT {one.name}.delayed"))


def holds_back(tx: Transaction) -> ColumnElement[bool]:
    """Whether a queued entry keeps its manifest from being queued once more: automatic entries do,
    of those somebody asked for only what may run now."""
    automatic = work_queue.c.source.in_([word(source) for source in sorted(AUTOMATIC)])
    return and_(QUEUED, or_(automatic, _is_due(tx, work_queue)))


def in_order(one: FromClause) -> tuple[ColumnElement[Any], ...]:
    """How the entries of one group stand."""
    return (one.c.priority.desc(), one.c.created_at, one.c.id)


def eligible(
    tx: Transaction, taken: Sequence[Share] | None = None, *, waiting: bool = False
) -> Select[tuple[int]]:
    """Entries that may run now, *taken* by somebody, the first of each manifest that runs alone.

    With *waiting*, all whose time has come but that still count as delayed. An entry whose
    manifest or group is gone comes as well, so that it can be failed instead of waiting for ever.
    """
    chosen = and_(queued(entry), delayed(entry)) if waiting else ready(entry)
    return (
        select(entry.c.id)
        .select_from(entry.outerjoin(manifest, manifest.c.id == entry.c.manifest_id))
        .where(
            chosen,
            _is_due(tx, entry),
            _is_taken(tx, entry, taken),
            or_(manifest.c.id.is_(None), and_(manifest.c.removed_at.is_(None), _allowed(entry))),
            ~_is_running(),
            true() if waiting else _first_of_manifest(tx, taken),
        )
    )


def _first_of_manifest(tx: Transaction, taken: Sequence[Share] | None) -> ColumnElement[bool]:
    first = (
        select(better.c.id)
        .where(
            ready(better),
            better.c.manifest_id == entry.c.manifest_id,
            better.c.group_id == entry.c.group_id,
            _is_due(tx, better),
            _is_taken(tx, better, taken),
            _allowed(better),
        )
        .order_by(*in_order(better))
        .limit(1)
        .correlate(entry, manifest)
        .scalar_subquery()
    )
    return or_(
        manifest.c.id.is_(None),
        entry.c.group_id.is_(None),
        manifest.c.allow_overlap,
        entry.c.id == first,
    )


def _is_taken(tx: Transaction, one: Any, taken: Sequence[Share] | None) -> ColumnElement[bool]:
    if taken is None:
        return true()
    return or_(false(), *(_is_in(tx, one, share) for share in taken))


def _is_in(tx: Transaction, one: Any, share: Share) -> ColumnElement[bool]:
    known = among(tx, one.c.workflow, share.workflows)
    if not share.groups:
        return known
    named = among(tx, routed_group.c.name, share.groups)
    inside = one.c.group_id.in_(select(routed_group.c.id).where(named))
    if share.only:
        return and_(known, inside)
    return and_(known, or_(one.c.group_id.is_(None), ~inside))


def _is_due(tx: Transaction, one: FromClause) -> ColumnElement[bool]:
    return or_(one.c.scheduled_at.is_(None), one.c.scheduled_at <= tx.now)


def _allowed(one: FromClause) -> ColumnElement[bool]:
    """A disabled or dead-lettered manifest stops automatic entries."""
    manual = one.c.source.not_in([word(source) for source in sorted(AUTOMATIC)])
    awaiting = exists().where(
        dead_letter.c.manifest_id == manifest.c.id,
        dead_letter.c.status == word(DeadLetterStatus.AWAITING_INTERVENTION),
    )
    return or_(manual, and_(manifest.c.enabled, ~awaiting.correlate(manifest)))


def _is_running() -> ColumnElement[bool]:
    """Whether another run keeps an entry from starting.

    One that may not overlap waits for every run; one that may only for a run that may not, which
    was started before the manifest was changed.
    """
    alone = live_run(entry.c.manifest_id, SINGLE_FLIGHT)
    beside = live_run(entry.c.manifest_id, OVERLAPPING)
    return or_(alone, and_(not_(manifest.c.allow_overlap), beside))


def live_run(manifest_id: Column[Any], kind: TextClause) -> ColumnElement[bool]:
    """Whether a manifest has a live execution of this kind: a look into the index of that kind."""
    found = exists().where(execution.c.manifest_id == manifest_id, kind)
    return found.correlate(manifest_id.table)
