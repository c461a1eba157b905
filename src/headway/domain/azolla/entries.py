"""What people enter: captures, objectives, blockers, checked field by field. Pure."""

from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from headway.domain.azolla.artifacts import Objective, ObjectiveStatus, ObjectiveType
from headway.domain.names import checked_words
from headway.domain.text import printable, shown
from headway.errors import DefinitionError

STANDING_ID = "standing"
ID_LIMIT = 200
TITLE_LIMIT = 300
TEXT_LIMIT = 20_000

E = TypeVar("E", bound=StrEnum)


def standing(azolla_id: str, title: str, now: datetime) -> Objective:
    """The one objective that never ends: what the deployment is there for.

    >>> from datetime import UTC
    >>> standing("warehouse", "warehouse", datetime(2026, 1, 1, tzinfo=UTC)).objective_id
    'standing'
    """
    return Objective(
        objective_id=STANDING_ID,
        azolla_id=azolla_id[:ID_LIMIT],
        title=title,
        acceptance_criteria="",
        objective_type=ObjectiveType.STANDING,
        status=ObjectiveStatus.IN_PROGRESS,
        importance=0,
        urgency=0,
        blocked_reason=None,
        blocked_on=(),
        metadata={},
        created_at=now,
        updated_at=now,
    )


def checked_text(field: str, value: object, limit: int, example: str) -> str:
    """*value* as text that any database holds, if it says something and is not too long.

    >>> checked_text("title", "  ", 300, "clean the staging tables")
    Traceback (most recent call last):
    headway.errors.DefinitionError: title = '  ': must be a text that says something; for example \
'clean the staging tables'
    """
    if not isinstance(value, str) or not value.strip():
        raise _refused(field, value, "must be a text that says something", repr(example))
    if len(value) > limit:
        rule = f"must have at most {limit:,} characters, not {len(value):,}"
        raise _refused(field, value, rule, repr(example))
    words = checked_words(field, "".join(value), example)
    return printable(words, 4 * limit)  # an escaped character has at most six


def checked_degree(field: str, value: object) -> int:
    """*value* as importance or urgency, from 0 to 4.

    >>> checked_degree("urgency", 7)
    Traceback (most recent call last):
    headway.errors.DefinitionError: urgency = 7: must be a whole number from 0 to 4; for example 3
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 4:
        raise _refused(field, value, "must be a whole number from 0 to 4", "3")
    return value


def checked_count(field: str, value: object, most: int) -> int:
    """*value* as how many rows are wanted, from 1 to *most*.

    >>> checked_count("limit", 0, 1000)
    Traceback (most recent call last):
    headway.errors.DefinitionError: limit = 0: must be a whole number from 1 to 1000; for example 20
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise _refused(field, value, f"must be a whole number from 1 to {most}", "20")
    return value


def checked_word(field: str, value: object, words: type[E]) -> E:
    """*value* as one of *words*, however it is capitalised.

    >>> checked_word("status", "todo", ObjectiveStatus)
    <ObjectiveStatus.TODO: 'TODO'>
    >>> checked_word("status", "open", ObjectiveStatus)
    Traceback (most recent call last):
    headway.errors.DefinitionError: status = 'open': must be NEW, TODO, IN_PROGRESS, BLOCKED or \
DONE; for example 'NEW'
    """
    wanted = value.upper().replace("-", "_") if isinstance(value, str) else value
    for word in words:
        if wanted == word.value:
            return word
    *most, last = [word.value for word in words]
    rule = f"must be {', '.join(most)} or {last}"
    raise _refused(field, value, rule, repr(next(iter(words)).value))


def _refused(field: str, value: Any, rule: str, example: str) -> DefinitionError:
    return DefinitionError(f"{field} = {shown(value)}: {rule}; for example {example}")
