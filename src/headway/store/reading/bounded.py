"""Lists that are searched: each page looks at a bounded number of rows and says how far it got."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, func, select

from headway.store.transaction import Transaction

EXAMINED = 2_000
"""How many rows a page looks at, at most, when a filter has no index of its own."""


@dataclass(frozen=True)
class Found:
    """The rows of a page in order, and the last row it looked at if there may be more."""

    rows: tuple[Any, ...]
    stopped_at: Any | None


def search(
    tx: Transaction,
    statement: Select[Any],
    matches: Callable[[Row[Any]], bool] | None,
    limit: int,
    examined: int = EXAMINED,
) -> Found:
    """The first *limit* rows of an ordered *statement* that match, looking at *examined* at most.

    Without *matches* every row does, and no more are read than asked for.
    """
    read = limit + 1 if matches is None else max(examined, limit + 1)
    rows = tx.connection.execute(statement.limit(read)).all()
    return choose(rows, matches, limit, cut=len(rows) == read)


def choose(
    rows: Sequence[Any], matches: Callable[[Any], bool] | None, limit: int, *, cut: bool
) -> Found:
    """The first *limit* matching *rows*; with *cut* there may be more rows than these.

    >>> choose([1, 2, 3, 4], lambda row: row % 2 == 0, 1, cut=False)
    Found(rows=(2,), stopped_at=2)
    >>> choose([1, 2, 3, 4], lambda row: row % 2 == 0, 2, cut=False)
    Found(rows=(2, 4), stopped_at=None)
    >>> choose([1, 2, 3], lambda row: row > 5, 2, cut=True)
    Found(rows=(), stopped_at=3)
    """
    kept = [row for row in rows if matches is None or matches(row)]
    if len(kept) > limit:
        return Found(tuple(kept[:limit]), kept[limit - 1])
    return Found(tuple(kept), rows[-1] if cut and rows else None)


def capped_count(statement: Select[Any], most: int) -> Select[Any]:
    """How many rows there are, counting up to *most*."""
    return select(func.count()).select_from(statement.limit(most).subquery())


def in_order_of(ids: Iterable[int], rows: Iterable[Any]) -> list[Any]:
    """*rows* in the order of *ids*; those that have gone meanwhile are left out."""
    by_id = {row.id: row for row in rows}
    return [by_id[one] for one in ids if one in by_id]
