"""Pages of long lists: some items, and an opaque cursor to go on from."""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar

from headway.domain.text import shown
from headway.errors import DefinitionError

Item = TypeVar("Item")
Other = TypeVar("Other")
Place = Sequence[str | int | None]
"""Where a page ends: the values its list is sorted by, of the last row looked at."""

DEFAULT_LIMIT = 50
MOST_PER_PAGE = 200
LONGEST_CURSOR = 2048


class BadCursor(DefinitionError):
    """A cursor that no page has given.

    >>> str(BadCursor("nonsense"))
    "cursor = 'nonsense': must be the next of a page, unchanged; leave it out for the first page"
    """

    def __init__(self, cursor: object) -> None:
        super().__init__(
            f"cursor = {shown(cursor)}: must be the next of a page, unchanged; "
            "leave it out for the first page"
        )


@dataclass(frozen=True)
class Page(Generic[Item]):
    """Some items of a list, and the cursor of the page after them, None at the end.

    Where rows are searched and few match, a page may be short or empty and still have a next one:
    each page looks at a bounded number of rows.

    >>> Page((1, 2)).next is None
    True
    """

    items: tuple[Item, ...] = ()
    next: str | None = None

    def map(self, change: Callable[[Item], Other]) -> "Page[Other]":
        """The same page with each item changed.

        >>> Page((1, 2), "x").map(str)
        Page(items=('1', '2'), next='x')
        """
        return Page(tuple(change(item) for item in self.items), self.next)


def cursor_at(*place: str | int | None) -> str:
    """The cursor that stands for this place: text that is safe in a URL.

    >>> place_of(cursor_at("load-7", 7), str, int)
    ('load-7', 7)
    """
    written = json.dumps(place, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(written).decode().rstrip("=")


def place_of(cursor: str | None, *kinds: type) -> tuple[object, ...] | None:
    """The place a cursor stands for, None for the first page; each value of its kind, or None.

    >>> place_of("nonsense", int)
    Traceback (most recent call last):
    headway.domain.paging.BadCursor: cursor = 'nonsense': must be the next of a page, unchanged; ...
    """
    if cursor is None or cursor == "":
        return None
    try:
        place = tuple(_decoded(cursor))
    except (ValueError, TypeError, AttributeError, binascii.Error, RecursionError) as error:
        raise BadCursor(cursor) from error
    fits = len(place) == len(kinds) and all(map(_is_of, place, kinds))
    if not fits:
        raise BadCursor(cursor)
    return place


def numbers_of(cursor: str | None, count: int) -> tuple[int, ...] | None:
    """The place of a cursor that holds nothing but *count* numbers.

    >>> numbers_of(cursor_at(7), 1)
    (7,)
    """
    place = place_of(cursor, *[int] * count)
    return None if place is None else tuple(one for one in place if isinstance(one, int))


def _decoded(cursor: str) -> list[object]:
    if len(cursor) > LONGEST_CURSOR:
        raise ValueError("too long")
    padded = cursor + "=" * (-len(cursor) % 4)
    read = json.loads(base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True))
    if not isinstance(read, list):
        raise ValueError("not a place")
    return read


def _is_of(value: object, kind: type) -> bool:
    if kind is int:
        return type(value) is int and abs(value) < 2**63
    return value is None or type(value) is kind


def microseconds(moment: datetime) -> int:
    """A moment as a cursor holds it.

    >>> moment_at(microseconds(datetime(2030, 1, 1, 12, 0, 0, 5, tzinfo=UTC))).microsecond
    5
    """
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def moment_at(number: int) -> datetime:
    """The moment a cursor holds.

    >>> moment_at(0).year
    1970
    """
    try:
        whole = datetime.fromtimestamp(number // 1_000_000, UTC)
    except (OverflowError, ValueError, OSError) as error:
        raise BadCursor(number) from error
    return whole.replace(microsecond=number % 1_000_000)


def checked_limit(limit: int) -> int:
    """*limit* if a page may hold so many items, else an error that says what may be.

    >>> checked_limit(50)
    50
    """
    whole = isinstance(limit, int) and not isinstance(limit, bool)
    if not whole or not 1 <= limit <= MOST_PER_PAGE:
        raise DefinitionError(
            f"limit = {shown(limit)}: must be a whole number from 1 to {MOST_PER_PAGE}; "
            f"for example {DEFAULT_LIMIT}"
        )
    return limit


def page_of(rows: Sequence[Item], limit: int, place: Callable[[Item], Place]) -> Page[Item]:
    """The page made of *rows* that were read with one more than the *limit*.

    >>> page_of(["a", "b", "c"], 2, lambda row: (row,)).items
    ('a', 'b')
    >>> page_of(["a", "b"], 2, lambda row: (row,)).next is None
    True
    """
    kept = tuple(rows[:limit])
    return Page(kept, cursor_at(*place(kept[-1])) if len(rows) > limit else None)
