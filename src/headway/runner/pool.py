"""The worker pool: claims as many executions as it has free slots and runs them concurrently.

One event loop in a thread of its own: async steps share it, sync steps get threads. A pool whose
owner has a lease claims only while that lives, and asks every 2 seconds what it still owns.
"""

import asyncio
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from headway.config import Settings
from headway.definition.registry import Registry
from headway.domain.execution import Ended, Execution, Outcome
from headway.domain.lease_time import LeaseTime
from headway.domain.starting import Hands
from headway.errors import DatabaseUnavailable
from headway.observe import Observer
from headway.runner.cancellation import CancellationRegistry, StopReason
from headway.runner.claims import Claims
from headway.runner.completions import OnWritten
from headway.runner.environment import env_of
from headway.runner.offers import Offers
from headway.runner.ownership import Ownership
from headway.runner.recording import emit_dead_letters
from headway.runner.runs import Runs
from headway.runner.slots import Slots
from headway.runner.state import RunnerEnv
from headway.runner.stuck import StuckRuns
from headway.runner.suspicion import Suspicion
from headway.runner.tasks import Once
from headway.runner.threads import abandon_the_rest, happens, until_idle
from headway.store.engine import TRANSIENT, Store
from headway.store.executions import Owned
from headway.store.hand_backs import Charge

LAST_MOMENT = 1.0
LOOK_PAUSE = 2.0


