"""Manifests as the manager looks at them: candidates by wake-up time, views with their guards."""

from collections.abc import Iterable
from functools import cache
from types import SimpleNamespace
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    Subquery,
    and_,
    case,
    exists,
    func,
    or_,
    select,
    union,
)

from headway.domain.dead_letter import DeadLetterStatus
from headway.domain.manifest import ManifestDispatchView
from headway.domain.schedule import Never, Schedule
from headway.domain.time_options import TimeOptions
from headway.errors import HeadwayError
from headway.store.edges import edges_of, read_edges
from headway.store.eligibility import OVERLAPPING, SINGLE_FLIGHT, holds_back, live_run
from headway.store.failures import failures_of, last_retry_at, read_failures
from headway.store.manifest_rows import retry_of, schedule_and_time_of
from headway.store.overlapping import later, running_for, seen_by_runs
from headway.store.tables import (
    dead_letter,
    manifest,
    manifest_group,
    manifest_state,
    work_queue,
)
from headway.store.transaction import (
    Draft,
    Transaction,
    among_found,
    among_given,
    draft_for,
    word,
)

# What no decision asks for; the declaration alone may be longer than all the rest of a row.
BOOKKEEPING = frozenset({"declared", "owner", "batch", "created_at", "updated_at", "removed_at"})

# How many times its limit a fair choice is made from.
LOOKED_AT = 10


def due_candidates(tx: Transaction, limit: int) -> list[int]:
    """The manifests whose wake-up time has come, locked for this cycle.

    The longest waiting of every group first, then the second of every group, and so on: a group
    with thousands of due manifests leaves room for one with a few. Where there is room for all, it
    need not be asked who is in which group.
    """
    key = manifest_state.c.manifest_id
    longest = _first(tx, limit + 1, manifest_state.c.wake_at, key)
    free = longest.with_for_update(skip_locked=True, key_share=True)
    ids = sorted(row.manifest_id for row in tx.connection.execute(free))
    if len(ids) <= limit:
        return ids
    fair = select(key).where(among_found(tx, key, _fairly(tx, limit))).order_by(key)
    locked = fair.with_for_update(skip_locked=True, key_share=True)
    return list(tx.connection.execute(locked).scalars())


def candidates_seen(tx: Transaction, limit: int) -> list[int]:
    """What :func:`due_candidates` would return now, without locking anything."""
    longest = _first(tx, limit + 1, manifest_state.c.wake_at, manifest_state.c.manifest_id)
    ids = sorted(row.manifest_id for row in tx.connection.execute(longest))
    if len(ids) <= limit:
        return ids
    return sorted(row.manifest_id for row in tx.connection.execute(_fairly(tx, limit)))


def _fairly(tx: Transaction, limit: int) -> Select[tuple[int]]:
    waiting = _waiting(tx, limit * LOOKED_AT)
    place = (waiting.c.place, waiting.c.wake_at, waiting.c.manifest_id)
    return select(waiting.c.manifest_id).order_by(*place).limit(limit)


def _waiting(tx: Transaction, limit: int) -> Subquery:
    """The longest waiting and the latest, each with its place inside its group.

    The latest are there for groups that come due while a crowd is waiting: behind a hundred
    thousand others, their turn would come last.

    Bounded and in the index's order: a plan for any value of ``now`` would otherwise expect a
    third of all manifests and read the whole table.
    """
    state = manifest_state.c
    longest = _first(tx, limit, state.wake_at, state.manifest_id).cte("longest")
    latest = _first(tx, limit, state.wake_at.desc(), state.manifest_id.desc()).cte("latest")
    looked_at = union(
        *(
            select(one.prefix_with("MATERIALIZED", dialect="postgresql"))
            for one in (longest, latest)
        )
    ).subquery("looked_at")
    place = func.row_number().over(
        partition_by=manifest.c.group_id, order_by=(looked_at.c.wake_at, looked_at.c.manifest_id)
    )
    return (
        select(looked_at, place.label("place"))
        .join(manifest, manifest.c.id == looked_at.c.manifest_id)
        .subquery()
    )


def _first(tx: Transaction, limit: int, *order: ColumnElement[Any]) -> Select[tuple[Any, ...]]:
    return (
        select(manifest_state.c.manifest_id, manifest_state.c.wake_at)
        .where(manifest_state.c.wake_at <= tx.now)
        .order_by(*order)
        .limit(limit)
    )


