"""The form with a group's cap and priority: what was typed, and what is wrong with it."""

from dataclasses import dataclass, field, replace
from typing import Any

from headway.domain.manifest import Group
from headway.domain.views import GroupOverview
from headway.errors import DefinitionError
from headway.web.security.bodies import Form

LARGEST_CAP = 1_000_000


@dataclass(frozen=True)
class GroupForm:
    """Cap and priority as text, the version they were read with, and an error for each field.

    >>> typed = GroupForm(cap="0", priority="12", version="1f").checked()
    >>> typed.errors
    {'max_active_jobs': 'must be a whole number of at least 1, or empty for no cap'}
    >>> typed.values
    {'priority': 12}
    """

    cap: str
    priority: str
    version: str
    errors: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    stale: bool = False

    @classmethod
    def of(cls, group: GroupOverview, version: str) -> "GroupForm":
        """The form as it is before anybody has typed."""
        cap = "" if group.max_active_jobs is None else str(group.max_active_jobs)
        return cls(cap, str(group.priority), version)

    @classmethod
    def sent(cls, form: Form) -> "GroupForm":
        """The form as it was sent, with every field looked at."""
        cap, priority = form.get("max_active_jobs").strip(), form.get("priority").strip()
        return cls(cap, priority, form.get("version")).checked()

    def checked(self) -> "GroupForm":
        """The same with the values that are right, and what is wrong with the others."""
        values: dict[str, Any] = {}
        errors: dict[str, str] = {}
        for name, text in (("max_active_jobs", self.cap), ("priority", self.priority)):
            value = None if text == "" and name == "max_active_jobs" else _whole(text)
            if _allowed(name, value):
                values[name] = value
            else:
                errors[name] = RULES[name]
        return replace(self, values=values, errors=errors)


RULES = {
    "max_active_jobs": "must be a whole number of at least 1, or empty for no cap",
    "priority": "must be a whole number from 0 to 31",
}


def _whole(text: str) -> int | str:
    """The number somebody has typed; text that is none, or is absurd, stays text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 8 else text


def _allowed(name: str, value: int | str | None) -> bool:
    """The rule is that of every group, wherever it is declared or changed."""
    if isinstance(value, int) and value > LARGEST_CAP:
        return False
    try:
        Group("", **{name: value})  # type: ignore[arg-type]
    except DefinitionError:
        return False
    return True
