"""The wake inbox: who may make a manifest due sooner leaves a row, the manager alone reads it.

Only the manager writes ``manifest_state.wake_at``; writing it from both sides loses wake-ups.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Insert,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    true,
    update,
)

from headway.store.rows import unnested
from headway.store.tables import dependency, manifest, manifest_state, wake
from headway.store.transaction import Transaction, among, among_found, word
from headway.store.types import Listed

# Of how many groups, or parents with many children, one cycle wakes a part.
PAGED_AT_ONCE = 10


class Scope(StrEnum):
    """Whom a wake-up is for."""

    SELF = "self"
    CHILDREN = "children"
    GROUP = "group"


def leave_wakes(tx: Transaction, wakes: Sequence[tuple[int, Scope]]) -> None:
    """Ask the manager to look at manifests again; the id is a group's for :attr:`Scope.GROUP`."""
    for scope in Scope:
        subjects = [subject for subject, wanted in wakes if wanted is scope]
        if subjects:
            _leave(tx, scope, subjects)


def _leave(tx: Transaction, scope: Scope, subjects: Sequence[int]) -> None:
    if not tx.on_postgresql:
        of = _subject(scope).name
        rows = [{of: subject, "scope": scope.value} for subject in subjects]
        tx.connection.execute(insert(wake), rows)
        return
    tx.ask(_leaving(scope), {"subjects": list(subjects)})


@cache
def _leaving(scope: Scope) -> Insert:
    of = _subject(scope)
    every = select(func.unnest(bindparam("subjects", type_=Listed(of.type))), word(scope))
    return insert(wake).from_select([of, wake.c.scope], every)


def _subject(scope: Scope) -> Column[Any]:
    return wake.c.group_id if scope is Scope.GROUP else wake.c.manifest_id


def absorb_wakes(tx: Transaction, limit: int) -> int:
    """Take wake rows out of the inbox and make their manifests candidates now.

    About *limit* manifests at a time: a group may have a million, and waking them all at once
    would outlast every timeout. A row dealt with in part stays and says how far it has come.

    A row also stays while the state of its manifest is being changed: nobody who changes one may
    hold up the whole cycle, and whoever does leaves the wake-up in the inbox until they are done.
    """
    oldest = select(wake).order_by(wake.c.id).limit(limit).with_for_update(skip_locked=True)
    pages = _pages(tx, tx.connection.execute(oldest).all(), limit)
    if not pages:
        return 0
    held = _wake_all_but_held(tx, {key for page in pages for key in page.manifest_ids})
    for page in pages:
        if page.row.scope != Scope.SELF:
            leave_wakes(tx, [(key, Scope.SELF) for key in page.manifest_ids if key in held])
        if page.has_next:
            here = wake.c.id == page.row.id
            tx.connection.execute(update(wake).where(here).values(after_id=page.manifest_ids[-1]))
    kept = {page.row.id for page in pages if page.has_next or page.waits_for(held)}
    done = [page.row.id for page in pages if page.row.id not in kept]
    tx.connection.execute(delete(wake).where(among(tx, wake.c.id, done)))
    return len(done)


@dataclass(frozen=True)
class _Page:
    """A wake row and the manifests it wakes in this cycle, in the order of their ids."""

    row: Any
    manifest_ids: Sequence[int]
    has_next: bool = False

    def waits_for(self, held: Collection[int]) -> bool:
        return self.row.scope == Scope.SELF and self.row.manifest_id in held


def _pages(tx: Transaction, rows: Sequence[Any], limit: int) -> list[_Page]:
    of_one = [_Page(row, (row.manifest_id,)) for row in rows if row.scope == Scope.SELF]
    parents = [row for row in rows if row.scope == Scope.CHILDREN]
    groups = [row for row in rows if row.scope == Scope.GROUP]
    return [*of_one, *_of_children(tx, parents, limit), *_of_groups(tx, groups, limit)]


def _of_children(tx: Transaction, rows: Sequence[Any], limit: int) -> list[_Page]:
    """All in one statement if they are few: every success leaves a row, and most have no child."""
    if not rows:
        return []
    edge = select(dependency.c.parent_id, dependency.c.child_id).order_by(
        dependency.c.parent_id, dependency.c.child_id
    )
    chosen = edge.where(among(tx, dependency.c.parent_id, {row.manifest_id for row in rows}))
    edges = tx.connection.execute(chosen.limit(limit + 1)).all()
    if len(edges) > limit:
        return _of_many_children(tx, rows, limit)
    children: dict[int, list[int]] = {}
    for parent_id, child_id in edges:
        children.setdefault(parent_id, []).append(child_id)
    return [_Page(row, children.get(row.manifest_id, [])) for row in rows]


def _of_many_children(tx: Transaction, rows: Sequence[Any], limit: int) -> list[_Page]:
    """Page by page, and shared by those alone that have children at all."""
    is_parent = exists().where(dependency.c.parent_id == manifest.c.id)
    named = among(tx, manifest.c.id, {row.manifest_id for row in rows})
    parents = set(tx.connection.execute(select(manifest.c.id).where(named, is_parent)).scalars())
    childless = [_Page(row, ()) for row in rows if row.manifest_id not in parents]
    others = [row for row in rows if row.manifest_id in parents]
    paged = _paged(tx, others, dependency.c.parent_id, dependency.c.child_id, limit)
    return [*childless, *paged]


