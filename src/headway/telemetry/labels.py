"""What a measurement is labelled with: names out of code, never out of data, and only so many."""

from typing import Any

OTHERS = ("other", "other")


class Labels:
    """The workflow and group of an event, as long as there are not too many different ones.

    A manifest without a group is in one called like itself, and there may be a million of those:
    these count as in no group.

    >>> labels = Labels(most=1)
    >>> labels.of({"workflow": "extract", "group": "nightly", "external_id": "extract-users"})
    ('extract', 'nightly')
    >>> labels.of({"workflow": "load", "group": "load-users", "external_id": "load-users"})
    ('other', 'other')
    """

    def __init__(self, most: int = 500) -> None:
        self._most = most
        self._known: set[tuple[str, str]] = set()

    def of(self, fields: dict[str, Any]) -> tuple[str, str]:
        """Workflow and group, or ``other`` for both once there are so many."""
        group = fields["group"] or ""
        pair = (fields["workflow"], "" if group == fields["external_id"] else group)
        if pair not in self._known:
            if len(self._known) >= self._most:
                return OTHERS
            self._known.add(pair)
        return pair
