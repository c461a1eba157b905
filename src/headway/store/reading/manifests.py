"""Manifests as lists and pages show them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, exists, func, or_, select

from headway.domain.dead_letter import DeadLetterStatus
from headway.domain.manifest import DEPENDENTS, DORMANT
from headway.domain.views import ManifestFilter, ManifestOverview, state_of
from headway.errors import HeadwayError
from headway.store.eligibility import OVERLAPPING, QUEUED, SINGLE_FLIGHT, live_run
from headway.store.manifest_rows import schedule_of
from headway.store.reading.bounded import Found, in_order_of, search
from headway.store.reading.names import group_named
from headway.store.reading.text import from_text, in_text_order, within
from headway.store.tables import (
    dead_letter,
    dependency,
    manifest,
    manifest_group,
    manifest_state,
    work_queue,
)
from headway.store.transaction import Transaction, among, word

AWAITING = dead_letter.c.status == word(DeadLetterStatus.AWAITING_INTERVENTION)
DECLARED = manifest.c.removed_at.is_(None)

_NARROW = (
    manifest.c.id,
    manifest.c.external_id,
    manifest.c.workflow,
    manifest.c.enabled,
    manifest.c.schedule_kind,
    manifest.c.group_id,
)
# Searching in the middle of names finds few among many.
EXAMINED_NAMES = 5_000


def list_manifests(tx: Transaction) -> list[ManifestOverview]:
    """Every manifest that is not removed, by external id."""
    return _overviews(tx, _columns().order_by(in_text_order(tx, manifest.c.external_id)))


def of_ids(tx: Transaction, ids: Sequence[int]) -> list[ManifestOverview]:
    """These manifests in this order."""
    return in_order_of(ids, _overviews(tx, _columns().where(among(tx, manifest.c.id, ids))))


def page(
    tx: Transaction, wanted: ManifestFilter, after: tuple[str, int] | None, limit: int
) -> tuple[list[ManifestOverview], tuple[str, int] | None]:
    """The next manifests after this name and id, and the place to go on from.

    By name; those of one group, and the dead-lettered ones, in the order of their declaration.
    """
    group_id = None if wanted.group is None else group_named(tx, wanted.group)
    if wanted.group is not None and group_id is None:
        return [], None
    found = _found(tx, wanted, group_id, after, limit)
    stopped = found.stopped_at and (found.stopped_at.external_id, found.stopped_at.id)
    return of_ids(tx, [row.id for row in found.rows]), stopped


def _found(
    tx: Transaction,
    wanted: ManifestFilter,
    group_id: int | None,
    after: tuple[str, int] | None,
    limit: int,
) -> Found:
    name, number = after or ("", 0)
    statement: Select[Any] = select(*_NARROW).where(DECLARED)
    if wanted.dead_lettered:
        waiting = select(dead_letter.c.manifest_id).where(
            AWAITING, dead_letter.c.manifest_id > number
        )
        statement = _after(statement, number).where(manifest.c.id.in_(waiting))
    elif group_id is not None and not (wanted.search and not wanted.anywhere):
        statement = _after(statement, number).where(manifest.c.group_id == group_id)
    else:
        prefix = "" if wanted.anywhere else wanted.search
        statement = statement.where(*from_text(tx, manifest.c.external_id, prefix, name))
        statement = statement.order_by(in_text_order(tx, manifest.c.external_id))
    return search(tx, statement, _matches(wanted, group_id), limit, EXAMINED_NAMES)


def _after(statement: Select[Any], number: int) -> Select[Any]:
    return statement.where(manifest.c.id > number).order_by(manifest.c.id)


def _matches(wanted: ManifestFilter, group_id: int | None) -> Callable[[Any], bool] | None:
    """What is asked of each row; a part of it may have been decided by an index."""
    checks: list[Callable[[Any], bool]] = []
    if wanted.search:
        checks.append(lambda row: within(row.external_id, wanted.search, wanted.anywhere))
    for column, value in (
        ("group_id", group_id),
        ("workflow", wanted.workflow),
        ("enabled", wanted.enabled),
        ("schedule_kind", wanted.kind),
    ):
        if value is not None:
            checks.append(_equal(column, value))
    return (lambda row: all(check(row) for check in checks)) if checks else None


def _equal(column: str, value: object) -> Callable[[Any], bool]:
    return lambda row: bool(getattr(row, column) == value)


def _columns() -> Select[Any]:
    return (
        select(
            *(column for column in manifest.c if column.name not in ("declared", "input")),
            manifest_group.c.name.label("group_name"),
            manifest_group.c.enabled.label("group_enabled"),
            manifest_state.c.last_success_at,
            manifest_state.c.settled_until,
            manifest_state.c.wake_at,
            running().label("running"),
            queued().label("queued"),
            dead_lettered().label("dead_lettered"),
        )
        .select_from(manifest.join(manifest_group).join(manifest_state))
        .where(DECLARED)
    )


def running() -> ColumnElement[bool]:
    """Whether a manifest has a live execution."""
    return or_(live_run(manifest.c.id, SINGLE_FLIGHT), live_run(manifest.c.id, OVERLAPPING))


def queued() -> ColumnElement[bool]:
    """Whether an entry of a manifest waits."""
    return exists().where(work_queue.c.manifest_id == manifest.c.id, QUEUED)


def dead_lettered() -> ColumnElement[bool]:
    """Whether a manifest waits for a person."""
    return exists().where(dead_letter.c.manifest_id == manifest.c.id, AWAITING)


def _overviews(tx: Transaction, statement: Select[Any]) -> list[ManifestOverview]:
    rows = tx.connection.execute(statement).all()
    parents = _parents(tx, [row.id for row in rows if row.schedule_kind in DEPENDENTS])
    return [_overview(row, parents.get(row.id, "a removed parent")) for row in rows]


def _overview(row: Row[Any], parents: str) -> ManifestOverview:
    return ManifestOverview(
        id=row.id,
        external_id=row.external_id,
        workflow=row.workflow,
        group_name=row.group_name,
        schedule_kind=row.schedule_kind,
        enabled=bool(row.enabled),
        last_success_at=row.last_success_at,
        settled_until=row.settled_until,
        wake_at=row.wake_at,
        schedule=_in_words(row, parents),
        group_enabled=bool(row.group_enabled),
        running=bool(row.running),
        queued=bool(row.queued),
        dead_lettered=bool(row.dead_lettered),
        state=state_of(
            running=bool(row.running),
            dead=bool(row.dead_lettered),
            enabled=bool(row.enabled and row.group_enabled),
            queued=bool(row.queued),
        ),
    )


def _in_words(row: Row[Any], parents: str) -> str:
    if row.schedule_kind == DORMANT:
        return f"when activated by {parents}"
    if row.schedule_kind in DEPENDENTS:
        return f"after {parents}"
    try:
        return schedule_of(row).describe()
    except HeadwayError:
        return "its schedule cannot be understood"


def _parents(tx: Transaction, children: Iterable[int]) -> dict[int, str]:
    """The parents of each child: the first by name, and how many more."""
    parent = manifest.alias("parent")
    statement = (
        select(
            dependency.c.child_id,
            func.min(parent.c.external_id).label("first"),
            func.count().label("number"),
        )
        .join(parent, parent.c.id == dependency.c.parent_id)
        .where(among(tx, dependency.c.child_id, children))
        .group_by(dependency.c.child_id)
    )
    return {
        row.child_id: row.first if row.number == 1 else f"{row.first} and {row.number - 1} more"
        for row in tx.connection.execute(statement)
    }
