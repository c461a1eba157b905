"""Which queue entries may be dispatched at all: asked of every entry before any limit."""

from collections.abc import Collection

from sqlalchemy import (
    ColumnElement,
    Subquery,
    and_,
    case,
    exists,
    func,
    or_,
    select,
    text,
    true,
)

from headway.domain.dead_letter import DeadLetterStatus
from headway.domain.work_queue import AUTOMATIC, EntryStatus, Source
from headway.store.tables import dead_letter, execution, manifest, manifest_group, work_queue
from headway.store.transaction import Transaction, among, word

QUEUED = work_queue.c.status == word(EntryStatus.QUEUED)
# Exclusions are about what runs by time: what a person asks for, or a parent, is not held up.
SCHEDULED = work_queue.c.source == word(Source.SCHEDULE)
# In the words of the index: SQLAlchemy's "single_flight = 1" would keep SQLite from using it.
SINGLE_FLIGHT = text(f"{execution.name}.single_flight")


def ranked_in_group(tx: Transaction, workflows: Collection[str] | None = None) -> Subquery:
    """Eligible entries (of *workflows*), one per manifest, each with its rank inside its group."""
    eligible = _eligible(tx, workflows)
    rank = func.row_number().over(
        partition_by=eligible.c.group_id,
        order_by=(eligible.c.priority.desc(), eligible.c.created_at, eligible.c.id),
    )
    return (
        select(eligible, rank.label("rank_in_group"))
        .where(eligible.c.rank_in_manifest == 1)
        .subquery()
    )


def _eligible(tx: Transaction, workflows: Collection[str] | None) -> Subquery:
    """Queued, due, allowed by manifest and group, and the first of its manifest."""
    first_of_manifest = func.row_number().over(
        partition_by=func.coalesce(work_queue.c.manifest_id, -work_queue.c.id),
        order_by=(work_queue.c.priority.desc(), work_queue.c.created_at, work_queue.c.id),
    )
    active = (
        select(execution.c.group_id, func.count().label("active"))
        .group_by(execution.c.group_id)
        .subquery("active")
    )
    return (
        select(
            work_queue.c.id,
            work_queue.c.workflow,
            work_queue.c.source,
            work_queue.c.priority,
            work_queue.c.created_at,
            work_queue.c.manifest_id,
            work_queue.c.group_id,
            case((SCHEDULED, manifest.c.exclusions)).label("exclusions"),
            manifest.c.time_zone,
            manifest.c.external_id,
            manifest_group.c.name.label("group_name"),
            func.coalesce(manifest_group.c.priority, 0).label("group_priority"),
            manifest_group.c.max_active_jobs.label("group_max_active_jobs"),
            func.coalesce(active.c.active, 0).label("group_active"),
            first_of_manifest.label("rank_in_manifest"),
        )
        .select_from(
            work_queue.outerjoin(manifest, manifest.c.id == work_queue.c.manifest_id)
            .outerjoin(manifest_group, manifest_group.c.id == work_queue.c.group_id)
            .outerjoin(active, active.c.group_id == work_queue.c.group_id)
        )
        .where(QUEUED, _is_due(tx), _is_allowed(), ~_is_running(), _is_known(tx, workflows))
        .subquery()
    )


def _is_known(tx: Transaction, workflows: Collection[str] | None) -> ColumnElement[bool]:
    return true() if workflows is None else among(tx, work_queue.c.workflow, workflows)


def _is_due(tx: Transaction) -> ColumnElement[bool]:
    return or_(work_queue.c.scheduled_at.is_(None), work_queue.c.scheduled_at <= tx.now)


def _is_allowed() -> ColumnElement[bool]:
    """A disabled group stops every entry; a disabled or dead-lettered manifest automatic ones."""
    manual = work_queue.c.source.not_in([word(source) for source in sorted(AUTOMATIC)])
    awaiting = exists().where(
        dead_letter.c.manifest_id == work_queue.c.manifest_id,
        dead_letter.c.status == word(DeadLetterStatus.AWAITING_INTERVENTION),
    )
    return or_(
        work_queue.c.manifest_id.is_(None),
        and_(
            manifest_group.c.enabled,
            manifest.c.removed_at.is_(None),
            or_(manual, and_(manifest.c.enabled, ~awaiting)),
        ),
    )


def _is_running() -> ColumnElement[bool]:
    return exists().where(execution.c.manifest_id == work_queue.c.manifest_id, SINGLE_FLIGHT)
