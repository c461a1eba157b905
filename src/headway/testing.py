"""What users need to test their manifests: a throw-away database and a clock they move themselves.

The sandbox drives the real ManifestManager, JobDispatcher and JobRunner, so a virtual week is a
week of the real scheduler. Nothing sleeps, nothing listens, no server runs: what the application
sends to other task servers runs here at once.
"""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self

from headway.definition.app import Headway, refuse_replaced, replaced
from headway.definition.explaining import Explaining
from headway.definition.registry import Reference
from headway.definition.replacing import Replacement, SandboxAddress, SandboxStore
from headway.definition.runtime import Runtime
from headway.dispatcher.cycle import DispatchResult, JobDispatcher
from headway.domain.admission import Verdict
from headway.domain.dead_letter import DeadLetter
from headway.domain.execution import Execution
from headway.domain.gates import Why
from headway.domain.text import shown
from headway.domain.virtual_clock import MONDAY, VirtualClock, aware
from headway.domain.work_queue import WorkQueueEntry
from headway.errors import HeadwayError, ManifestNotFound, StepFailed
from headway.history import History, ManifestOverview, QueuedEntry
from headway.manager.cycle import ManagerResult, ManifestManager
from headway.runner.job_runner import JobRunner
from headway.servers.inline import InlineServer
from headway.servers.local import LocalServer
from headway.store import declarations, delays, triggers, wakes
from headway.store.database_errors import explained
from headway.store.engine import Store
from headway.store.migrate import current_version, migrate