class WorkerPool:
    """Runs pending executions until it is stopped.

    >>> pool = WorkerPool(store, registry, settings, observer, "me")  # doctest: +SKIP
    >>> pool.start(); pool.stop()                                     # doctest: +SKIP
    """

    def __init__(
        self,
        store: Store,
        registry: Registry,
        settings: Settings,
        observer: Observer,
        owner: str,
        on_finished: Callable[[bool], None] = lambda of_manifests: None,
        *,
        leased: bool = False,
        pulsed: bool = False,
        takes: Callable[[], Collection[str]] | None = None,
        on_half_stuck: Callable[[], None] = lambda: None,
        on_room: Callable[[], None] = lambda: None,
        lease_time: LeaseTime | None = None,
    ) -> None:
        self.cancellations = CancellationRegistry(lease_time)
        self._store = store
        self._registry = registry
        self._settings = settings
        self._observer = observer
        self._leased = leased
        self._offers = Offers(pulsed)
        self._on_finished = on_finished
        self._stuck = StuckRuns(settings, self.cancellations, observer, on_half_stuck)
        self._ownership = Ownership()
        self._suspicion = Suspicion(settings.max_crashes)
        self._claims = Claims(store, registry, self._suspicion, leased=leased, takes=takes)
        self._slots = Slots(settings.worker_count)
        self._more_may_wait = True
        self._store_threads = ThreadPoolExecutor(2, thread_name_prefix="headway-store")
        self._loop = asyncio.new_event_loop()
        self._runs = Runs(self._loop, observer, self._leave)
        self._running = self._runs.running
        self._unwritten: dict[int, Outcome] = {}
        self._tell_room = Once(self._loop, on_room)
        self._woken, self._drained = asyncio.Event(), asyncio.Event()
        self._stopping = False
        self._grace = settings.shutdown_timeout.total_seconds()
        self._thread = threading.Thread(target=self._main, name="headway-worker", daemon=True)
        self._env = self._env_of(owner)

    def start(self) -> None:
        """Begin to claim and run."""
        self._thread.start()

    @property
    def owner(self) -> str:
        """In whose name the pool claims."""
        return self._env.owner

    def wake(self) -> None:
        """Look for pending executions now; called from any thread."""
        self._tell_loop(self._look_for_more)

    @property
    def free(self) -> int:
        """How many slots are free at this moment."""
        return self._slots.free

    def reserve(self) -> Hands | None:
        """Keep every free slot for what is dispatched now; called from any thread."""
        kept = self._slots.keep()
        return self._claims.hands(self._env.owner, *kept) if kept else None

    def start_at_once(self, hands: Hands, started: Collection[Execution]) -> None:
        """Run what was dispatched and *started* for these hands; called from any thread."""
        self._tell_loop(lambda: self._begin(hands, started))

    def _begin(self, hands: Hands, started: Collection[Execution]) -> None:
        ours = started if hands.owner == self._env.owner else ()
        self._launch(self._env, hands.key, ours)
        self._look_if_more()

    def _look_for_more(self) -> None:
        self._more_may_wait = True
        self._woken.set()

    def offer(self, *, claim: bool, look: bool) -> None:
        """What the pulse says there is: something to *claim*, or to *look* at more closely."""
        self._tell_loop(lambda: self._offers.take(claim=claim, look=look))

    def running(self) -> list[str]:
        """The jobs that are going on here, by their manifests' names."""
        return sorted(one.external_id or one.workflow for one in list(self._running.values()))

    def change_owner(self, owner: str) -> None:
        """The lease is lost: stop whatever runs in the old owner's name, and go on as *owner*."""
        self._tell_loop(lambda: self._go_on_as(owner))

    def _go_on_as(self, owner: str) -> None:
        self.cancellations.cancel_all(list(self._running), StopReason.NOT_OURS)
        self._env = self._env_of(owner)
        self._look_for_more()

    def request_stop(self, grace: float | None = None) -> None:
        """Claim nothing more and finish what runs, or hand it back after *grace* seconds."""
        self._stopping = True
        self._slots.close()
        if grace is not None:
            self._grace = grace
        self.wake()

    def stop(self) -> None:
        """Stop, and return when nothing of this pool is running or owned any more."""
        self.request_stop()
        if self._thread.ident is None:  # never started
            self._loop.close()
            return
        self._thread.join()

    def _tell_loop(self, callback: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:
            return  # the loop has ended: there is nobody left to tell

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._work())
        finally:
            self._loop.close()
            self._store_threads.shutdown(wait=False)

    async def _work(self) -> None:
        watch = [asyncio.create_task(self._watch())] if self._leased else []
        while not self._stopping:
            await self._claim_and_start(self._env)
            await self._wait_for_something()
        await self._drain(watch)

    def _env_of(self, owner: str) -> RunnerEnv:
        return env_of(
            owner,
            store=self._store,
            registry=self._registry,
            settings=self._settings,
            observer=self._observer,
            cancellations=self.cancellations,
            loop=self._loop,
            call_store=self._call_store,
            on_finished=self._on_finished,
            on_written=self._whom_to_tell(),
            on_unwritten=self._unwritten.__setitem__,
            is_stopping=lambda: self._stopping,
        )

    async def _claim_and_start(self, env: RunnerEnv) -> None:
        kept = self._slots.keep() if self._more_may_wait else None
        if kept is None:
            return
        key, free = kept
        claimed: Sequence[Execution] = ()
        try:
            running = list(self._running.values())
            claimed = await self._call_store(self._claims.claim, env.owner, free, running)
            self._more_may_wait = len(claimed) == free
        except Exception as error:
            self._observer.loop_failed("worker", error)
        self._launch(env, key, claimed)

    def _launch(self, env: RunnerEnv, key: int, started: Collection[Execution]) -> None:
        if self._slots.fill(key, len(started)):
            self._tell_room()
        self._runs.start(env, started)

    def _whom_to_tell(self) -> OnWritten | None:
        return self._runs.written

    def _leave(self, places: int) -> None:
        self._slots.leave(places)
        self._tell_room()
        self._look_if_more()

    def _look_if_more(self) -> None:
        if self._more_may_wait or self._stopping:
            self._woken.set()

    async def _watch(self) -> None:
        while not await happens(self._drained, within=LOOK_PAUSE):
            if not (self._running or self._offers.look):
                continue
            try:
                await self._look()
            except Exception as error:  # a database that is away stops no run
                self._observer.loop_failed("worker", error)

    async def _look(self) -> None:
        """Ask what is owned; stop what is not, or is unwanted; hand back what is not known."""
        known, claims = set(self._running), self._slots.on_their_way
        owned = await self._call_store(self._claims.look, self._owners())
        claims |= self._slots.on_their_way
        verdict = self._ownership.compare(owned, known, set(self._running), claims)
        for key, reason in verdict.stop.items():
            self.cancellations.try_cancel(key, reason)
        self._stuck.look(self._running)
        if verdict.hand_back:
            await self._call_store(self._hand_back, verdict.hand_back)
        if self._claims.last_chance_waits:
            self._look_for_more()

    async def _wait_for_something(self) -> None:
        """Until woken or a slot is free; polling interval and pulse are only the fallback."""
        await self._offers.wait(self._woken, self._settings.polling_interval.total_seconds())
        self._woken.clear()
        self._more_may_wait = True

    async def _drain(self, watch: Collection[asyncio.Task[None]]) -> None:
        """Wait for what runs; ask what is left to stop; hand back whatever is still ours."""
        await until_idle(self._awaited, self._woken, lambda: self._grace)
        self._stuck.give_up()
        self.cancellations.cancel_all(self.cancellations.ids(), StopReason.SHUTDOWN)
        await until_idle(self._awaited, self._woken, lambda: LAST_MOMENT)
        self._drained.set()
        if watch:
            await asyncio.wait(watch, timeout=LAST_MOMENT)
        try:
            owned = await self._call_store(self._claims.look, self._owners())
            await self._call_store(self._hand_back, owned)
        except (*TRANSIENT, DatabaseUnavailable) as error:
            # Nobody to give them back to: they are found by their owner being gone.
            self._observer.loop_failed("worker", error)
        if left := await abandon_the_rest(LAST_MOMENT):
            self._observer.emit("worker.abandoned", count=left)

    def _awaited(self) -> int:
        """All but those that are stuck, which would only use up the time of the others."""
        stuck = self._stuck.among(self._running)
        return self._going_on() + len(self._slots.on_their_way) - stuck

    def _going_on(self) -> int:
        return len(self._running)

    def _owners(self) -> set[str]:
        """Who this process is, and was when it claimed what still runs here."""
        running = list(self._running.values())
        return {self._env.owner, *(one.owner for one in running if one.owner)}

    def _hand_back(self, owned: Sequence[Owned]) -> None:
        """Give up what does not run here, but for what has: its end is to be written."""
        unwritten = [one for one in owned if one.execution_id in self._unwritten]
        charge = Charge(self._settings.max_crashes)
        ended: list[Execution | Ended] = [
            *self._claims.hand_back([one for one in owned if one not in unwritten], charge),
            *(end for one in unwritten for end in self._end(one)),
        ]
        for end in ended:
            self._observer.emit(f"execution.{end.state}", **end.told())
        emit_dead_letters(self._observer, charge)
        if ended:
            self._on_finished(True)

    def _end(self, owned: Owned) -> Sequence[Ended]:
        """Write an end that was refused before; run again, it might be refused for ever."""
        outcome = self._unwritten[owned.execution_id]
        try:
            ended = self._claims.end(owned, outcome, self._settings.retry_policy)
        except Exception as error:  # the next look tries again, until it is failed as stale
            self._observer.loop_failed("worker", error)
            return ()
        del self._unwritten[owned.execution_id]
        return ended

    async def _call_store(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await self._loop.run_in_executor(self._store_threads, function, *arguments)
