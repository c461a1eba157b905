"""Groups as lists and pages show them, counted for the groups of a page alone."""

from collections.abc import Callable, Iterable
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, func, select

from headway.domain.views import COUNTED_TO, GroupDetail, GroupFilter, GroupOverview
from headway.store.eligibility import ready
from headway.store.reading import executions
from headway.store.reading.bounded import capped_count, search
from headway.store.reading.manifests import AWAITING, DECLARED
from headway.store.reading.text import from_text, in_text_order, within
from headway.store.reading.throughput import ended_by_group
from headway.store.tables import (
    dead_letter,
    dependency,
    execution,
    manifest,
    manifest_group,
    work_queue,
)
from headway.store.transaction import Transaction, among

LETTERS = 10_000
NONE_ENDED = {"completed": 0, "failed": 0}


def list_groups(tx: Transaction) -> list[GroupOverview]:
    """Every group with its counts, by name."""
    name = in_text_order(tx, manifest_group.c.name)
    return overviews(tx, tx.connection.execute(select(manifest_group).order_by(name)).all())


def page(
    tx: Transaction, wanted: GroupFilter, after: str | None, limit: int
) -> tuple[list[GroupOverview], str | None]:
    """The next groups after this name, and the name to go on from."""
    prefix = "" if wanted.anywhere else wanted.search
    statement = (
        select(manifest_group)
        .where(*from_text(tx, manifest_group.c.name, prefix, after or ""))
        .order_by(in_text_order(tx, manifest_group.c.name))
    )
    found = search(tx, statement, _matches(wanted), limit)
    return overviews(tx, found.rows), found.stopped_at and found.stopped_at.name


def _matches(wanted: GroupFilter) -> Callable[[Any], bool] | None:
    if not wanted.search and wanted.enabled is None:
        return None
    return lambda row: (
        within(row.name, wanted.search, wanted.anywhere) and wanted.enabled in (None, row.enabled)
    )


def overviews(tx: Transaction, rows: Iterable[Row[Any]]) -> list[GroupOverview]:
    """The groups in these rows with their counts."""
    groups = list(rows)
    ids = [row.id for row in groups]
    held = _held(tx, ids)
    active = _active(tx, ids)
    dead = _dead(tx, ids)
    ended = ended_by_group(tx, ids)
    return [
        GroupOverview(
            name=row.name,
            max_active_jobs=row.max_active_jobs,
            priority=row.priority,
            enabled=bool(row.enabled),
            active=active.get(row.id, 0),
            dead_letters=dead.get(row.id, 0),
            **held[row.id],
            **ended.get(row.id, NONE_ENDED),
        )
        for row in groups
    ]


def _held(tx: Transaction, ids: Iterable[int]) -> dict[int, dict[str, int]]:
    """How many manifests each group has, and how many entries wait in it."""
    declared = select(manifest.c.id).where(manifest.c.group_id == manifest_group.c.id, DECLARED)
    waiting = select(work_queue.c.id).where(
        work_queue.c.group_id == manifest_group.c.id, ready(work_queue)
    )
    statement = select(
        manifest_group.c.id, _number(declared, "manifests"), _number(waiting, "queued")
    ).where(among(tx, manifest_group.c.id, ids))
    return {
        row.id: {"manifests": row.manifests, "queued": row.queued}
        for row in tx.connection.execute(statement)
    }


def _number(rows: Select[Any], name: str) -> ColumnElement[int]:
    """How many *rows* a group has, up to a number that says enough."""
    return capped_count(rows.correlate(manifest_group), COUNTED_TO).scalar_subquery().label(name)


def _active(tx: Transaction, ids: Iterable[int]) -> dict[int, int]:
    live = execution.c.group_id
    statement = select(live, func.count()).where(among(tx, live, ids)).group_by(live)
    return {group: number for group, number in tx.connection.execute(statement)}


def _dead(tx: Transaction, ids: Iterable[int]) -> dict[int, int]:
    waiting = select(dead_letter.c.manifest_id).where(AWAITING).limit(LETTERS).subquery()
    group = manifest.c.group_id
    statement = (
        select(group, func.count())
        .select_from(waiting.join(manifest, manifest.c.id == waiting.c.manifest_id))
        .where(among(tx, group, ids), DECLARED)
        .group_by(group)
    )
    return {found: number for found, number in tx.connection.execute(statement)}


def detail(tx: Transaction, name: str) -> GroupDetail | None:
    """Everything about the group of this name, None if there is none."""
    statement = select(manifest_group).where(manifest_group.c.name == name)
    row = tx.connection.execute(statement).one_or_none()
    if row is None:
        return None
    [overview] = overviews(tx, [row])
    parents, children = neighbours(tx, row.id)
    return GroupDetail(
        overview=overview,
        id=row.id,
        created_at=row.created_at,
        updated_at=row.updated_at,
        holders=tuple(executions.live(tx, execution.c.group_id == row.id)),
        parents=parents,
        children=children,
    )


def neighbours(tx: Transaction, group_id: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the groups before and after one."""
    own, other = manifest.alias("own"), manifest.alias("other")
    sides = (
        (dependency.c.child_id, dependency.c.parent_id),
        (dependency.c.parent_id, dependency.c.child_id),
    )
    names = []
    for here, there in sides:
        statement = (
            select(manifest_group.c.name)
            .distinct()
            .select_from(
                own.join(dependency, here == own.c.id)
                .join(other, other.c.id == there)
                .join(manifest_group, manifest_group.c.id == other.c.group_id)
            )
            .where(own.c.group_id == group_id, other.c.group_id != group_id)
        )
        names.append(tuple(sorted(tx.connection.execute(statement).scalars())))
    return names[0], names[1]
