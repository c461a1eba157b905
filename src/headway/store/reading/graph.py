"""The dependency graph of groups and of manifests, never more of it than can be shown."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlalchemy import Select, func, select

from headway.domain.views import Graph, GraphEdge, GraphNode
from headway.store.reading import groups, manifests
from headway.store.reading.names import group_named, manifest_named
from headway.store.reading.text import in_text_order
from headway.store.tables import dependency, manifest, manifest_group
from headway.store.transaction import Transaction, among

EXAMINED = 20_000
# How far a neighbourhood reaches.
LEVELS = 6
Pairs = dict[tuple[int, int], int]

child = manifest.alias("child")
parent = manifest.alias("parent")


def of_groups(tx: Transaction, around: str | None, limit: int) -> Graph:
    """Groups and what runs after what among them; with *around* its neighbourhood."""
    if around is None:
        name = in_text_order(tx, manifest_group.c.name)
        first = select(manifest_group.c.id).order_by(name).limit(limit + 1)
        ids = list(tx.connection.execute(first).scalars())
        cut = len(ids) > limit
        pairs, more = _group_pairs(tx, ids[:limit])
        return _graph_of_groups(tx, ids[:limit], pairs, cut or more, None)
    start = group_named(tx, around)
    if start is None:
        return Graph((), (), truncated=False, around=around)
    ids, pairs, cut = _spread(tx, start, limit, _group_pairs)
    return _graph_of_groups(tx, ids, pairs, cut, around)


def of_manifests(tx: Transaction, group: str | None, around: str | None, limit: int) -> Graph:
    """Manifests of a group, or the neighbourhood of one, or the first of all."""
    if around is not None:
        start = manifest_named(tx, around)
        if start is None:
            return Graph((), (), truncated=False, around=around)
        ids, pairs, cut = _spread(tx, start, limit, _manifest_pairs)
        return _graph_of_manifests(tx, ids, pairs, cut, around)
    first = select(manifest.c.id).where(manifests.DECLARED).order_by(manifest.c.id)
    if group is not None:
        first = first.where(manifest.c.group_id == group_named(tx, group))
    ids = list(tx.connection.execute(first.limit(limit + 1)).scalars())
    pairs, more = _manifest_pairs(tx, ids[:limit])
    return _graph_of_manifests(tx, ids[:limit], pairs, len(ids) > limit or more, None)


def _spread(
    tx: Transaction,
    start: int,
    limit: int,
    pairs_of: Callable[[Transaction, Sequence[int]], tuple[Pairs, bool]],
) -> tuple[list[int], Pairs, bool]:
    """Breadth first from *start*: the nodes reached, their edges, and whether there are more."""
    seen, frontier, pairs, cut = {start: None}, [start], Pairs(), False
    for level in range(LEVELS + 1):
        if not frontier:
            break
        found, more = pairs_of(tx, frontier)
        pairs |= found
        reached = sorted({one for pair in found for one in pair} - seen.keys())
        frontier = reached[: limit - len(seen)] if level < LEVELS else []
        cut = cut or more or len(frontier) < len(reached)
        seen |= dict.fromkeys(frontier)
    return list(seen), pairs, cut


def _group_pairs(tx: Transaction, ids: Sequence[int]) -> tuple[Pairs, bool]:
    """The edges between groups that begin or end in one of these, and how many each stands for."""
    pairs: Pairs = {}
    more = False
    for here in (child, parent):
        looked_at = (
            select(parent.c.group_id.label("parent"), child.c.group_id.label("child"))
            .select_from(
                dependency.join(child, child.c.id == dependency.c.child_id).join(
                    parent, parent.c.id == dependency.c.parent_id
                )
            )
            .where(among(tx, here.c.group_id, ids))
            .limit(EXAMINED)
            .subquery()
        )
        statement = select(looked_at, func.count().label("number")).group_by(
            looked_at.c.parent, looked_at.c.child
        )
        rows = tx.connection.execute(statement).all()
        more = more or sum(row.number for row in rows) == EXAMINED
        pairs |= {(row.parent, row.child): row.number for row in rows if row.parent != row.child}
    return pairs, more


def _manifest_pairs(tx: Transaction, ids: Sequence[int]) -> tuple[Pairs, bool]:
    """The edges that begin or end in one of these manifests."""
    pairs: Pairs = {}
    more = False
    for here in (dependency.c.child_id, dependency.c.parent_id):
        statement: Select[Any] = (
            select(dependency.c.parent_id, dependency.c.child_id)
            .where(among(tx, here, ids), dependency.c.parent_id.is_not(None))
            .limit(EXAMINED)
        )
        rows = tx.connection.execute(statement).all()
        more = more or len(rows) == EXAMINED
        pairs |= {(row.parent_id, row.child_id): 1 for row in rows}
    return pairs, more


def _graph_of_groups(
    tx: Transaction, ids: Sequence[int], pairs: Pairs, cut: bool, around: str | None
) -> Graph:
    rows = tx.connection.execute(
        select(manifest_group).where(among(tx, manifest_group.c.id, ids))
    ).all()
    shown = groups.overviews(tx, rows)
    nodes = [GraphNode(one.name, one.state, holds=one) for one in shown]
    names = {row.id: row.name for row in rows}
    return _graph(nodes, names, pairs, cut, around)


def _graph_of_manifests(
    tx: Transaction, ids: Sequence[int], pairs: Pairs, cut: bool, around: str | None
) -> Graph:
    shown = manifests.of_ids(tx, ids)
    nodes = [GraphNode(one.external_id, one.state, one.group_name) for one in shown]
    return _graph(nodes, {one.id: one.external_id for one in shown}, pairs, cut, around)


def _graph(
    nodes: Iterable[GraphNode],
    names: dict[int, str],
    pairs: Pairs,
    cut: bool,
    around: str | None,
) -> Graph:
    edges = (
        GraphEdge(names[before], names[after], number)
        for (before, after), number in pairs.items()
        if before in names and after in names
    )
    ordered = sorted(edges, key=lambda edge: (edge.parent, edge.child))
    return Graph(tuple(sorted(nodes, key=lambda one: one.name)), tuple(ordered), cut, around)
