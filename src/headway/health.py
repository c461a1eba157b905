"""Whether a process can do its work, and what keeps it from it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from headway.errors import DatabaseOutage, DatabaseUnavailable
from headway.loops import Loop, LoopState
from headway.observe import Observer, database_code_in
from headway.store.engine import TRANSIENT

PULSE = "pulse"
FILE_LOST = "the database file was deleted or replaced"
UNUSABLE = "the database cannot be used"
LOOK_PAUSE = 0.5
# One failure may be a timeout or a lost connection; the next pass is a new attempt.
FAILURES = 3
NO_PROGRESS = timedelta(seconds=30)


@dataclass(frozen=True)
class Trouble:
    """Something that keeps a process from its work, since when, and what is known about it.

    What is *reported* already has an event of its own, and none of the health's.

    >>> since = datetime(2026, 1, 5, 9, tzinfo=UTC)
    >>> str(Trouble("the database does not answer", since, "connection refused"))
    'the database does not answer since 2026-01-05 09:00:00 UTC: connection refused'
    """

    what: str
    since: datetime
    detail: str = ""
    reported: bool = False

    def __str__(self) -> str:
        told = f"{self.what} since {self.since:%Y-%m-%d %H:%M:%S} UTC"
        return f"{told}: {self.detail}" if self.detail else told


@dataclass(frozen=True)
class Health:
    """Green without any trouble, red with some.

    >>> Health().green, Health((Trouble("the lease is over", datetime.now(UTC)),)).green
    (True, False)
    """

    troubles: tuple[Trouble, ...] = ()

    @property
    def green(self) -> bool:
        """Whether this process can do its work."""
        return not self.troubles

    @property
    def reasons(self) -> list[str]:
        """What is wrong, one sentence each."""
        return [str(trouble) for trouble in self.troubles]


def diagnose(loops: Iterable[LoopState], renewed_at: datetime, lease: timedelta) -> Health:
    """What the state of its loops and of its lease says about a process.

    The pulse is what asks the database most often, so it is what tells that it is away; what other
    loops suffer from that is no trouble of its own.

    >>> from headway.loops import LoopState
    >>> now = datetime.now(UTC)
    >>> diagnose([LoopState("manager", now)], renewed_at=now, lease=timedelta(seconds=15)).green
    True
    """
    states = list(loops)
    away = list(_away(states))
    others = [one for one in states if not (away and database_code_in(one.error))]
    return Health(tuple([*away, *_failing(others), *_lost(states, renewed_at, lease)]))


def _away(states: Iterable[LoopState]) -> Iterator[Trouble]:
    for one in states:
        if one.name == PULSE and one.failing_since is not None and _is_of_database(one.error):
            what = UNUSABLE if _is_broken(one.error) else "the database does not answer"
            yield Trouble(what, one.failing_since, _first_line(one.error))


def _failing(states: Iterable[LoopState]) -> Iterator[Trouble]:
    for one in states:
        hangs = one.busy_since is not None and one.now - one.busy_since > NO_PROGRESS
        if one.busy_since is not None and hangs:
            yield Trouble(f"the {one.name} makes no progress", one.busy_since)
        elif (
            one.failing_since is not None
            and one.failures >= FAILURES
            and not _is_of_database(one.error)
        ):
            detail = _first_line(one.error)
            yield Trouble(f"the {one.name} fails again and again", one.failing_since, detail)


def _lost(states: Iterable[LoopState], renewed_at: datetime, lease: timedelta) -> Iterator[Trouble]:
    if any(one.now - renewed_at > lease for one in states):
        yield Trouble("the lease is over", renewed_at + lease, "nothing new is started")


def _is_of_database(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, (*TRANSIENT, DatabaseUnavailable)):
            return True
        error = error.__cause__
    return False


def _is_broken(error: BaseException | None) -> bool:
    """Whether the database answers, but cannot be used: its file is damaged, say."""
    return isinstance(error, DatabaseUnavailable) and not isinstance(error, DatabaseOutage)


def _first_line(error: BaseException | None) -> str:
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


class HealthWatch:
    """Looks at the health of a process again and again, and tells when it changes.

    >>> watch = HealthWatch(lambda: Health(), Observer())
    >>> watch.health().green
    True
    """

    def __init__(self, health: Callable[[], Health], observer: Observer) -> None:
        self.health = health
        self._observer = observer
        self._red_since: datetime | None = None
        self._told: frozenset[str] = frozenset()
        self._loop = Loop("health", self.look, observer)

    def start(self) -> None:
        """Begin to look."""
        self._loop.start()

    def stop(self) -> None:
        """Look no more."""
        self._loop.stop()

    def look(self) -> float:
        """Tell what is wrong if that was not told before, or that all is well again."""
        health = self.health()
        what = frozenset(one.what for one in health.troubles if not one.reported)
        if what - self._told:
            self._red_since = self._red_since or datetime.now(UTC)
            self._observer.emit("service.unhealthy", reasons=health.reasons)
        elif self._red_since is not None and health.green:
            seconds = (datetime.now(UTC) - self._red_since).total_seconds()
            self._red_since = None
            self._observer.emit("service.healthy", seconds=seconds)
        self._told = what
        return LOOK_PAUSE
