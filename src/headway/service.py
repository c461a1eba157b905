"""The composition root: builds the actors of one process, starts them, stops them.

Nothing else constructs an actor, and no actor knows another: they meet in tables.
"""

import os
import socket
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict
from datetime import timedelta

from headway.definition.app import Headway
from headway.dispatcher.cycle import JobDispatcher
from headway.history import Retention
from headway.loops import Loop
from headway.manager.cycle import ManifestManager
from headway.runner.cancellation import StopReason
from headway.runner.pool import WorkerPool
from headway.servers.local import LocalServer
from headway.store import declarations, notifications
from headway.store.declarations import Applied
from headway.store.engine import TRANSIENT, Lock, Store
from headway.store.migrate import check_schema, migrate
from headway.wakeups import Announcer, Role, WakeUps

EVERY_ROLE = frozenset(Role)
LISTEN_PULSE = 1.0


def prepare(store: Store) -> None:
    """Make sure the schema fits; the embedded database is migrated on the way."""
    store.check()
    if not store.on_postgresql:
        migrate(store)
    check_schema(store)


def apply_declarations(app: Headway, store: Store) -> Applied:
    """Write what *app* declares, one server at a time, patiently while the database is away."""
    settings = app.settings
    for attempt in range(settings.seeding_attempts):
        try:
            with store.leading(Lock.APPLY, seconds=60) as tx:
                if tx is not None:
                    return declarations.apply(
                        tx, app.declaration(), prune=settings.prune_orphaned_manifests
                    )
        except TRANSIENT:
            if attempt + 1 == settings.seeding_attempts:
                raise
        time.sleep(settings.seeding_base_delay.total_seconds() * 2**attempt)
    raise TimeoutError("another server has been applying declarations all the time")


class Service:
    """One headway process: some roles of one application on one store.

    >>> service = Service(app)                # doctest: +SKIP
    >>> service.start(); service.stop()       # doctest: +SKIP
    """

    def __init__(
        self, app: Headway, roles: Collection[Role] = EVERY_ROLE, store: Store | None = None
    ) -> None:
        self.app = app
        self.roles = frozenset(roles)
        self.store = store or app.open_store()
        self.owner = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:12]}"
        self._stopping = False
        self._announcer = Announcer(self._announce) if self.store.on_postgresql else None
        self._wakeups = WakeUps(self._announcer)
        self._pool = self._build_pool() if Role.WORKER in self.roles else None
        self._loops = list(self._build_loops())

    def start(self) -> None:
        """Prepare the database, apply what is declared, and start every actor."""
        prepare(self.store)
        if Role.MANAGER in self.roles:
            self._apply()
        if self._announcer is not None:
            self._announcer.start()
        if self._pool is not None:
            self._pool.start()
        for loop in self._loops:
            loop.start()
        self.app.observer.emit("service.started", owner=self.owner, roles=sorted(self.roles))

    def request_stop(self, grace: float | None = None) -> None:
        """Begin to stop; a *grace* of 0 hands running work back at once."""
        self._stopping = True
        for loop in self._loops:
            loop.request_stop()
        if self._pool is not None:
            self._pool.request_stop(grace)

    def stop(self) -> None:
        """Finish or hand back what runs, then close the store."""
        self.request_stop()
        for loop in self._loops:
            loop.stop()
        if self._pool is not None:
            self._pool.stop()
        if self._announcer is not None:
            self._announcer.stop()
        self.store.close()
        self.app.observer.emit("service.stopped", owner=self.owner)

    def _apply(self) -> None:
        applied = apply_declarations(self.app, self.store)
        self.app.observer.emit("declaration.applied", **asdict(applied))

    def _build_pool(self) -> WorkerPool:
        pool = WorkerPool(
            self.store,
            self.app.registry,
            self.app.settings,
            self.app.observer,
            self.owner,
            on_finished=lambda: self._wakeups.wake(Role.MANAGER, Role.DISPATCHER),
        )
        self._wakeups.on(Role.WORKER, pool.wake)
        return pool

    def _build_loops(self) -> Iterator[Loop]:
        settings, observer = self.app.settings, self.app.observer
        if Role.MANAGER in self.roles and settings.manager_enabled:
            manager = ManifestManager(self.store, settings, observer, self._cancel_here)
            yield self._wakeable(Role.MANAGER, lambda: self._manage(manager))
            retention = Retention(self.store, settings, observer)
            yield Loop("retention", lambda: self._clean_up(retention), observer)
        if Role.DISPATCHER in self.roles and settings.dispatcher_enabled:
            server = LocalServer(lambda: self._wakeups.wake(Role.WORKER))
            dispatcher = JobDispatcher(self.store, settings, observer, server)
            yield self._wakeable(Role.DISPATCHER, lambda: self._dispatch(dispatcher))
        if self.store.on_postgresql:
            yield Loop("listener", self._listen, observer)

    def _wakeable(self, role: Role, once: Callable[[], float]) -> Loop:
        loop = Loop(role.value, once, self.app.observer)
        self._wakeups.on(role, loop.wake)
        return loop

    def _manage(self, manager: ManifestManager) -> float:
        result = manager.run_once()
        if result.queued:
            self._wakeups.wake(Role.DISPATCHER)
        return _pause(self.app.settings.manager_polling_interval, result.due_in)

    def _dispatch(self, dispatcher: JobDispatcher) -> float:
        result = dispatcher.run_once()
        if result.dispatched:
            return 0.0  # there may be more than one cycle looks at
        return _pause(self.app.settings.dispatcher_polling_interval, result.due_in)

    def _clean_up(self, retention: Retention) -> float:
        retention.run_once()
        return self.app.settings.cleanup_interval.total_seconds()

    def _cancel_here(self, execution_ids: Sequence[int]) -> None:
        if self._pool is not None:
            self._pool.cancellations.cancel_all(execution_ids, StopReason.TIMEOUT)

    def _announce(self, roles: Collection[Role]) -> None:
        try:
            notifications.notify(self.store, roles)
        except Exception as error:
            # A lost hint costs one polling interval; a lost announcer would cost it every time.
            self.app.observer.emit("loop.failed", loop="notify", error=repr(error))

    def _listen(self) -> float:
        unheard = EVERY_ROLE  # whatever was announced before this connection listened
        for topic in notifications.listen(self.store, LISTEN_PULSE):
            if self._stopping:
                break
            self._wakeups.wake_here(*unheard, *([] if topic is None else [Role(topic)]))
            unheard = frozenset()
        return 0.0


def _pause(interval: timedelta, due_in: timedelta | None) -> float:
    """Until the next thing is due, but never longer than the polling interval."""
    waits = interval if due_in is None else min(interval, due_in)
    return max(0.0, waits.total_seconds())
