"""Everything about one manifest."""

from datetime import timedelta
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Row, select

from headway.domain.preview import ComingRun, coming_runs
from headway.domain.views import COUNTED_TO, EdgeView, ManifestDefinition, ManifestDetail, state_of
from headway.errors import HeadwayError
from headway.store.manifest_rows import retry_of, schedule_of, span_of, time_of
from headway.store.reading import dead_letters, execution_pages, manifests, queue
from headway.store.reading.bounded import capped_count
from headway.store.reading.names import manifest_named
from headway.store.tables import dependency, manifest, manifest_group, manifest_state
from headway.store.transaction import Transaction

EDGES = 100
RUNS = 20
COMING = 5
AHEAD = timedelta(days=366)

parent_state = manifest_state.alias("parent_state")


def detail(tx: Transaction, external_id: str) -> ManifestDetail | None:
    """Everything about the manifest of this name, None if there is none."""
    manifest_id = manifest_named(tx, external_id)
    found = [] if manifest_id is None else manifests.of_ids(tx, [manifest_id])
    if manifest_id is None or not found:
        return None
    row = _row(tx, manifest_id)
    next_runs, trouble = _coming(tx, row)
    return ManifestDetail(
        overview=found[0],
        definition=_definition(row),
        parents=_edges(tx, dependency.c.child_id == manifest_id, dependency.c.parent_id),
        parent_count=_count(tx, dependency.c.child_id == manifest_id),
        children=_edges(tx, dependency.c.parent_id == manifest_id, dependency.c.child_id),
        child_count=_count(tx, dependency.c.parent_id == manifest_id),
        next_runs=next_runs,
        executions=tuple(execution_pages.newest_of(tx, manifest_id, RUNS)),
        dead_letter=dead_letters.awaiting_of(tx, manifest_id),
        entries=tuple(queue.of_manifest(tx, manifest_id)),
        trouble=trouble,
    )


def _row(tx: Transaction, manifest_id: int) -> Row[Any]:
    joined = manifest.join(manifest_state).join(manifest_group)
    statement = (
        select(
            manifest,
            manifest_state.c.settled_until,
            manifest_group.c.enabled.label("group_enabled"),
        )
        .select_from(joined)
        .where(manifest.c.id == manifest_id)
    )
    return tx.connection.execute(statement).one()


def _coming(tx: Transaction, row: Row[Any]) -> tuple[tuple[ComingRun, ...], str | None]:
    """The next runs by time, and what keeps the row from being understood."""
    try:
        timing = time_of(row).timing(schedule_of(row))
        if not (row.enabled and row.group_enabled):
            return (), None
        runs = coming_runs(
            timing,
            row.external_id,
            tx.now,
            tx.now + AHEAD,
            settled=row.settled_until,
            declared_at=row.scheduled_since,
        )
        return tuple(islice(runs, COMING)), None
    except HeadwayError as error:
        return (), str(error)


def _definition(row: Row[Any]) -> ManifestDefinition:
    return ManifestDefinition(
        input=row.input,
        input_type=row.input_type,
        priority=row.priority,
        time_zone=row.time_zone,
        exclusions=_exclusions(row),
        misfire_policy=row.misfire_policy,
        misfire_threshold=span_of(row.misfire_threshold_seconds),
        catch_up_limit=row.catch_up_limit,
        first_run=row.first_run,
        variance=span_of(row.variance_seconds),
        max_retries=row.max_retries,
        retry=_retry(row),
        timeout=span_of(row.timeout_seconds),
        join=row.join_mode,
        when_busy=row.when_busy,
        allow_overlap=bool(row.allow_overlap),
        owner=row.owner,
        batch=row.batch,
        scheduled_since=row.scheduled_since,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _exclusions(row: Row[Any]) -> tuple[str, ...]:
    try:
        return tuple(f"{one.describe()} ({one.then})" for one in time_of(row).exclusions)
    except HeadwayError:
        return ()


def _retry(row: Row[Any]) -> str | None:
    """How it is tried again, in words."""
    try:
        policy = retry_of(row)
    except HeadwayError:
        return None
    if policy is None:
        return None
    spread = f", up to {policy.jitter:.0%} longer" if policy.jitter else ""
    return f"after {policy.delay}, × {policy.multiplier:g} up to {policy.max_delay}{spread}"


def _count(tx: Transaction, chosen: ColumnElement[bool]) -> int:
    edges = select(dependency.c.id).where(chosen)
    return int(tx.connection.execute(capped_count(edges, COUNTED_TO)).scalar_one())


def _edges(
    tx: Transaction, chosen: ColumnElement[bool], other: ColumnElement[Any]
) -> tuple[EdgeView, ...]:
    """The first edges that are *chosen*, with what stands at the *other* end."""
    statement = (
        select(
            dependency.c.consumed_seq,
            parent_state.c.success_seq,
            manifest.c.external_id,
            manifest.c.enabled,
            manifest_group.c.name.label("group_name"),
            manifest_group.c.enabled.label("group_enabled"),
            manifest_state.c.last_success_at,
            manifests.running().label("running"),
            manifests.queued().label("queued"),
            manifests.dead_lettered().label("dead_lettered"),
        )
        .select_from(_ends(other))
        .where(chosen)
        .order_by(dependency.c.child_id, dependency.c.parent_id)
        .limit(EDGES)
    )
    return tuple(_edge(row) for row in tx.connection.execute(statement))


def _ends(other: ColumnElement[Any]) -> FromClause:
    joined = dependency.outerjoin(manifest, manifest.c.id == other)
    joined = joined.outerjoin(manifest_group, manifest_group.c.id == manifest.c.group_id)
    joined = joined.outerjoin(manifest_state, manifest_state.c.manifest_id == manifest.c.id)
    return joined.outerjoin(parent_state, parent_state.c.manifest_id == dependency.c.parent_id)


def _edge(row: Row[Any]) -> EdgeView:
    enabled = bool(row.enabled and row.group_enabled)
    return EdgeView(
        external_id=row.external_id,
        group_name=row.group_name,
        enabled=enabled,
        state=state_of(
            running=bool(row.running),
            dead=bool(row.dead_lettered),
            enabled=enabled,
            queued=bool(row.queued),
        ),
        last_success_at=row.last_success_at,
        fresh=(row.success_seq or 0) > row.consumed_seq,
    )
