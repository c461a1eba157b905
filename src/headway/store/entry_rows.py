"""Rows of the work queue as the dispatcher reads them, with what manifest and group say."""

from typing import Any

from sqlalchemy import ColumnElement, LargeBinary, Select, case, cast, func, select, true

from headway.domain.routing import LOCAL
from headway.domain.work_queue import RestingTimes, Source, WorkQueueEntry
from headway.store.eligibility import scheduled
from headway.store.tables import manifest, manifest_group, work_queue
from headway.store.transaction import Asking

SOURCES = {source.value: source for source in Source}


OF_GROUP = (
    manifest_group.c.id.label("found_group"),
    manifest_group.c.name.label("group_name"),
    manifest_group.c.priority.label("group_priority"),
    manifest_group.c.max_active_jobs.label("group_max_active_jobs"),
    manifest_group.c.last_shut_at,
)


def entry_rows(tx: Asking, source: Any) -> Select[Any]:
    """What is read of entries in *source*, which has them in it."""
    return select(*entry_columns(tx, work_queue), *OF_GROUP).select_from(
        source.outerjoin(manifest, manifest.c.id == work_queue.c.manifest_id).outerjoin(
            manifest_group, manifest_group.c.id == work_queue.c.group_id
        )
    )


def walked_rows(tx: Asking, given: Any, walk: Select[Any], one: Any) -> Select[Any]:
    """The same of *one*, which a *walk* finds beside its manifest, for each row *given*.

    The walk brings everything along. To look its finds up by their ids afterwards would be a join,
    and a planner that believes the queue empty begins it at the wrong end: a walk for every entry.
    """
    found = walk.with_only_columns(*entry_columns(tx, one)).lateral("found")
    return select(*found.c, *OF_GROUP).select_from(
        given.join(found, true()).outerjoin(manifest_group, manifest_group.c.id == found.c.group_id)
    )


def entry_columns(tx: Asking, one: Any) -> tuple[ColumnElement[Any], ...]:
    """What is read of *one* entry and its manifest, before what is read of its group."""
    return (
        one.c.id,
        one.c.workflow,
        one.c.source,
        one.c.priority,
        one.c.created_at,
        one.c.scheduled_at,
        one.c.manifest_id,
        one.c.group_id,
        _input_bytes(tx, one).label("input_bytes"),
        case((scheduled(one), manifest.c.exclusions)).label("exclusions"),
        manifest.c.time_zone,
        manifest.c.external_id,
        manifest.c.allow_overlap,
        manifest.c.id.label("found_manifest"),
    )


def _input_bytes(tx: Asking, one: Any) -> ColumnElement[int]:
    if tx.on_postgresql:
        return func.octet_length(one.c.input)
    return func.length(cast(one.c.input, LargeBinary))


def to_entry(row: Any) -> WorkQueueEntry:
    """A row of :func:`entry_rows` as the domain's value."""
    # In the order of the columns: looked up by name, there are too many of them.
    key, workflow, source, priority, created_at, scheduled_at, manifest_id, group_id, *rest = row
    input_bytes, exclusions, time_zone, external_id, allow_overlap, *rest = rest
    found_manifest, found_group, group_name, group_priority, group_cap, last_shut_at = rest
    ready_at = created_at if scheduled_at is None else max(created_at, scheduled_at)
    return WorkQueueEntry(
        key,
        workflow,
        SOURCES[source],
        priority,
        created_at,
        manifest_id,
        group_id,
        external_id,
        group_name,
        group_priority or 0,
        group_cap,
        RestingTimes(exclusions, time_zone or "UTC") if exclusions else None,
        ready_at if last_shut_at is None else max(ready_at, last_shut_at),
        input_bytes,
        _missing(manifest_id, group_id, found_manifest, found_group),
        bool(allow_overlap),
        LOCAL,
        ready_at,
    )


def _missing(
    manifest_id: int | None,
    group_id: int | None,
    found_manifest: int | None,
    found_group: int | None,
) -> str | None:
    """What the entry belongs to although it does not exist: a row somebody edited."""
    if manifest_id is not None and found_manifest is None:
        return f"manifest {manifest_id}"
    if group_id is not None and found_group is None:
        return f"group {group_id}"
    if manifest_id is not None and group_id is None:
        return "group"
    return None
