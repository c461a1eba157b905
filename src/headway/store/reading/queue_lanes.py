"""The first of all that is ready, found lane by lane: a lane is one priority in one group.

PostgreSQL only: a queue of millions is not sorted to show fifty. The lanes are what the dispatcher
walks over; of each no more is read than could be shown.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    bindparam,
    column,
    func,
    select,
    true,
    tuple_,
)

from headway.store.eligibility import ready
from headway.store.lanes import walk
from headway.store.tables import manifest_group, work_queue
from headway.store.transaction import Transaction, among
from headway.store.types import Listed

# Looked up for each: a join would be planned to read all groups.
of_group: ColumnElement[int] = func.coalesce(
    select(manifest_group.c.priority)
    .where(manifest_group.c.id == work_queue.c.group_id)
    .scalar_subquery(),
    0,
)


@dataclass(frozen=True)
class Place:
    """Where an entry stands: among those that wait for a *later* time, or by its priorities."""

    later: bool
    group_priority: int
    priority: int
    moment: datetime
    id: int

    @property
    def rank(self) -> tuple[int, int]:
        """Its lane's place among the lanes."""
        return (-self.group_priority, -self.priority)


PLACED = (
    work_queue.c.id,
    work_queue.c.group_id,
    work_queue.c.source,
    work_queue.c.priority,
    work_queue.c.created_at,
    work_queue.c.scheduled_at,
    work_queue.c.delayed,
)


def narrow() -> Select[Any]:
    """What a page needs to know of an entry to find its place."""
    return select(*PLACED, of_group.label("group_priority"))


def first_ready(tx: Transaction, after: Place | None, limit: int) -> list[Any]:
    """The first *limit* ready entries behind *after* in the order of dispatch."""
    found: list[Any] = []
    ranks = _ranks(tx, after)
    for rank in sorted(ranks):
        moment = (after.moment, after.id) if after is not None and after.rank == rank else None
        found += _of_rank(tx, -rank[1], ranks[rank], moment, limit - len(found))
        if len(found) >= limit:
            break
    return found


def _ranks(tx: Transaction, after: Place | None) -> dict[tuple[int, int], list[int | None]]:
    """The groups that have entries of each rank, for ranks not better than that of *after*."""
    walked = walk(tx)
    lanes = tx.connection.execute(select(walked.c.group_id, walked.c.priority)).all()
    priorities = _priorities(tx, {row.group_id for row in lanes} - {None})
    ranks: dict[tuple[int, int], list[int | None]] = {}
    for row in lanes:
        rank = (-priorities.get(row.group_id, 0), -row.priority)
        if after is None or rank >= after.rank:
            ranks.setdefault(rank, []).append(row.group_id)
    return ranks


def _priorities(tx: Transaction, ids: Iterable[int]) -> dict[int, int]:
    groups = manifest_group.c
    statement = select(groups.id, groups.priority).where(among(tx, groups.id, ids))
    return {key: priority for key, priority in tx.connection.execute(statement)}


def _of_rank(
    tx: Transaction,
    priority: int,
    groups: Sequence[int | None],
    after: tuple[datetime, int] | None,
    limit: int,
) -> list[Any]:
    """The oldest entries of these lanes, which are all of one rank."""
    grouped = [one for one in groups if one is not None]
    if len(grouped) > limit:
        heads = _oldest(tx, grouped, priority, after, 1)
        grouped = [row.group_id for row in sorted(heads, key=_age)[:limit]]
    rows = _oldest(tx, grouped, priority, after, limit) if grouped else []
    if None in groups:
        ungrouped = _entries(priority, after).where(work_queue.c.group_id.is_(None))
        rows += tx.connection.execute(_aged(ungrouped, limit)).all()
    return sorted(rows, key=_age)[:limit]


def _oldest(
    tx: Transaction,
    groups: Sequence[int],
    priority: int,
    after: tuple[datetime, int] | None,
    each: int,
) -> list[Any]:
    array = bindparam(None, list(groups), type_=Listed(BigInteger()))
    given = func.unnest(array).table_valued(column("group_id", BigInteger), name="given")
    given = given.render_derived()
    own = _entries(priority, after).where(work_queue.c.group_id == given.c.group_id)
    lane = _aged(own, each).lateral("lane")
    statement = select(*lane.c).select_from(given.join(lane, true()))
    return list(tx.connection.execute(statement))


def _entries(priority: int, after: tuple[datetime, int] | None) -> Select[Any]:
    entry = work_queue.c
    statement = narrow().where(ready(work_queue), entry.priority == priority)
    if after is not None:
        statement = statement.where(tuple_(entry.created_at, entry.id) > tuple_(*after))
    return statement


def _aged(statement: Select[Any], limit: int) -> Select[Any]:
    return statement.order_by(work_queue.c.created_at, work_queue.c.id).limit(limit)


def _age(row: Any) -> tuple[datetime, int]:
    return (row.created_at, row.id)
