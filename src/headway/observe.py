"""The one observation seam: state changes emit named events, everything else subscribes.

Log lines, metrics and tests are subscribers; ``docs/reference/events.md`` lists the events.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

logger = logging.getLogger("headway")


@dataclass(frozen=True)
class Event:
    """Something that happened: a dotted name and plain values.

    >>> Event("manager.cycle", {"queued": 3}).fields["queued"]
    3
    """

    name: str
    fields: dict[str, Any] = field(default_factory=dict)


Subscriber = Callable[[Event], None]


class Observer:
    """Hands every emitted event to every subscriber; a failing subscriber stops nobody.

    >>> seen = []
    >>> observer = Observer()
    >>> observer.subscribe(seen.append)
    >>> observer.emit("worker.claimed", count=2)
    >>> seen[0].name
    'worker.claimed'
    """

    def __init__(self) -> None:
        self._subscribers: tuple[Subscriber, ...] = (log_event,)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call *subscriber* with every event from now on."""
        self._subscribers = (*self._subscribers, subscriber)

    def emit(self, name: str, **fields: Any) -> None:
        """Tell every subscriber that *name* happened."""
        event = Event(name, fields)
        for subscriber in self._subscribers:
            try:
                subscriber(event)
            except (Exception, SystemExit):  # a subscriber may end itself, never a worker
                logger.exception("a subscriber failed on %s", name)


LEVELS = {
    "execution.failed": logging.WARNING,
    "manifest.dead_lettered": logging.WARNING,
    "manifest.refused": logging.WARNING,
    "declaration.outdated": logging.WARNING,
    "declaration.kept_back": logging.WARNING,
    "loop.failed": logging.ERROR,
}


def log_event(event: Event) -> None:
    """Write *event* as one log line."""
    level = LEVELS.get(event.name, logging.DEBUG)
    if logger.isEnabledFor(level):
        details = " ".join(f"{key}={value!r}" for key, value in event.fields.items())
        logger.log(level, "%s %s", event.name, details)
