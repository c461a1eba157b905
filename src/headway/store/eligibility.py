"""Which queue entries may be dispatched at all: asked of every entry before any limit."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    FromClause,
    ScalarSelect,
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
from headway.domain.gates import GateName
from headway.domain.routing import Share
from headway.domain.work_queue import AUTOMATIC, EntryStatus, Source
from headway.store.tables import dead_letter, execution, manifest, manifest_group, work_queue
from headway.store.transaction import Asking, among, word

QUEUED = work_queue.c.status == word(EntryStatus.QUEUED)
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


def scheduled(one: FromClause) -> ColumnElement[bool]:
    """Whether *one* runs by time; what a person asks for, or a parent, no exclusion holds up."""
    by_time: ColumnElement[bool] = one.c.source == word(Source.SCHEDULE)
    return by_time


def delayed(one: NamedFromClause) -> TextClause:
    """Whether *one* waits for its time, in the words of the index."""
    return text(f"{one.name}.delayed")


def ready(one: NamedFromClause) -> ColumnElement[bool]:
    """Whether *one* is in the order that the dispatcher reads, in the words of the index."""
    return and_(queued(one), text(f"NOT {one.name}.delayed"))


def holds_back(tx: Asking) -> ColumnElement[bool]:
    """Whether a queued entry keeps its manifest from being queued once more: automatic entries do,
    of those somebody asked for only what may run now."""
    automatic = work_queue.c.source.in_([word(source) for source in sorted(AUTOMATIC)])
    return and_(QUEUED, or_(automatic, is_due(tx, work_queue)))


def in_order(one: FromClause) -> tuple[ColumnElement[Any], ...]:
    """How the entries of one group stand."""
    return (one.c.priority.desc(), one.c.created_at, one.c.id)


def eligible(
    tx: Asking, taken: Sequence[Share] | None = None, *, waiting: bool = False
) -> Select[tuple[int]]:
    """Entries that may run now, *taken* by somebody, the first of each manifest that runs alone.

    With *waiting*, all whose time has come but that still count as delayed. An entry whose
    manifest or group is gone comes as well, so that it can be failed instead of waiting for ever.
    """
    chosen = and_(queued(entry), delayed(entry)) if waiting else ready(entry)
    first = true() if waiting else _first_of_manifest(tx, taken, ready(better))
    return (
        select(entry.c.id)
        .select_from(entry.outerjoin(manifest, manifest.c.id == entry.c.manifest_id))
        .where(
            chosen,
            is_due(tx, entry),
            _is_taken(tx, entry, taken),
            or_(manifest.c.id.is_(None), and_(manifest.c.removed_at.is_(None), _allowed(entry))),
            ~_is_running(),
            first,
        )
    )


def conditions(tx: Asking, taken: Sequence[Share] | None) -> dict[GateName, ColumnElement[bool]]:
    """What :func:`eligible` asks of an entry, one by one, and whether its group is open.

    For whoever explains. Whether it is first of its manifest is asked among all that are due: what
    still counts as delayed then, the dispatcher puts into the order before it reads.
    """
    gone = manifest.c.id.is_(None)
    return {
        GateName.DECLARED: or_(gone, manifest.c.removed_at.is_(None)),
        GateName.ENABLED: or_(gone, _manual(entry), manifest.c.enabled),
        GateName.GROUP_ENABLED: group_open(),
        GateName.NO_DEAD_LETTER: or_(gone, _manual(entry), ~_awaiting_dead_letter()),
        GateName.DELAY_OVER: is_due(tx, entry),
        GateName.SINGLE_FLIGHT: ~_is_running(),
        GateName.TURN: _none_goes_first(tx, taken),
        GateName.WORKER: _is_taken(tx, entry, taken),
    }


def group_open() -> ColumnElement[bool]:
    """Whether what has a group has one that is not disabled."""
    return or_(manifest_group.c.id.is_(None), manifest_group.c.enabled)


def _first_of_manifest(
    tx: Asking, taken: Sequence[Share] | None, waiting: ColumnElement[bool]
) -> ColumnElement[bool]:
    return or_(
        manifest.c.id.is_(None),
        entry.c.group_id.is_(None),
        manifest.c.allow_overlap,
        entry.c.id == _best_of_manifest(tx, taken, waiting),
    )


def _none_goes_first(tx: Asking, taken: Sequence[Share] | None) -> ColumnElement[bool]:
    """Also where none of the manifest's entries can go: what holds them up is another gate's."""
    waiting = queued(better)
    nobody = _best_of_manifest(tx, taken, waiting).is_(None)
    return or_(nobody, _first_of_manifest(tx, taken, waiting))


def _best_of_manifest(
    tx: Asking, taken: Sequence[Share] | None, waiting: ColumnElement[bool]
) -> ScalarSelect[int]:
    return (
        select(better.c.id)
        .where(
            waiting,
            better.c.manifest_id == entry.c.manifest_id,
            better.c.group_id == entry.c.group_id,
            is_due(tx, better),
            _is_taken(tx, better, taken),
            _allowed(better),
        )
        .order_by(*in_order(better))
        .limit(1)
        .correlate(entry, manifest)
        .scalar_subquery()
    )


def _is_taken(tx: Asking, one: Any, taken: Sequence[Share] | None) -> ColumnElement[bool]:
    if taken is None:
        return true()
    return or_(false(), *(_is_in(tx, one, share) for share in taken))


def _is_in(tx: Asking, one: Any, share: Share) -> ColumnElement[bool]:
    known = among(tx, one.c.workflow, share.workflows)
    if not share.groups:
        return known
    named = among(tx, routed_group.c.name, share.groups)
    inside = one.c.group_id.in_(select(routed_group.c.id).where(named))
    if share.only:
        return and_(known, inside)
    return and_(known, or_(one.c.group_id.is_(None), ~inside))


def is_due(tx: Asking, one: FromClause) -> ColumnElement[bool]:
    """Whether *one* waits for no later time."""
    return or_(one.c.scheduled_at.is_(None), one.c.scheduled_at <= tx.now)


def _allowed(one: FromClause) -> ColumnElement[bool]:
    """A disabled or dead-lettered manifest stops automatic entries."""
    return or_(_manual(one), and_(manifest.c.enabled, ~_awaiting_dead_letter()))


def _manual(one: FromClause) -> ColumnElement[bool]:
    return one.c.source.not_in([word(source) for source in sorted(AUTOMATIC)])


def _awaiting_dead_letter() -> ColumnElement[bool]:
    awaiting = exists().where(
        dead_letter.c.manifest_id == manifest.c.id,
        dead_letter.c.status == word(DeadLetterStatus.AWAITING_INTERVENTION),
    )
    return awaiting.correlate(manifest)


def _is_running() -> ColumnElement[bool]:
    """Whether another run keeps an entry from starting.

    One that may not overlap waits for every run; one that may only for a run that may not, which
    was started before the manifest was changed.
    """
    alone = live_run(entry.c.manifest_id, SINGLE_FLIGHT)
    beside = live_run(entry.c.manifest_id, OVERLAPPING)
    return or_(alone, and_(not_(manifest.c.allow_overlap), beside))


def live_run(manifest_id: Column[Any], kind: TextClause) -> ColumnElement[bool]:
    """Whether a manifest has a live execution of this kind: a look into the index of that kind.

    As an EXISTS it could be answered from all that there are, and from all that were while
    somebody's snapshot stays open.
    """
    found = select(execution.c.id).where(execution.c.manifest_id == manifest_id, kind).limit(1)
    return found.correlate(manifest_id.table).scalar_subquery().is_not(None)
