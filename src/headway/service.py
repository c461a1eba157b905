"""The composition root: builds the actors of one process, starts them, stops them.

Nothing else constructs an actor, and no actor knows another: they meet in tables.
"""

import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial

from headway.applying import apply_at_start
from headway.definition import isolated_steps
from headway.definition.app import Headway
from headway.dispatcher.cycle import JobDispatcher
from headway.domain.lease_time import LeaseTime
from headway.errors import DatabaseLost
from headway.federation.building import install
from headway.federation.deadlines import DeadlineMonitor
from headway.federation.participation import Participation
from headway.health import FILE_LOST, Health, HealthWatch, Trouble, diagnose
from headway.hints import announcing, listen, listen_here
from headway.history import Retention, Tallying
from headway.lease import LeaseKeeper, lease_of, this_process
from headway.loops import Loop
from headway.manager.cycle import ManifestManager
from headway.manager.sweep import Sweep
from headway.orphans import OrphanSweep
from headway.patience import DatabaseWait
from headway.relay import Relay
from headway.runner.cancellation import StopReason
from headway.runner.pool import WorkerPool
from headway.servers.local import LocalServer
from headway.store.drafting import draft_cycle
from headway.store.durability import check_durability
from headway.store.engine import Store
from headway.store.migrate import prepare
from headway.store.pulse import take_pulse
from headway.store.servers import ServerProcess
from headway.store.together import Line
from headway.store.urls import shown
from headway.turns import Turn, Turns
from headway.wakeups import EVERY_ROLE, Announcer, Role, WakeUps

PULSE = 2.0
HOUSEKEEPING_AFTER = 2.0
# Those without which work stands still; the others are hints and housekeeping.
WATCHED = ("pulse", Role.MANAGER, Role.DISPATCHER, "orphans")