__all__ = ["NeverIdle", "Sandbox", "VirtualClock"]

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

    Inside the block the application is the sandbox, in every thread and in the jobs that run,
    isolated ones included: what ``hw.trigger``, ``hw.enqueue``, ``hw.operator("alice")`` and all
    others write and read is in the sandbox. So is what an operator or ``hw.runtime`` does that was
    taken before the block. Its settings apply; its database and ``HEADWAY_DATABASE_URL`` are not
    touched. An application can be in one sandbox at a time.

    A *database_url* of your own must lead to an empty database; what is written there stays.
    Jobs take no virtual time, and nothing is deleted by retention.
    """

    def __init__(
        self,
        app: Headway,
        *,
        start: datetime = MONDAY,
        database_url: str | None = None,
        max_runs_at_once: int = 100,
    ) -> None:
        if not isinstance(app, Headway):
            raise HeadwayError(f"Sandbox({shown(app)}): takes your Headway, as in Sandbox(hw)")
        self.app = app
        self.clock = VirtualClock(start)
        self._database_url = database_url
        self._max_runs_at_once = max_runs_at_once
        self._closing = ExitStack()
        self._actors: _Actors | None = None

    def __enter__(self) -> Self:
        refuse_replaced(self.app)
        with ExitStack() as closing:
            folder = tempfile.TemporaryDirectory(prefix="headway-sandbox-")
            throw_away = f"sqlite:///{Path(closing.enter_context(folder)) / 'sandbox.db'}"
            store = self._open_store(self._database_url or throw_away)
            closing.callback(store.close)
            self._prepare(store)
            address = store.url.render_as_string(hide_password=False)
            actors = _Actors(
                self.app, store, lambda: SandboxAddress(self.app.name, address, self.now)
            )
            closing.callback(actors.runner.close)
            replacement = Replacement(
                actors.runtime, actors.explaining, lambda: self._open_store(address)
            )
            closing.enter_context(replaced(self.app, replacement))
            self._closing, self._actors = closing.pop_all(), actors
        return self

    def _open_store(self, address: str) -> Store:
        return SandboxStore(address, self.clock)

    def __exit__(self, *failure: object) -> None:
        self._actors = None
        self._closing.close()

    def _prepare(self, store: Store) -> None:
        store.check()
        with store.reading() as tx:
            if current_version(tx):
                raise HeadwayError("a sandbox needs an empty database; this one holds headway's")
        migrate(store)
        with store.writing() as tx:
            declarations.apply(tx, self.app.declaration())

    @property
    def _open(self) -> "_Actors":
        if self._actors is None:
            raise HeadwayError("a sandbox is open inside its with only: with Sandbox(hw) as box:")
        return self._actors

    @property
    def store(self) -> Store:
        """The sandbox's own database."""
        return self._open.store

    @property
    def history(self) -> History:
        """Everything that can be asked about it."""
        return self._open.history

    @property
    def runtime(self) -> Runtime:
        """What applications do while they run, here on the sandbox's database."""
        return self._open.runtime

    @property
    def now(self) -> datetime:
        """The virtual present, in UTC.

        >>> from headway import Headway
        >>> Sandbox(Headway()).now.year
        2026
        """
        return self.clock.now

    def run_until_idle(self) -> None:
        """Queue, dispatch and run everything that is due now, until nothing is left to do.

        Raises :class:`NeverIdle` when a manifest keeps running while the clock stands still.
        """
        actors = self._open
        _refuse_running_loop()
        try:
            self._run_until_idle(actors)
        except StepFailed as failed:  # of a cycle: the step is not what a test is about
            if (told := explained(actors.store, failed)) is not None:
                raise told from failed
            raise

    def _run_until_idle(self, actors: "_Actors") -> None:
        runs: Counter[str] = Counter()
        while True:
            managed = actors.manager.run_once()
            dispatched = actors.dispatcher.run_once()
            if dispatched.dispatched:
                runs.update(self._counted(_admitted(dispatched)))
                actors.runner.run_once(limit=len(dispatched.dispatched))
            elif not _has_more(managed):
                return
            if max(runs.values(), default=0) > self._max_runs_at_once:
                raise NeverIdle(self.now, runs)

    def _counted(self, entries: list[WorkQueueEntry]) -> Iterable[str]:
        """Every run of a manifest, but of ad-hoc runs only the first of what waits with it.

        Any number of them may wait; what never rests is one that queues the next, and so on.
        """
        known = self._open.newest_known
        new = [one for one in entries if not one.external_id and one.id > known]
        if new:
            ids = [one.id for one in self.queued()] + [one.id for one in new]
            self._open.newest_known = max(ids)
        named = [one.external_id for one in entries if one.external_id]
        return [*named, *{one.workflow for one in new}]

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
        if not isinstance(by, timedelta):
            raise HeadwayError(f"advance({shown(by)}): takes words, for example advance(hours=1)")
        units = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
        self.advance_to(self.now + by + units)

    def advance_to(self, moment: datetime) -> None:
        """Let virtual time pass until *moment*; what is due exactly then still runs."""
        moment = aware(moment)
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
            moments = wakes.next_wake_at(tx), delays.next_scheduled_at(tx)
        return min((moment for moment in moments if moment is not None), default=None)

    def enqueue(self, workflow: Reference, input: Any = None) -> int:
        """Queue one run of *workflow* without a manifest; returns the entry's id."""
        return self.runtime.enqueue(workflow, input)

    def why(self, external_id: str | None = None, **about: int) -> Why:
        """Why a manifest, ``execution=`` or ``entry=`` is not running at this virtual moment."""
        return self._open.explaining.why(external_id, **about)

    def executions(self, external_id: str | None = None) -> list[Execution]:
        """Every attempt so far, oldest first, of all manifests or of one."""
        found = self.history.executions.all(external_id)
        if not found:
            self._check_known(external_id)
        return found

    def last(self, external_id: str) -> Execution:
        """The newest attempt of a manifest, which has to have run."""
        for newest in self.history.executions.all(external_id, limit=1):
            return newest
        self._check_known(external_id)
        raise HeadwayError(f"{external_id!r} has not run yet; it is {self.now} in the sandbox")

    def queued(self) -> list[QueuedEntry]:
        """What waits in the work queue, oldest first."""
        return self.history.queue.all()

    def manifests(self) -> list[ManifestOverview]:
        """Every manifest and where it stands, by external id."""
        return self.history.manifests.all()

    def dead_letters(self) -> list[DeadLetter]:
        """Dead letters that wait for a person."""
        return self.history.dead_letters.awaiting()

    def _check_known(self, external_id: str | None) -> None:
        """Raise unless a manifest of this id is declared, or was made at run time."""
        if external_id is None or external_id in self._open.declared:
            return
        with self.store.reading() as tx:
            if not triggers.ids_of(tx, [external_id]):
                raise ManifestNotFound(external_id)


class _Actors:
    """What there is while a sandbox is open."""

    def __init__(self, app: Headway, store: Store, address: Callable[[], SandboxAddress]) -> None:
        settings, observer, registry = app.settings, app.observer, app.registry
        self.declared = {one.external_id for one in app.declaration().manifests}
        self.newest_known = 0
        self.store, self.history = store, History(store)
        most = settings.max_queued_per_group
        self.runtime = Runtime(app.name, registry, store, most_queued=most)
        self.manager = ManifestManager(store, settings, observer)
        self.runner = JobRunner(store, registry, observer, OWNER, settings, sandbox=address)
        servers = app.task_servers.all_handed_to(InlineServer(self.runner.run_one))
        local = LocalServer(lambda: None)
        self.explaining = Explaining(store, settings, servers, to_own_workers=False)
        self.dispatcher = JobDispatcher(store, settings, observer, local, task_servers=servers)


def _refuse_running_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise HeadwayError(
        "a sandbox runs async steps in an event loop of its own; call it from async code as "
        "await asyncio.to_thread(box.run_until_idle)"
    )


def _admitted(result: DispatchResult) -> list[WorkQueueEntry]:
    return [one.entry for one in result.admissions if one.verdict is Verdict.DISPATCH]


def _has_more(result: ManagerResult) -> bool:
    """Whether the manager left candidates for its next cycle: there were more than one chunk."""
    return bool(result.candidates) and result.due_in is not None and result.due_in <= timedelta(0)
