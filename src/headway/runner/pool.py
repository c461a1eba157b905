"""The worker pool: claims as many executions as it has free slots and runs them concurrently.

One event loop in a thread of its own: async steps share it, sync steps get threads. A pool whose
owner has a lease claims only while that lives, and asks every 2 seconds what it still owns.
"""

import asyncio
import threading
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from headway.config import Settings
from headway.definition.registry import Registry
from headway.domain.execution import Execution, ExecutionState, Outcome
from headway.observe import Observer, told
from headway.runner.cancellation import CancellationRegistry, StopReason
from headway.runner.claims import Claims
from headway.runner.completions import Completions
from headway.runner.job_runner import run_execution
from headway.runner.offers import Offers
from headway.runner.ownership import Ownership
from headway.runner.progress import ProgressWriter
from headway.runner.recording import Recording
from headway.runner.stuck import StuckRuns
from headway.runner.suspicion import Suspicion
from headway.runner.threads import abandon_the_rest, happens, in_daemon_thread
from headway.runner.workflow import RunnerEnv, RunnerState
from headway.store import executions
from headway.store.engine import TRANSIENT, Store
from headway.store.executions import Owned, Progress

LAST_MOMENT = 1.0
LOOK_PAUSE = 2.0

T = TypeVar("T")


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
        on_finished: Callable[[], None] = lambda: None,
        *,
        leased: bool = False,
        pulsed: bool = False,
        takes: Callable[[], Collection[str]] | None = None,
        on_half_stuck: Callable[[], None] = lambda: None,
    ) -> None:
        self.cancellations = CancellationRegistry()
        self._store = store
        self._registry = registry
        self._settings = settings
        self._observer = observer
        self._leased = leased
        self._offers = Offers(pulsed)
        self._on_finished = on_finished
        self._running: dict[int, Execution] = {}
        self._stuck = StuckRuns(settings, self.cancellations, observer, on_half_stuck)
        self._ownership = Ownership()
        self._suspicion = Suspicion(settings.max_crashes)
        self._claims = Claims(store, registry, self._suspicion, leased=leased, takes=takes)
        self._claims_under_way = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._store_threads = ThreadPoolExecutor(2, thread_name_prefix="headway-store")
        self._loop = asyncio.new_event_loop()
        self._woken = asyncio.Event()
        self._drained = asyncio.Event()
        self._stopping = False
        self._grace = settings.shutdown_timeout.total_seconds()
        self._thread = threading.Thread(target=self._main, name="headway-worker", daemon=True)
        self._env = self._env_of(owner)

    def start(self) -> None:
        """Begin to claim and run."""
        self._thread.start()

    def wake(self) -> None:
        """Look for pending executions now; called from any thread."""
        self._tell_loop(self._woken.set)

    def offer(self, *, claim: bool, look: bool) -> None:
        """What the pulse says: whether there is something to claim, and whether to look closer at
        what is owned here; called from any thread."""
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
        self._woken.set()

    def request_stop(self, grace: float | None = None) -> None:
        """Claim nothing more and finish what runs, or hand it back after *grace* seconds."""
        self._stopping = True
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
        backoff = self._settings.retry_policy
        write = Recording(self._store, owner, self._observer, backoff)
        completions = Completions(partial(self._write, write), self._call_store, self._observer)
        note = partial(self._write_progress, owner)
        progress = ProgressWriter(self._loop, note, self._call_store)
        return RunnerEnv(
            store=self._store,
            registry=self._registry,
            owner=owner,
            cancellations=self.cancellations,
            call_store=self._call_store,
            call_sync=in_daemon_thread,
            record=completions.record,
            report=progress.report,
            observer=self._observer,
            settings=self._settings,
            on_queued=self._on_finished,
        )

    async def _claim_and_start(self, env: RunnerEnv) -> None:
        free = self._settings.worker_count - len(self._tasks)
        if free < 1:
            return
        try:
            running = list(self._running.values())
            claimed = await self._claim(self._claims.claim, env.owner, free, running)
        except Exception as error:
            self._observer.emit("loop.failed", loop="worker", error=told(error))
            return
        for execution in claimed:
            self._running[execution.id] = execution
            self._track(self._run(env, execution))

    async def _claim(self, claim: Callable[..., Any], *arguments: Any) -> Any:
        """A look at what is owned must not take a claim that is on its way for a lost one."""
        self._claims_under_way += 1
        try:
            return await self._call_store(claim, *arguments)
        finally:
            self._claims_under_way -= 1

    def _track(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Have *work* done; a pool that stops waits for it."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def _run(self, env: RunnerEnv, execution: Execution) -> ExecutionState | None:
        """Run it to its end; None if that could not be recorded."""
        try:
            done = await run_execution(env, RunnerState(execution.id, execution))
            return done.outcome.state if done.outcome and done.recorded else None
        except Exception as error:
            self._observer.emit("loop.failed", loop="worker", error=told(error))
            return None
        finally:
            self._running.pop(execution.id, None)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._woken.set()

    async def _watch(self) -> None:
        while not await happens(self._drained, within=LOOK_PAUSE):
            if not (self._running or self._offers.look):
                continue
            try:
                await self._look()
            except Exception as error:  # a database that is away stops no run
                self._observer.emit("loop.failed", loop="worker", error=told(error))

    async def _look(self) -> None:
        """Ask what is owned; stop what is not, or is unwanted; hand back what is not known."""
        known, claiming = set(self._running), self._claims_under_way > 0
        owned = await self._call_store(self._claims.look, self._owners())
        claiming = claiming or self._claims_under_way > 0
        verdict = self._ownership.compare(owned, known, set(self._running), claiming)
        for key, reason in verdict.stop.items():
            self.cancellations.try_cancel(key, reason)
        self._stuck.look(self._running)
        if verdict.hand_back:
            await self._call_store(self._hand_back, verdict.hand_back)
        if self._claims.last_chance_waits:
            self._woken.set()

    async def _wait_for_something(self) -> None:
        """Until woken or a slot is free; polling interval and pulse are only the fallback."""
        await self._offers.wait(self._woken, self._settings.polling_interval.total_seconds())
        self._woken.clear()

    async def _drain(self, watch: Collection[asyncio.Task[None]]) -> None:
        """Wait for what runs; ask what is left to stop; hand back whatever is still ours."""
        await self._wait_until_idle(lambda: self._grace)
        self._stuck.give_up()
        self.cancellations.cancel_all(self.cancellations.ids(), StopReason.SHUTDOWN)
        await self._wait_until_idle(lambda: LAST_MOMENT)
        self._drained.set()
        if watch:
            await asyncio.wait(watch, timeout=LAST_MOMENT)
        try:
            await self._call_store(self._hand_back_all)
        except TRANSIENT as error:
            # Nobody to give them back to: they are found by their owner being gone.
            self._observer.emit("loop.failed", loop="worker", error=told(error))
        if left := await abandon_the_rest(LAST_MOMENT):
            self._observer.emit("worker.abandoned", count=left)

    async def _wait_until_idle(self, grace: Callable[[], float]) -> None:
        """But for those that are stuck, which would only use up the time of the others.

        *grace* is asked again after each wake-up: a second signal may shorten it.
        """
        began = self._loop.time()
        while self._awaited() and (left := began + grace() - self._loop.time()) > 0:
            self._woken.clear()
            await happens(self._woken, within=left)

    def _awaited(self) -> int:
        return len(self._tasks) - self._stuck.among(self._running)

    def _write(self, recording: Recording, ended: Mapping[int, Outcome]) -> set[int]:
        recorded = recording(ended)
        self._on_finished()
        return recorded

    def _write_progress(self, owner: str, reported: Mapping[int, Progress]) -> None:
        with self._store.writing() as tx:
            executions.note_progress(tx, owner, reported)

    def _owners(self) -> set[str]:
        """Who this process is, and was when it claimed what still runs here."""
        running = list(self._running.values())
        return {self._env.owner, *(one.owner for one in running if one.owner)}

    def _hand_back_all(self) -> None:
        self._hand_back(self._claims.look(self._owners()))

    def _hand_back(self, owned: Sequence[Owned]) -> None:
        handed_back = self._claims.hand_back(owned)
        if handed_back:
            self._on_finished()
        for one in handed_back:
            self._observer.emit(f"execution.{one.state}", **one.told())

    async def _call_store(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await self._loop.run_in_executor(self._store_threads, function, *arguments)
