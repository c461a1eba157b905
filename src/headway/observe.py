"""The one observation seam: state changes emit named events, everything else subscribes.

Log lines, metrics and tests are subscribers; ``docs/reference/events.md`` lists the events.
"""

import logging
import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from headway.errors import DatabaseLost

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

# Events of these names are kept for a while, to be looked at: what the last cycles did.
KEPT = ("manager.cycle", "dispatcher.cycle")
KEPT_EACH = 100


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
        self._recent = {name: deque[Event](maxlen=KEPT_EACH) for name in KEPT}
        self._lost: frozenset[str] = frozenset()

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call *subscriber* with every event from now on."""
        self._subscribers = (*self._subscribers, subscriber)

    @property
    def subscribers(self) -> tuple[Subscriber, ...]:
        """Whoever is told now, in this order."""
        return self._subscribers

    def emit(self, name: str, **fields: Any) -> None:
        """Tell every subscriber that *name* happened."""
        if not self.wants(name):
            return
        event = Event(name, fields)
        if name in self._recent:
            self._recent[name].append(event)
        for subscriber in self._subscribers:
            try:
                subscriber(event)
            except (Exception, SystemExit):  # a subscriber may end itself, never a worker
                logger.exception("a subscriber failed on %s", name)

    def loop_failed(self, loop: str, error: BaseException) -> None:
        """Emit that *loop* caught an error; a lost database file is reported once for all loops.

        >>> Observer().loop_failed("manager", OSError("no route to host"))
        """
        lost = database_loss_in(error)
        if lost is None:
            code = database_code_in(error)
            self.emit("loop.failed", loop=loop, error=told(error), database=code)
        else:
            self.database_lost(lost)

    def database_lost(self, lost: DatabaseLost) -> None:
        """Emit that the SQLite file was deleted or replaced, unless that was emitted before."""
        if lost.database not in self._lost:
            self._lost |= {lost.database}
            self.emit("service.database_lost", error=str(lost))

    def wants(self, name: str) -> bool:
        """Whether anybody takes note of *name*: most events are for whoever watches closely, and
        there are many of them.

        >>> Observer().wants("loop.failed")
        True
        """
        return len(self._subscribers) > 1 or name in self._recent or is_logged(name)

    def recent(self, name: str) -> list[Event]:
        """The last hundred cycles of the manager or the dispatcher of this process, oldest first.

        >>> observer = Observer()
        >>> observer.emit("manager.cycle", queued=3)
        >>> observer.recent("manager.cycle")[-1].fields
        {'queued': 3}
        """
        return list(self._recent.get(name, ()))


class StepTimes:
    """How long each step of a workflow takes; called with a step's name as it starts.

    >>> times = StepTimes()
    >>> times("load"); times("decide"); times.stop()
    >>> list(times.seconds)
    ['load', 'decide']
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._step: str | None = None
        self._since = 0.0

    def __call__(self, step: str) -> None:
        """The step before it has ended, and *step* starts."""
        self.stop()
        self._step, self._since = step, time.perf_counter()

    def stop(self) -> None:
        """The last step has ended."""
        if self._step is not None:
            self.seconds[self._step] = time.perf_counter() - self._since


LEVELS = {
    "execution.failed": logging.WARNING,
    "execution.refused": logging.WARNING,
    "execution.stuck": logging.WARNING,
    "server.buried": logging.WARNING,
    "server.cut_off": logging.WARNING,
    "server.dead": logging.WARNING,
    "server.late": logging.WARNING,
    "manifest.dead_lettered": logging.WARNING,
    "manifest.refused": logging.WARNING,
    "declaration.outdated": logging.WARNING,
    "declaration.kept_back": logging.WARNING,
    "queue.stranded": logging.WARNING,
    "workflow.unimportable": logging.WARNING,
    "declaration.waiting": logging.WARNING,
    "database.waiting": logging.WARNING,
    "delivery.ignored": logging.INFO,
    "delivery.refused": logging.WARNING,
    "relay.unclaimed": logging.WARNING,
    "task_server.away": logging.WARNING,
    "task_server.back": logging.WARNING,
    "azolla.claim_lost": logging.WARNING,
    "azolla.failed": logging.WARNING,
    "azolla.given_up": logging.WARNING,
    "azolla.parked": logging.WARNING,
    "membrane.refused": logging.INFO,
    "membrane.unavailable": logging.WARNING,
    "registry.refused": logging.WARNING,
    "worker.abandoned": logging.WARNING,
    "loop.failed": logging.ERROR,
    "service.unhealthy": logging.ERROR,
    "service.worn_out": logging.ERROR,
    "service.database_lost": logging.ERROR,
    "service.healthy": logging.WARNING,
    "service.pooled": logging.INFO,
}


def is_logged(name: str) -> bool:
    """Whether an event of this name is written to the log as it is set up now.

    >>> is_logged("loop.failed")
    True
    """
    return logger.isEnabledFor(LEVELS.get(name, logging.DEBUG))


def log_event(event: Event) -> None:
    """Write *event* as one log line."""
    if is_logged(event.name):
        details = " ".join(f"{key}={value!r}" for key, value in event.fields.items())
        logger.log(LEVELS.get(event.name, logging.DEBUG), "%s %s", event.name, details)


def database_loss_in(error: BaseException | None) -> DatabaseLost | None:
    """Return the loss of a SQLite file that *error* is, or was caused by.

    >>> database_loss_in(OSError("no route to host")) is None
    True
    """
    while error is not None and not isinstance(error, DatabaseLost):
        error = error.__cause__
    return error


def database_code_in(error: BaseException | None) -> str | None:
    """Return the database's own code, or else its message, if *error* comes of the database.

    >>> database_code_in(OSError("no route to host")) is None
    True
    """
    while error is not None:
        if (driver := getattr(error, "orig", None)) is not None:
            # SQLITE_CORRUPT_INDEX, say, is one kind of SQLITE_CORRUPT.
            kind = "_".join(getattr(driver, "sqlite_errorname", "").split("_")[:2])
            return str(getattr(driver, "sqlstate", None) or kind or _first_line(driver))
        error = error.__cause__
    return None


def told(error: BaseException) -> str:
    """Return an error in one line, with those of its causes that its message does not quote.

    The further lines of a database's error are the statement.

    >>> told(OSError("no route\\nto host"))
    'OSError: no route'
    """
    line = f"{type(error).__name__}: {_first_line(error)}"
    cause = error.__cause__
    while cause is not None and (reason := _first_line(cause)) and reason in line:
        cause = cause.__cause__
    return line if cause is None else f"{line}: {told(cause)}"


def _first_line(error: BaseException) -> str:
    """The first line of a message, without the driver's class that SQLAlchemy puts before it."""
    return re.sub(r"^\([\w.]+\) ", "", (str(error).splitlines() or [""])[0])
