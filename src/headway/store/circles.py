"""No circles: looked for where one could have come about, and not among a million edges.

What was there before has none, so that a new one leads through a manifest that was changed. It is
walked from those, in the database, along the edges below them; only what lies there is read.
"""

from collections.abc import Collection
from typing import Any

from sqlalchemy import CTE, ColumnElement, Select, and_, not_, or_, select

from headway.domain.graph import Arrow, Edge, check_acyclic, check_no_cycle
from headway.store.edges import all_edges
from headway.store.tables import dependency, manifest, manifest_group
from headway.store.transaction import Transaction, among

# Of so many, or between so many groups, reading everything once is the shorter way.
FEW = 1000
FEW_PAIRS = 10

above, below = manifest.alias("above"), manifest.alias("below")
ends = dependency.join(above, above.c.id == dependency.c.parent_id).join(
    below, below.c.id == dependency.c.child_id
)
between_groups = above.c.group_id != below.c.group_id


def check_circles_through(tx: Transaction, changed: Collection[int]) -> None:
    """Refuse circles of groups or manifests through these manifests.

    *changed* are children with other edges than before, and manifests in another group.
    """
    if len(changed) > FEW:
        edges, groups = all_edges(tx)
        check_acyclic(groups, [Edge(parent, child) for parent, child in edges])
        return
    if _may_close_a_circle_of_groups(tx, changed):
        check_no_cycle("manifest groups", _groups_below(tx, changed))
    check_no_cycle("manifests", _manifests_below(tx, changed))


def _may_close_a_circle_of_groups(tx: Transaction, changed: Collection[int]) -> bool:
    """Whether edges of *changed* lead anew from one group to another, and on from there."""
    theirs = or_(
        among(tx, dependency.c.child_id, changed), among(tx, dependency.c.parent_id, changed)
    )
    pairs = (
        select(above.c.group_id.label("upper"), below.c.group_id.label("lower"))
        .select_from(ends)
        .where(theirs, between_groups)
        .distinct()
        .limit(FEW_PAIRS + 1)
    )
    found = tx.connection.execute(pairs).all()
    return len(found) > FEW_PAIRS or any(
        _leads_on(tx, pair.lower) and not _led_before(tx, pair.upper, pair.lower, theirs)
        for pair in found
    )


def _leads_on(tx: Transaction, group_id: int) -> bool:
    """Whether a manifest of another group depends on one of this group."""
    members = _members(group_id)
    edges = ends.join(members, members.c.id == dependency.c.parent_id)
    return _exists(tx, select(dependency.c.id).select_from(edges).where(between_groups))


def _led_before(tx: Transaction, upper_id: int, lower_id: int, theirs: ColumnElement[bool]) -> bool:
    """Whether an edge that was not changed leads from the one group to the other."""
    members = _members(lower_id)
    edges = ends.join(members, members.c.id == dependency.c.child_id)
    unchanged = and_(above.c.group_id == upper_id, not_(theirs))
    return _exists(tx, select(dependency.c.id).select_from(edges).where(unchanged))


def _members(group_id: int) -> CTE:
    """The manifests of a group, read first: how many a new one has, no statistics know."""
    members = select(manifest.c.id).where(manifest.c.group_id == group_id).cte("members")
    return members.prefix_with("MATERIALIZED", dialect="postgresql")


def _exists(tx: Transaction, statement: Select[Any]) -> bool:
    return tx.connection.execute(statement.limit(1)).first() is not None


def _groups_below(tx: Transaction, changed: Collection[int]) -> list[Arrow]:
    """Every arrow between groups that can be reached from the groups of *changed*."""
    start = select(manifest.c.group_id.label("id")).where(among(tx, manifest.c.id, changed))
    reached = start.cte("reached", recursive=True)
    reached = reached.union(
        select(below.c.group_id)
        .select_from(ends.join(reached, reached.c.id == above.c.group_id))
        .where(between_groups)
    )
    upper, lower = manifest_group.alias("upper"), manifest_group.alias("lower")
    pairs = (
        select(above.c.group_id.label("upper_id"), below.c.group_id.label("lower_id"))
        .select_from(ends.join(reached, reached.c.id == above.c.group_id))
        .where(between_groups)
        .distinct()
        .subquery("pairs")
    )
    return _arrows(
        tx,
        select(upper.c.name, lower.c.name).select_from(
            pairs.join(upper, upper.c.id == pairs.c.upper_id).join(
                lower, lower.c.id == pairs.c.lower_id
            )
        ),
    )


def _manifests_below(tx: Transaction, changed: Collection[int]) -> list[Arrow]:
    """Every edge that can be reached from *changed*."""
    start = select(manifest.c.id).where(among(tx, manifest.c.id, changed))
    reached = start.cte("reached", recursive=True)
    reached = reached.union(
        select(dependency.c.child_id).join(reached, reached.c.id == dependency.c.parent_id)
    )
    return _arrows(
        tx,
        select(above.c.external_id, below.c.external_id).select_from(
            ends.join(reached, reached.c.id == dependency.c.parent_id)
        ),
    )


def _arrows(tx: Transaction, statement: Select[Any]) -> list[Arrow]:
    return [(tail, head) for tail, head in tx.connection.execute(statement)]