def _of_groups(tx: Transaction, rows: Sequence[Any], limit: int) -> list[_Page]:
    return _paged(tx, rows, manifest.c.group_id, manifest.c.id, limit)


def _paged(
    tx: Transaction, rows: Sequence[Any], by: Column[Any], listed: Column[Any], limit: int
) -> list[_Page]:
    """The next page of the oldest of these rows, each with its share of the limit."""
    share = max(1, limit // max(1, min(len(rows), PAGED_AT_ONCE)))
    pages = []
    for row in rows[:PAGED_AT_ONCE]:
        subject = row.group_id if row.scope == Scope.GROUP else row.manifest_id
        chosen = select(listed).where(by == subject, listed > row.after_id)
        found = tx.connection.execute(chosen.order_by(listed).limit(share + 1)).scalars().all()
        pages.append(_Page(row, found[:share], has_next=len(found) > share))
    return pages


def _wake_all_but_held(tx: Transaction, manifest_ids: Collection[int]) -> set[int]:
    """Make these manifests candidates; returns those whose state somebody is changing."""
    states = select(manifest_state.c.manifest_id).where(
        among(tx, manifest_state.c.manifest_id, manifest_ids)
    )
    existing = set(tx.connection.execute(states).scalars())
    in_order = states.order_by(manifest_state.c.manifest_id)
    free = set(
        tx.connection.execute(in_order.with_for_update(skip_locked=True, key_share=True)).scalars()
    )
    _wake_now(tx, free)
    return existing - free


def _wake_now(tx: Transaction, manifest_ids: Collection[int]) -> None:
    later = or_(manifest_state.c.wake_at.is_(None), manifest_state.c.wake_at > tx.now)
    chosen = and_(among(tx, manifest_state.c.manifest_id, manifest_ids), later)
    tx.connection.execute(update(manifest_state).where(chosen).values(wake_at=tx.now))


def set_wake_times(
    tx: Transaction, times: Mapping[int, datetime | None], locked: Collection[int] = ()
) -> None:
    """Store when each manifest is to be looked at next; None means when something wakes it.

    Those that are *locked* already need not be locked again.
    """
    _write(tx, manifest_state.c.wake_at, times, locked=times.keys() <= set(locked))


def settle(tx: Transaction, moments: Mapping[int, datetime]) -> None:
    """Count the occurrences of manifests as dealt with up to these moments; never backwards."""
    settled = manifest_state.c.settled_until
    _write(tx, settled, moments, lambda moment: or_(settled.is_(None), settled < moment))


Guard = Callable[[ColumnElement[Any]], ColumnElement[bool]]


def _write(
    tx: Transaction,
    written: Column[Any],
    moments: Mapping[int, datetime | None],
    guard: Guard = lambda moment: true(),
    *,
    locked: bool = False,
) -> None:
    """Write one column of many states; what somebody else is changing is left to its wake-up."""
    if not moments:
        return
    rows = [(key, moments[key]) for key in sorted(moments)]
    if tx.on_postgresql:
        key = manifest_state.c.manifest_id
        chosen = among(tx, key, moments) if locked else _free(tx, moments)
        moment: ColumnElement[Any]
        if len(set(moments.values())) == 1:  # as for all that were queued: no time at all
            moment = literal(rows[0][1], written.type)
        else:
            given = unnested((key, written), rows)
            chosen, moment = and_(chosen, key == given.c.manifest_id), given.c[written.name]
        changed = update(manifest_state).where(chosen, guard(moment))
        tx.connection.execute(changed.values({written: moment}))
        return
    one = bindparam("b_moment", type_=written.type)
    this = manifest_state.c.manifest_id == bindparam("b_manifest_id")
    tx.connection.execute(
        update(manifest_state).where(this, guard(one)).values({written: one}),
        [{"b_manifest_id": key, "b_moment": moment} for key, moment in rows],
    )


def _free(tx: Transaction, manifest_ids: Iterable[int]) -> ColumnElement[bool]:
    """Those of these states that nobody else is changing, locked in the order of their ids."""
    locked = (
        select(manifest_state.c.manifest_id)
        .where(among(tx, manifest_state.c.manifest_id, manifest_ids))
        .order_by(manifest_state.c.manifest_id)
        .with_for_update(skip_locked=True, key_share=True)
        .cte("locked")
        .prefix_with("MATERIALIZED", dialect="postgresql")
    )
    return among_found(tx, manifest_state.c.manifest_id, select(locked.c.manifest_id))


def next_wake_at(tx: Transaction) -> datetime | None:
    """The earliest moment at which the manager has something to look at."""
    if tx.connection.execute(select(wake.c.id).limit(1)).first() is not None:
        return tx.now
    # SQLite uses the partial index only where the condition is repeated.
    earliest = select(func.min(manifest_state.c.wake_at)).where(
        manifest_state.c.wake_at.is_not(None)
    )
    moment: datetime | None = tx.connection.execute(earliest).scalar_one()
    return moment