class Service:
    """One headway process: some roles of one application on one store.

    >>> service = Service(app)                # doctest: +SKIP
    >>> service.start(); service.stop()       # doctest: +SKIP
    """

    def __init__(
        self,
        app: Headway,
        roles: Collection[Role] = EVERY_ROLE,
        store: Store | None = None,
        wait: DatabaseWait | None = None,
    ) -> None:
        self.app = app
        self.roles = frozenset(roles)
        self.store = store or app.open_store()
        self._stopping = False
        self._wait = wait or DatabaseWait(
            shown(self.store.url),
            app.observer,
            app.settings.database_start_timeout,
            is_stopping=lambda: self._stopping,
        )
        install(app)
        self._azolla = Participation(app, self.store)
        self._name = uuid.uuid4().hex
        announce = announcing(self.store, app.observer, self._name)
        self._announcer = Announcer(announce) if self.store.on_postgresql else None
        self._wakeups = WakeUps(self._announcer)
        self._lease_time = LeaseTime()
        self._keeper = self._build_keeper()
        self._pool = self._build_pool() if Role.WORKER in self.roles else None
        self._turns = Turns(app, self._wakeups, self._keeper.lease, self._tell_outbox)
        self._dispatch_at_once: Callable[[Line], bool] = lambda line: False
        self._loops = {loop.name: loop for loop in self._build_loops()}
        self._watch = HealthWatch(self.health, app.observer)
        self._stop_listening: Callable[[], None] = lambda: None
        self._loss: Trouble | None = None
        self.store.on_lost(self._stop_for_loss)

    @property
    def owner(self) -> str:
        """The id this process has; one that was taken for dead gets a new one."""
        return self._keeper.id

    def health(self) -> Health:
        """Whether this process can do its work; red as long as the database is away, say."""
        if self._loss is not None:
            return Health((self._loss,))
        watched = [self._loops[name].state() for name in WATCHED if name in self._loops]
        return diagnose(watched, self._keeper.renewed_at, self._keeper.lease)

    def start(self) -> None:
        """Prepare the database, apply what is declared, and start every actor."""
        self._wait(lambda: prepare(self.store))
        if not self.app.settings.allow_lost_commits:
            self._wait(lambda: check_durability(self.store))
        if Role.MANAGER in self.roles:
            apply_at_start(self.app, self.store, self._wait)
            self._wait(self._azolla.begin)
        if self._announcer is not None:
            self._announcer.start()
        self._keeper.start(self._wait)
        if self._pool is not None:
            takes = self.app.task_servers.local_workflows()
            isolated_steps.warn(self.app.registry, takes, self.app.observer)
            self._pool.start()
            self._wakeups.wake(Role.DISPATCHER)
        for loop in self._loops.values():
            loop.start()
        self._stop_listening = listen_here(self.store, self._wakeups)
        self._watch.start()
        self.app.observer.emit("service.started", owner=self.owner, roles=sorted(self.roles))

    def request_stop(self, grace: float | None = None) -> None:
        """Begin to stop; a *grace* of 0 hands running work back at once."""
        self._stopping = True
        for loop in self._loops.values():
            loop.request_stop()
        if self._pool is not None:
            self._pool.request_stop(grace)

    def stop(self) -> None:
        """Finish or hand back what runs, then close the store."""
        self._stop_listening()
        self._watch.stop()
        self.request_stop()
        for loop in self._loops.values():
            loop.stop()
        if self._pool is not None:
            self._pool.stop()
        self._keeper.stop()  # last, for what runs until the end is owned until the end
        if self._announcer is not None:
            self._announcer.stop()
        self.store.close()
        self.app.observer.emit("service.stopped", owner=self.owner)

    def _stop_for_loss(self, lost: DatabaseLost) -> None:
        """Start nothing more and end what runs: its end could not be recorded."""
        self._loss = Trouble(FILE_LOST, datetime.now(UTC), str(lost), reported=True)
        self.app.observer.database_lost(lost)
        self.request_stop(grace=0)

    def _build_keeper(self) -> LeaseKeeper:
        return LeaseKeeper(
            self.store,
            lease_of(self.store, self.app.settings.server_lease),
            self.app.observer,
            self._presented,
            running=lambda: self._pool.running() if self._pool else [],
            on_lost=lambda own_id: self._pool.change_owner(own_id) if self._pool else None,
            on_cut_off=lambda: self._pool.cancellations.cut_off() if self._pool else [],
            time_left=self._lease_time,
        )

    def _presented(self, own_id: str) -> ServerProcess:
        slots = self.app.settings.worker_count if Role.WORKER in self.roles else 0
        names, routing = self.app.registry.names(), self.app.task_servers.routing
        return this_process(own_id, self._duties(), names, slots, routing)

    def _duties(self) -> set[Role]:
        """What others can count on: a role that is switched off is nobody's."""
        settings = self.app.settings
        off = {
            Role.MANAGER: not settings.manager_enabled,
            Role.DISPATCHER: not settings.dispatcher_enabled,
        }
        return {role for role in self.roles if not off.get(role)}

    def _build_pool(self) -> WorkerPool:
        pool = WorkerPool(
            self.store,
            self.app.registry,
            self.app.settings,
            self.app.observer,
            self.owner,
            on_finished=self._tell_of_end,
            leased=True,
            pulsed=True,
            takes=self.app.task_servers.local_workflows,
            on_half_stuck=self._recycle,
            on_room=lambda: self._wakeups.wake_here(Role.DISPATCHER),
            lease_time=self._lease_time,
        )
        self._wakeups.on(Role.WORKER, pool.wake)
        return pool

    def _tell_of_end(self, of_manifests: bool) -> None:
        self._wakeups.tell_of_end(of_manifests, stopping=self._stopping)

    def _recycle(self) -> None:
        """Whoever started this process starts another: this one has lost half of its slots."""
        if not self._stopping:
            self.app.observer.emit("service.worn_out", owner=self.owner)

    def _build_loops(self) -> Iterator[Loop]:
        settings, observer = self.app.settings, self.app.observer
        if Role.MANAGER in self.roles and settings.manager_enabled:
            manager = ManifestManager(self.store, settings, observer, self._cancel_here)
            yield self._wakeable(Role.MANAGER, lambda: self._turns.manage(manager))
            sweep = Sweep(self.store, settings, observer)
            yield self._housekeeping("sweep", lambda: self._turns.sweep(sweep))
            tallying = Tallying(self.store)
            yield self._housekeeping("tally", lambda: self._turns.tally(tallying))
            retention = Retention(self.store, settings, observer)
            deadlines = DeadlineMonitor(self.store)
            clean_up = partial(self._turns.clean_up, retention, deadlines)
            yield self._housekeeping("retention", clean_up)
            yield self._housekeeping(
                "azolla", lambda: self._turns.request(self._azolla, self.owner)
            )
        if Role.DISPATCHER in self.roles and settings.dispatcher_enabled:
            dispatcher = JobDispatcher(
                self.store,
                settings,
                observer,
                LocalServer(lambda: self._wakeups.wake(Role.WORKER)),
                to_own_workers=True,
                task_servers=self.app.task_servers,
                own_workers=self._pool,
            )
            self._dispatch_at_once = dispatcher.start_all
            yield self._wakeable(Role.DISPATCHER, lambda: self._turns.admit(dispatcher))
            if self._pool is not None and self.store.on_postgresql:
                draft_cycle(self._presented(self.owner), self.app.registry.first_steps())
            if self.app.task_servers.relayed:
                relay = Relay(
                    self.store,
                    self.app.registry,
                    self.app.task_servers,
                    observer,
                    settings=settings,
                )
                yield Loop("relay", lambda: self._turns.relay(relay), observer)
        if self.roles & {Role.WORKER, Role.DISPATCHER}:
            crashes, backoff = settings.max_crashes, settings.retry_policy
            orphans = OrphanSweep(self.store, self._keeper, crashes, observer, backoff)
            yield Loop("orphans", lambda: self._turns.end_orphans(orphans), observer)
        if self.store.on_postgresql:
            yield Loop("listener", self._listen, observer)
        # Everybody begins with a look of its own.
        yield Loop("pulse", self._take_pulse, observer, after=self._pulse_pause())

    def _housekeeping(self, name: str, turn: Turn) -> Loop:
        """What a process that starts leaves until its first jobs are under way."""
        return Loop(name, turn, self.app.observer, after=HOUSEKEEPING_AFTER)

    def _wakeable(self, role: Role, turn: Turn) -> Loop:
        loop = Loop(role.value, turn, self.app.observer)
        self._wakeups.on(role, loop.wake)
        return loop

    def _tell_outbox(self) -> None:
        self._loops["relay"].wake()

    def _take_pulse(self) -> float:
        """Ask once for all actors of this process, and tell those that have something to do."""
        with self.store.unclocked() as tx:
            pulse = take_pulse(tx, self.owner)
        offers = {
            Role.MANAGER: pulse.manage,
            Role.DISPATCHER: pulse.dispatch,
            "orphans": pulse.orphans,
            "azolla": pulse.requests,
        }
        for name, offered in offers.items():
            if offered and name in self._loops:
                self._loops[name].offer()
        if self._pool is not None:
            self._pool.offer(claim=pulse.claim, look=pulse.owned)
        self.app.observer.emit(
            "service.pulse",
            manage=pulse.manage,
            dispatch=pulse.dispatch,
            claim=pulse.claim,
            orphans=pulse.orphans,
            owned=pulse.owned,
            requests=pulse.requests,
        )
        return self._pulse_pause()

    def _pulse_pause(self) -> float:
        """Two seconds, unless somebody has asked for shorter polling intervals or leases."""
        settings = self.app.settings
        intervals = {
            Role.MANAGER: settings.manager_polling_interval,
            Role.DISPATCHER: settings.dispatcher_polling_interval,
            Role.WORKER: settings.polling_interval,
        }
        asked = (intervals[role].total_seconds() for role in self.roles)
        return min(PULSE, self._turns.orphan_pause, *asked)

    def _listen(self) -> float:
        observer = self.app.observer
        return listen(
            self.store,
            self._wakeups,
            observer,
            lambda: self._stopping,
            self._name,
            self._dispatch_at_once,
        )

    def _cancel_here(self, execution_ids: Sequence[int]) -> None:
        if self._pool is not None:
            self._pool.cancellations.cancel_all(execution_ids, StopReason.TIMEOUT)