def load_views(tx: Transaction, manifest_ids: Iterable[int]) -> list[ManifestDispatchView]:
    """The views of these manifests, guards and counts included, in one statement.

    Two statements could pair an old success with a fresh "not active" and queue a job twice.
    """
    given = {"manifest_ids": sorted(manifest_ids), "now": tx.now}
    if not given["manifest_ids"]:
        return []
    rows = tx.ask(_views(draft_for(tx)), given)
    if tx.on_postgresql:
        return [_view(row) for row in rows]
    # Each name is looked up once for all rows: a row of SQLAlchemy that is asked takes its time.
    return [_view(SimpleNamespace(**row._mapping)) for row in rows]


def load_next(tx: Transaction, after: int, limit: int) -> list[ManifestDispatchView]:
    """The views of the next *limit* manifests *after* one of this id, in order."""
    following = select(manifest.c.id).where(manifest.c.id > after, manifest.c.removed_at.is_(None))
    ids = tx.connection.execute(following.order_by(manifest.c.id).limit(limit)).scalars().all()
    return sorted(load_views(tx, ids), key=lambda view: view.manifest_id)


@cache
def _views(draft: Draft) -> Select[tuple[object, ...]]:
    # Asked of both: of one of them a planner may choose to read all there are, in order.
    chosen = (
        among_given(draft, key, "manifest_ids")
        for key in (manifest.c.id, manifest_state.c.manifest_id)
    )
    return _view_columns(draft).where(manifest.c.removed_at.is_(None), *chosen)


def _view_columns(tx: Draft) -> Select[tuple[object, ...]]:
    return select(
        *(column for column in manifest.c if column.name not in BOOKKEEPING),
        manifest_group.c.name.label("group_name"),
        manifest_group.c.priority.label("group_priority"),
        manifest_group.c.enabled.label("group_enabled"),
        manifest_state.c.settled_until,
        manifest_state.c.wake_at,
        (manifest_state.c.success_seq > 0).label("has_successful_execution"),
        failures_of(tx).label("failures"),
        last_retry_at().label("retry_at"),
        _awaiting_dead_letter().label("has_awaiting_dead_letter"),
        _queued_work(tx).label("has_queued_work"),
        or_(_runs_alone(), live_run(manifest.c.id, OVERLAPPING)).label("has_active_execution"),
        and_(manifest.c.allow_overlap, ~_runs_alone()).label("may_overlap"),
        _if_it_may_overlap(running_for(manifest.c.id)).label("running_for"),
        edges_of(tx, manifest.c.id).label("edges"),
        _if_it_may_overlap(seen_by_runs(tx, manifest.c.id)).label("seen_by_runs"),
    ).select_from(manifest.join(manifest_group).join(manifest_state))


def _if_it_may_overlap(what: ColumnElement[Any]) -> ColumnElement[Any]:
    """Of any other a run is in the way of the next, whatever it stands for."""
    return case((manifest.c.allow_overlap, what))


def _awaiting_dead_letter() -> ColumnElement[bool]:
    return exists().where(
        dead_letter.c.manifest_id == manifest.c.id,
        dead_letter.c.status == word(DeadLetterStatus.AWAITING_INTERVENTION),
    )


def _runs_alone() -> ColumnElement[bool]:
    return live_run(manifest.c.id, SINGLE_FLIGHT)


def _queued_work(tx: Draft) -> ColumnElement[bool]:
    return exists().where(work_queue.c.manifest_id == manifest.c.id, holds_back(tx))


def _view(row: Any) -> ManifestDispatchView:
    """One bad row holds up itself and nothing else."""
    schedule, time, trouble = _timing(row)
    failures = read_failures(row.failures)
    return ManifestDispatchView(
        manifest_id=row.id,
        external_id=row.external_id,
        workflow=row.workflow,
        input=row.input,
        input_type=row.input_type,
        schedule=schedule,
        enabled=row.enabled,
        max_retries=row.max_retries,
        group_id=row.group_id,
        group_name=row.group_name,
        group_priority=row.group_priority,
        group_enabled=row.group_enabled,
        settled_until=later(row.settled_until, row.running_for),
        wake_at=row.wake_at,
        failed_count=failures.number,
        last_failed_at=failures.last_at,
        retry_at=row.retry_at,
        failed_for=failures.scheduled_for,
        failed_for_good=failures.for_good,
        has_awaiting_dead_letter=row.has_awaiting_dead_letter,
        has_queued_work=row.has_queued_work,
        has_active_execution=row.has_active_execution,
        may_overlap=row.may_overlap,
        has_successful_execution=row.has_successful_execution,
        trouble=trouble,
        kind=row.schedule_kind,
        time=time,
        declared_at=row.scheduled_since,
        retry=retry_of(row),
        join=row.join_mode or "all",
        edges=read_edges(row.edges, row.seen_by_runs),
    )


def _timing(row: Any) -> tuple[Schedule, TimeOptions, str | None]:
    try:
        return *schedule_and_time_of(row), None
    except HeadwayError as error:
        return Never(), TimeOptions(), str(error)
