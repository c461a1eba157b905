"""What the address of a page asks for: words out of a few, numbers, moments."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeVar

from headway.domain.text import shown
from headway.errors import DefinitionError

Choice = TypeVar("Choice", bound=StrEnum)

SWITCHED = {"on": True, "off": False}


def chosen(name: str, kind: type[Choice], text: str) -> Choice | None:
    """The one of *kind* that *text* names; nothing if it is empty.

    >>> from headway.domain.execution import ExecutionState
    >>> chosen("state", ExecutionState, "failed"), chosen("state", ExecutionState, "")
    (<ExecutionState.FAILED: 'failed'>, None)
    """
    if not text:
        return None
    try:
        return kind(text)
    except ValueError:
        known = ", ".join(kind)
        first = next(iter(kind))
        raise DefinitionError(
            f"{name} = {shown(text)}: must be one of {known}; for example {first}"
        ) from None


def switched(text: str) -> bool | None:
    """Whether only what is on, or only what is off, is asked for.

    >>> switched("on"), switched("off"), switched("")
    (True, False, None)
    """
    return SWITCHED.get(text)


def moment(name: str, text: str) -> datetime | None:
    """The moment that *text* names, in UTC if it says no zone.

    >>> moment("since", "2026-01-05T09:00")
    datetime.datetime(2026, 1, 5, 9, 0, tzinfo=datetime.timezone.utc)
    """
    if not text:
        return None
    try:
        read = datetime.fromisoformat(text)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise DefinitionError(
            f"{name} = {shown(text)}: must be a date and time; for example 2026-01-05T09:00"
        ) from None
