"""What tests of the actors start from: an application on a real store whose clock they hold."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Self, TypeVar

from sqlalchemy import select

from headway import Headway, Run
from headway.applying import apply_declarations
from headway.config import Settings
from headway.dispatcher.cycle import DispatchResult, JobDispatcher
from headway.domain.execution import Execution, ExecutionState
from headway.domain.routing import TaskServer
from headway.domain.work_queue import NewEntry, Source
from headway.errors import StepFailed
from headway.history import History, ManifestOverview
from headway.manager.cycle import ManagerResult, ManifestManager
from headway.observe import Event, Observer
from headway.runner.job_runner import JobRunner, RunnerResult
from headway.servers.local import LocalServer
from headway.store import executions, removal, wakes, work_queue
from headway.store.engine import Store, ended_by_timeout
from headway.store.migrate import migrate
from headway.store.tables import manifest
from headway.store.wakes import Scope

START = datetime(2030, 1, 7, 12, tzinfo=UTC)  # a Monday
PATIENCE = 30.0
OWNER = "me"
STALLS = 2

Result = TypeVar("Result")


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **span: float) -> None:
        self.now += timedelta(**span)


class Recorder:
    """Every event of an observer, and a way to wait for some."""

    def __init__(self, observer: Observer) -> None:
        self.events: list[Event] = []
        self._changed = threading.Condition()
        observer.subscribe(self._add)

    def _add(self, event: Event) -> None:
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()

    def named(self, name: str, **fields: Any) -> list[Event]:
        return [
            event
            for event in list(self.events)
            if event.name == name and fields.items() <= event.fields.items()
        ]

    def wait_for(self, name: str, count: int = 1, **fields: Any) -> list[Event]:
        """The events of this name with these values, once there are at least *count*."""
        with self._changed:
            arrived = self._changed.wait_for(
                lambda: len(self.named(name, **fields)) >= count, PATIENCE
            )
        assert arrived, f"no {name} {fields} within {PATIENCE} s, only {self.events}"
        return self.named(name, **fields)


def tried_again(cycle: Callable[[], Result]) -> Result:
    """What *cycle* returns, the next time if the machine stood still for too long this time.

    The database ends a leader's transaction after five seconds, and a service goes on with the
    next cycle. So does a scene: what it tests is what the cycle does.
    """
    for _ in range(STALLS):
        try:
            return cycle()
        except StepFailed as failed:
            if not ended_by_timeout(failed):
                raise
    return cycle()


class Scene:
    """One application, one migrated store, a clock, and the actors by the verbs they stand for.

    The workflow ``work`` is registered; it fails for the manifests named in ``failing``.
    """

    def __init__(self, url: str, *, virtual_time: bool = True, **settings: Any) -> None:
        self.url = url
        self.clock = Clock()
        self.store = Store(url, clock=self.clock if virtual_time else None, durable=False)
        migrate(self.store)
        self.failing: set[str | None] = set()
        self.app = self.new_app(**settings)
        self.history = History(self.store)

    def new_app(self, **settings: Any) -> Headway:
        """A new deployment of the same application: nothing is declared in it yet."""
        self.app = Headway("tests", database_url=self.url, **settings)
        self.events = Recorder(self.app.observer)
        self.app.workflow("work")(self._work)
        return self.app

    def _work(self, run: Run) -> None:
        if run.manifest in self.failing:
            raise RuntimeError("told to fail")

    def configure(self, **settings: Any) -> None:
        self.app.settings = Settings(**settings)

    def apply(self) -> None:
        apply_declarations(self.app, self.store)

    def manage(self, store: Store | None = None) -> ManagerResult:
        manager = ManifestManager(store or self.store, self.app.settings, self.app.observer)
        return tried_again(manager.run_once)

    def dispatch(
        self, server: TaskServer | None = None, store: Store | None = None
    ) -> DispatchResult:
        server = server or LocalServer(lambda: None)
        store = store or self.store
        dispatcher = JobDispatcher(store, self.app.settings, self.app.observer, server)
        return tried_again(dispatcher.run_once)

    def with_runner(self, act: Callable[[JobRunner], Any]) -> Any:
        runner = JobRunner(self.store, self.app.registry, self.app.observer, OWNER, Settings())
        try:
            return act(runner)
        finally:
            runner.close()

    def run(self) -> RunnerResult:
        result: RunnerResult = self.with_runner(lambda runner: runner.run_once())
        return result

    def cycle(self) -> ManagerResult:
        """Manage, dispatch and run, each once."""
        managed = self.manage()
        self.dispatch()
        self.run()
        return managed

    def claim(self, limit: int = 100) -> list[Execution]:
        """Start what is pending without ever running it."""
        with self.store.writing() as tx:
            registry = self.app.registry
            return executions.claim_pending(
                tx, OWNER, limit, registry.names(), registry.first_steps()
            )

    def enqueue(self, *entries: NewEntry) -> list[int]:
        with self.store.writing() as tx:
            return work_queue.enqueue(tx, entries)

    def pending(self, workflow: str, input: str = "null", **fields: Any) -> int:
        """A pending execution of *workflow* without a manifest; returns its id."""
        [entry] = self.enqueue(NewEntry(workflow, Source.AD_HOC, input, **fields))
        with self.store.writing() as tx:
            return work_queue.dispatch(tx, [entry])[entry]

    def wake(self, *external_ids: str) -> None:
        """Have the manager look at these manifests although nothing happened."""
        with self.store.writing() as tx:
            chosen = select(manifest.c.id).where(manifest.c.external_id.in_(external_ids))
            ids = tx.connection.execute(chosen).scalars().all()
            wakes.leave_wakes(tx, [(key, Scope.SELF) for key in ids])

    def ids_of(self, external_id: str) -> tuple[int, int]:
        """The ids of a manifest and of its group."""
        with self.store.reading() as tx:
            row = tx.connection.execute(
                select(manifest.c.id, manifest.c.group_id).where(
                    manifest.c.external_id == external_id, manifest.c.removed_at.is_(None)
                )
            ).one()
        return row.id, row.group_id

    def trigger(self, external_id: str, **fields: Any) -> int:
        """Queue a run of a manifest as a person would; returns the entry's id."""
        manifest_id, group_id = self.ids_of(external_id)
        asked = {"manifest_id": manifest_id, "group_id": group_id, **fields}
        [entry] = self.enqueue(NewEntry("work", Source.TRIGGER, "null", **asked))
        return entry

    def remove(self, external_id: str) -> None:
        """Remove a manifest softly, whoever owns it."""
        manifest_id, _ = self.ids_of(external_id)
        with self.store.writing() as tx:
            removal.remove(tx, [manifest_id])

    def manifest(self, external_id: str) -> ManifestOverview:
        [found] = [one for one in self.history.manifests.all() if one.external_id == external_id]
        return found

    def execution(self, execution_id: int) -> Execution:
        [found] = [one for one in self.history.executions.all() if one.id == execution_id]
        return found

    def ended(self, state: ExecutionState) -> list[Execution]:
        return self.history.executions.all(states=[state])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.store.close()


def eventually(condition: Callable[[], bool], patience: float = PATIENCE) -> None:
    """Wait for what no event tells: the doings of other processes and background writes."""
    deadline, pause = time.monotonic() + patience, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, f"not within {patience} s"
        pause.wait(0.01)


def reasons(result: ManagerResult) -> dict[str, str]:
    """What a cycle of the manager said about each manifest."""
    return {one.view.external_id: one.reason for one in result.decisions}


def names(entries: Sequence[Any]) -> list[str | None]:
    """The external ids of queue entries or executions, in their order."""
    return [one.external_id for one in entries]
