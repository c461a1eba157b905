"""What users need to test their manifests: a throw-away database and a clock they move themselves.

The sandbox drives the real ManifestManager, JobDispatcher and JobRunner, so a virtual week is a
week of the real scheduler. Nothing sleeps, nothing listens, no server runs.
"""

import asyncio
import tempfile
from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

from headway.definition.app import Headway
from headway.definition.registry import Reference
from headway.dispatcher.capacity import Verdict
from headway.dispatcher.cycle import DispatchResult, JobDispatcher
from headway.domain.dead_letter import DeadLetter
from headway.domain.execution import Execution
from headway.domain.work_queue import NewEntry, Source
from headway.errors import HeadwayError, ManifestNotFound
from headway.history import History
from headway.manager.cycle import ManagerResult, ManifestManager
from headway.runner.job_runner import JobRunner
from headway.servers.local import LocalServer
from headway.store import declarations, wakes, work_queue
from headway.store.engine import Store
from headway.store.migrate import current_version, migrate
from headway.store.reading import ManifestOverview, QueuedEntry

__all__ = ["NeverIdle", "Sandbox", "VirtualClock"]

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
OWNER = "sandbox"


class NeverIdle(HeadwayError):
    """Something runs again and again while the virtual clock stands still.

    >>> str(NeverIdle(MONDAY, Counter({"import": 101})))
    'at 2026-01-05 00:00:00 UTC the sandbox did not come to rest; busiest: import (101 runs)'
    """

    def __init__(self, now: datetime, runs: Counter[str]) -> None:
        busiest = ", ".join(f"{name} ({count} runs)" for name, count in runs.most_common(3))
        super().__init__(
            f"at {now:%Y-%m-%d %H:%M:%S} UTC the sandbox did not come to rest; "
            f"busiest: {busiest or 'nothing ran'}"
        )
        self.runs = runs


class VirtualClock:
    """A clock that stands still until it is moved; any ``Store(url, clock=...)`` can use it.

    >>> clock = VirtualClock(datetime(2026, 1, 5, tzinfo=UTC))
    >>> clock.move_to(clock.now + timedelta(hours=9))
    >>> clock().hour
    9
    """

    def __init__(self, start: datetime = MONDAY) -> None:
        self._now = _aware(start)

    @property
    def now(self) -> datetime:
        """The moment this clock shows, in UTC."""
        return self._now

    def __call__(self) -> datetime:
        return self._now

    def move_to(self, moment: datetime) -> None:
        """Show *moment* from now on; a clock never goes back.

        >>> VirtualClock().move_to(datetime(2025, 1, 1, tzinfo=UTC))
        Traceback (most recent call last):
        ValueError: the clock shows 2026-01-05 00:00:00+00:00 and cannot go back to 2025-01-01 ...
        """
        moment = _aware(moment)
        if moment < self._now:
            raise ValueError(f"the clock shows {self._now} and cannot go back to {moment}")
        self._now = moment


def _aware(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} has no time zone; write datetime(..., tzinfo=UTC)")
    return moment.astimezone(UTC)


