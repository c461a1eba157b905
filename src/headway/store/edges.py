"""Dependency edges: which parent successes a child has consumed, and which it has not.

An edge is never compared by time: the parent's ``success_seq`` rises with each success, and the
edge remembers the last one its child has dealt with.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Text,
    Update,
    and_,
    bindparam,
    cast,
    delete,
    func,
    insert,
    select,
    update,
)

from headway.domain.dependencies import EdgeState, initial_consumed_seq
from headway.store.rows import unnested
from headway.store.tables import dependency, manifest, manifest_group, manifest_state
from headway.store.transaction import Asking, Transaction, among, locked_in_order

parent = manifest.alias("parent")
parent_state = manifest_state.alias("parent_state")
edges_with_parents = dependency.outerjoin(parent, parent.c.id == dependency.c.parent_id).outerjoin(
    parent_state, parent_state.c.manifest_id == dependency.c.parent_id
)


def edges_of(tx: Asking, child_id: Column[Any]) -> ColumnElement[str]:
    """The edges of a child as one JSON text, so that its view is one row of one statement."""
    fields = (
        dependency.c.id,
        parent.c.external_id,
        parent_state.c.success_seq,
        dependency.c.consumed_seq,
        parent.c.enabled,
        parent.c.removed_at.is_(None),
    )
    listed = (
        func.json_agg(func.json_build_array(*fields))
        if tx.on_postgresql
        else func.json_group_array(func.json_array(*fields))
    )
    return _of_child(cast(listed, Text), child_id)


def parents_seen(tx: Asking, child_id: Column[Any]) -> ColumnElement[str]:
    """The newest success of every parent of a child, as JSON of edge id → success_seq."""
    named = func.json_object_agg if tx.on_postgresql else func.json_group_object
    key = cast(dependency.c.id, Text)
    newest = func.coalesce(parent_state.c.success_seq, dependency.c.consumed_seq)
    return _of_child(cast(named(key, newest), Text), child_id)


def _of_child(column: ColumnElement[Any], child_id: Column[Any]) -> ColumnElement[str]:
    return (
        select(column)
        .select_from(edges_with_parents)
        .where(dependency.c.child_id == child_id)
        .correlate(child_id.table)
        .scalar_subquery()
    )


def read_edges(text: str | None, seen_by_runs: str | None = None) -> dict[int, EdgeState]:
    """The edges in the text that :func:`edges_of` made, by id.

    What runs of the child have seen, as a list of such texts, counts as consumed.

    >>> seen = json.dumps(['{"4": 3}'])
    >>> read_edges('[[4, "extract", 3, 2, true, true]]', seen)[4].consumed_seq
    3
    """
    if text is None:
        return {}  # as of all that runs by time
    seen = _newest(json.loads(seen_by_runs or "[]"))
    return {
        edge: EdgeState(
            name if present else None, seq or 0, max(consumed, seen.get(edge, 0)), bool(enabled)
        )
        for edge, name, seq, consumed, enabled, present in json.loads(text)
    }


def _newest(seen: Iterable[str | None]) -> dict[int, int]:
    """The newest success noted for each edge in texts that :func:`parents_seen` made."""
    newest: dict[int, int] = {}
    for text in filter(None, seen):
        for edge, seq in _noted(text).items():
            newest[edge] = max(seq, newest.get(edge, 0))
    return newest


def _noted(text: str | None) -> dict[int, int]:
    """What one text notes; one that somebody edited has seen nothing, and its child runs again."""
    try:
        return {int(edge): int(seq) for edge, seq in json.loads(text or "{}").items()}
    except (AttributeError, TypeError, ValueError):
        return {}


def consume(tx: Transaction, seen: Iterable[str | None]) -> None:
    """Remember as consumed what ended runs had seen; an edge never goes back."""
    newest = sorted(_newest(seen).items())
    if newest and tx.on_postgresql:
        given = unnested((dependency.c.id, dependency.c.consumed_seq), newest).c
        these = among(tx, dependency.c.id, (edge for edge, _ in newest))
        mine = and_(locked_in_order(tx, dependency, these), dependency.c.id == given.id)
        tx.connection.execute(_consumed(given.consumed_seq).where(mine))
    elif newest:
        one = dependency.c.id == bindparam("b_id")
        tx.connection.execute(
            _consumed(bindparam("b_seq")).where(one),
            [{"b_id": edge, "b_seq": seq} for edge, seq in newest],
        )


def _consumed(seq: ColumnElement[int]) -> Update:
    forward = dependency.c.consumed_seq < seq
    return update(dependency).where(forward).values(consumed_seq=seq)


def set_parents(tx: Transaction, wanted: Mapping[int, frozenset[int]]) -> set[int]:
    """Make the edges of these children what *wanted* says; returns the children that changed.

    An edge that stays keeps what it has consumed.
    """
    found: dict[int, set[int | None]] = {child: set() for child in wanted}
    current = select(dependency.c.child_id, dependency.c.parent_id).where(
        among(tx, dependency.c.child_id, wanted)
    )
    for row in tx.connection.execute(current):
        found[row.child_id].add(row.parent_id)
    gone = {child: found[child] - wanted[child] for child in wanted}
    new = [(child, one) for child in sorted(wanted) for one in sorted(wanted[child] - found[child])]
    _remove(tx, gone)
    _add(tx, new)
    return {child for child, parents in gone.items() if parents} | {child for child, _ in new}


def _remove(tx: Transaction, gone: Mapping[int, set[int | None]]) -> None:
    """Edges whose parent is no longer named; those of removed parents (null) go with them."""
    for child, parents in gone.items():
        if None in parents:
            tx.connection.execute(
                delete(dependency).where(
                    dependency.c.child_id == child, dependency.c.parent_id.is_(None)
                )
            )
        named = [one for one in parents if one is not None]
        if named:
            tx.connection.execute(
                delete(dependency).where(
                    dependency.c.child_id == child, among(tx, dependency.c.parent_id, named)
                )
            )


def _add(tx: Transaction, new: list[tuple[int, int]]) -> None:
    if not new:
        return
    concerned = {one for pair in new for one in pair}
    states = select(
        manifest_state.c.manifest_id, manifest_state.c.success_seq, manifest_state.c.last_success_at
    ).where(among(tx, manifest_state.c.manifest_id, concerned))
    known = {row.manifest_id: row for row in tx.connection.execute(states)}
    rows = [
        {
            "child_id": child,
            "parent_id": one,
            "consumed_seq": initial_consumed_seq(
                known[one].success_seq, known[one].last_success_at, known[child].last_success_at
            ),
        }
        for child, one in new
    ]
    tx.connection.execute(insert(dependency), rows)


def fill_lost_parents(tx: Transaction, wanted: Mapping[int, set[int]]) -> set[int]:
    """Put edges to the parents *wanted* in the place of edges whose parent was removed.

    Returns the children that changed. An edge for which there is no parent goes on holding. They
    are new edges: what a running child has seen of the removed parent means nothing for these.
    """
    statement = select(dependency).where(among(tx, dependency.c.child_id, wanted))
    edges = tx.connection.execute(statement.order_by(dependency.c.id)).all()
    linked = {(edge.child_id, edge.parent_id) for edge in edges}
    missing = {
        child: iter(sorted(one for one in parents if (child, one) not in linked))
        for child, parents in wanted.items()
    }
    lost = ((edge.id, edge.child_id) for edge in edges if edge.parent_id is None)
    pairs = ((edge, child, next(missing[child], None)) for edge, child in lost)
    found = [(edge, child, one) for edge, child, one in pairs if one is not None]
    replaced = among(tx, dependency.c.id, [edge for edge, _, _ in found])
    tx.connection.execute(delete(dependency).where(replaced))
    _add(tx, [(child, one) for _, child, one in found])
    return {child for _, child, _ in found}


def children_of(tx: Transaction, parent_ids: Iterable[int]) -> list[int]:
    """The children that depend on these parents."""
    statement = select(dependency.c.child_id).where(among(tx, dependency.c.parent_id, parent_ids))
    return sorted(set(tx.connection.execute(statement).scalars()))


def all_edges(tx: Transaction) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """Every edge as (parent's, child's) external id, and the group of each that has one."""
    child = manifest.alias("child")
    above, below = manifest_group.alias("above"), manifest_group.alias("below")
    statement = select(
        parent.c.external_id, child.c.external_id, above.c.name, below.c.name
    ).select_from(
        dependency.join(parent, parent.c.id == dependency.c.parent_id)
        .join(child, child.c.id == dependency.c.child_id)
        .join(above, above.c.id == parent.c.group_id)
        .join(below, below.c.id == child.c.group_id)
    )
    edges, groups = [], {}
    for parent_name, child_name, parent_group, child_group in tx.connection.execute(statement):
        edges.append((parent_name, child_name))
        groups[parent_name], groups[child_name] = parent_group, child_group
    return edges, groups