class Sandbox:
    """One application on a database of its own, in virtual time.

    >>> from headway import Headway, every
    >>> hw = Headway()
    >>> @hw.workflow
    ... def extract(table: str) -> None: ...
    >>> _ = hw.schedule(extract, "extract-users", "users", every(hours=1))
    >>> with Sandbox(hw) as box:
    ...     box.run_until_idle()                        # the first run is due at once
    ...     box.advance(hours=24)
    ...     len(box.executions("extract-users"))
    25

    The application's settings apply; its database and ``HEADWAY_DATABASE_URL`` are not touched.
    A *database_url* of your own must lead to an empty database; what is written there stays.
    Jobs take no virtual time, and nothing is deleted by retention.
    """

    clock: VirtualClock
    store: Store
    history: History

    def __init__(
        self,
        app: Headway,
        *,
        start: datetime = MONDAY,
        database_url: str | None = None,
        max_runs_at_once: int = 100,
    ) -> None:
        self.app = app
        self.clock = VirtualClock(start)
        self._database_url = database_url
        self._max_runs_at_once = max_runs_at_once
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as closing:
            url = self._database_url or _throw_away_url(closing)
            self.store = Store(url, clock=self.clock, durable=False)
            closing.callback(self.store.close)
            self._prepare()
            self._build_actors()
            closing.callback(self._runner.close)
            self._closing = closing.pop_all()
        return self

    def __exit__(self, *failure: object) -> None:
        self._closing.close()

    def _prepare(self) -> None:
        self.store.check()
        with self.store.reading() as tx:
            if current_version(tx):
                raise HeadwayError("a sandbox needs an empty database; this one holds headway's")
        migrate(self.store)
        declaration = self.app.declaration()
        self._declared = frozenset(one.external_id for one in declaration.manifests)
        with self.store.writing() as tx:
            declarations.apply(tx, declaration)

    def _build_actors(self) -> None:
        store, settings, observer = self.store, self.app.settings, self.app.observer
        self.history = History(store)
        self._manager = ManifestManager(store, settings, observer)
        self._dispatcher = JobDispatcher(store, settings, observer, LocalServer(lambda: None))
        self._runner = JobRunner(store, self.app.registry, observer, OWNER)

    @property
    def now(self) -> datetime:
        """The virtual present, in UTC.

        >>> from headway import Headway
        >>> Sandbox(Headway(), start=datetime(2030, 1, 1, tzinfo=UTC)).now.year
        2030
        """
        return self.clock.now

    def run_until_idle(self) -> None:
        """Queue, dispatch and run everything that is due now, until nothing is left to do.

        Raises :class:`NeverIdle` when a manifest keeps running while the clock stands still.
        """
        _refuse_running_loop()
        runs: Counter[str] = Counter()
        while True:
            managed = self._manager.run_once()
            dispatched = self._dispatcher.run_once()
            if dispatched.dispatched:
                self._runner.run_once(limit=len(dispatched.dispatched))
                runs.update(_names(dispatched))
            elif not _has_more(managed):
                return
            if max(runs.values(), default=0) > self._max_runs_at_once:
                raise NeverIdle(self.now, runs)

    def advance(
        self,
        by: timedelta = timedelta(0),
        /,
        *,
        weeks: float = 0,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
    ) -> None:
        """Let virtual time pass, and run what becomes due on the way, each at its moment.

        >>> from headway import Headway
        >>> with Sandbox(Headway()) as box:
        ...     box.advance(days=1, hours=12)
        ...     print(box.now)
        2026-01-06 12:00:00+00:00
        """
        units = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
        self.advance_to(self.now + by + units)

    def advance_to(self, moment: datetime) -> None:
        """Let virtual time pass until *moment*; what is due exactly then still runs."""
        moment = _aware(moment)
        if moment < self.now:
            self.clock.move_to(moment)  # which refuses it
        self.run_until_idle()
        while (event := self._next_event()) is not None and event <= moment:
            if event <= self.now:
                raise NeverIdle(self.now, Counter())
            self.clock.move_to(event)
            self.run_until_idle()
        self.clock.move_to(moment)

    def _next_event(self) -> datetime | None:
        """When the manager or the dispatcher has something to do again."""
        with self.store.reading() as tx:
            moments = wakes.next_wake_at(tx), work_queue.next_scheduled_at(tx)
        return min((moment for moment in moments if moment is not None), default=None)

    def enqueue(self, workflow: Reference, input: Any = None) -> int:
        """Queue one run of *workflow* without a manifest; returns the entry's id."""
        registered = self.app.registry.find(workflow)
        entry = NewEntry(
            workflow=registered.name,
            source=Source.AD_HOC,
            input=registered.input_type.encode(input, registered.name),
            input_type=registered.input_type.name,
        )
        with self.store.writing() as tx:
            return work_queue.enqueue(tx, [entry])[0]

    def executions(self, external_id: str | None = None) -> list[Execution]:
        """Every attempt so far, oldest first, of all manifests or of one."""
        self._check_declared(external_id)
        return self.history.executions(external_id)

    def last(self, external_id: str) -> Execution | None:
        """The newest attempt of a manifest; None if it has not run yet."""
        self._check_declared(external_id)
        return next(iter(self.history.executions(external_id, limit=1)), None)

    def queued(self) -> list[QueuedEntry]:
        """What waits in the work queue, oldest first."""
        return self.history.queued()

    def manifests(self) -> list[ManifestOverview]:
        """Every manifest and where it stands, by external id."""
        return self.history.manifests()

    def dead_letters(self) -> list[DeadLetter]:
        """Dead letters that wait for a person."""
        return self.history.dead_letters()

    def _check_declared(self, external_id: str | None) -> None:
        if external_id is not None and external_id not in self._declared:
            raise ManifestNotFound(external_id)


def _throw_away_url(closing: ExitStack) -> str:
    folder = closing.enter_context(tempfile.TemporaryDirectory(prefix="headway-sandbox-"))
    return f"sqlite:///{Path(folder) / 'sandbox.db'}"


def _refuse_running_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise HeadwayError(
        "a sandbox runs async steps in an event loop of its own; call it from async code as "
        "await asyncio.to_thread(box.run_until_idle)"
    )


def _names(result: DispatchResult) -> list[str]:
    admitted = (one.entry for one in result.admissions if one.verdict is Verdict.DISPATCH)
    return [entry.external_id or entry.workflow for entry in admitted]


def _has_more(result: ManagerResult) -> bool:
    """Whether the manager left candidates for its next cycle: there were more than one chunk."""
    return bool(result.candidates) and result.due_in is not None and result.due_in <= timedelta(0)
