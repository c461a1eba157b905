"""One cycle of the JobDispatcher: one transaction under the dispatch lock, then the hand-over."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from threading import Lock as ThreadLock
from time import monotonic

from headway.config import Settings
from headway.definition.registry import Registry
from headway.definition.task_servers import TaskServers
from headway.dispatcher.at_once import AtOnce
from headway.dispatcher.hands import KeptHands
from headway.dispatcher.oldest import OldestLive
from headway.dispatcher.result import DispatchResult as DispatchResult
from headway.dispatcher.result import by_server, due_in
from headway.dispatcher.shut import ShutGroups
from headway.dispatcher.steps import (
    apply_capacity_limits,
    dispatch_jobs,
    load_dispatch_capacity,
    load_queued_jobs,
)
from headway.dispatcher.unknown import UnknownWorkflows
from headway.dispatcher.workflow import DispatchEnv, DispatchState
from headway.domain.admission import has_room
from headway.domain.front import Front
from headway.domain.routing import LOCAL, TaskServer
from headway.domain.starting import OwnWorkers
from headway.domain.work_queue import WorkQueueEntry
from headway.errors import StepFailed
from headway.observe import Observer, StepTimes
from headway.store import outcomes
from headway.store.dispatching import Refused
from headway.store.engine import Store
from headway.store.glance import Glance, glance
from headway.store.locks import Lock
from headway.store.servers import Workers, living_workers
from headway.store.together import Line
from headway.store.transaction import Transaction
from headway.workflow import Workflow

# So many workers at least are given something in one cycle.
FEW = 100
# Whoever has no hand free looks all the same, so often: something may have to fail, or be noted.
LOOK_AGAIN = 1.0

JOB_DISPATCHER = Workflow(
    "job-dispatcher",
    (load_queued_jobs, load_dispatch_capacity, apply_capacity_limits, dispatch_jobs),
    DispatchEnv,
)


class JobDispatcher:
    """Admits queued work under the limits and hands it to task servers.

    What *task_servers* sends nowhere else goes to *server*; with *to_own_workers* of that only
    what a living worker knows, and no more than they have hands for. *own_workers*, in this
    process, start at once what is dispatched to them.

    >>> JobDispatcher(store, settings, observer, server).run_once().dispatched  # doctest: +SKIP
    (1, 2, 3)
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        observer: Observer,
        server: TaskServer,
        *,
        to_own_workers: bool = False,
        task_servers: TaskServers | None = None,
        own_workers: OwnWorkers | None = None,
    ) -> None:
        self._own_workers = own_workers
        self._at_once = (
            AtOnce(own_workers, settings, observer) if own_workers and store.is_ticking else None
        )
        self._turn = ThreadLock()
        self._unknown = UnknownWorkflows()
        self._shut = ShutGroups()
        self._front = Front()
        self._oldest = OldestLive()
        # Until it is known who else there is, nobody may be there to dispatch for its workers.
        self._last = DispatchResult(led=True, for_itself=own_workers is not None)
        self._looked_at: float | None = None
        # Who lived when there was last no more in the queue than one cycle looks at.
        self._at_rest: Workers | None = None
        self._next_at: datetime | None = None
        self._task_servers = task_servers or TaskServers(Registry())
        self._to_own_workers = to_own_workers
        self._store = store
        self._settings = settings
        self._observer = observer
        self._server = server

    def run_once(self) -> DispatchResult:
        """Run one cycle; a server that does not get the lock does nothing.

        Unless everybody dispatches for itself: nobody else gives its workers something to do, so
        it waits for its turn, and does not even ask for one while they have their hands full.
        """
        with self._turn:
            return self._run_once()

    def start_all(self, line: Line) -> bool:
        """Start all that is queued if there is room for all of it, in one go by this
        *line*; False if that, or whatever may come next, takes a cycle."""
        at_rest, own = self._at_rest, self._own_workers
        if self._at_once is None or own is None or at_rest is None:
            return False
        if own.owner not in at_rest.for_themselves or self._task_servers.elsewhere():
            return False
        if not line.is_free or not self._turn.acquire(blocking=False):
            return False
        try:
            started = self._at_once.start(line, at_rest, self._next_at)
            if started:
                self._looked_at = monotonic()
                self._oldest.created([one.id for one in started])
            return bool(started)
        finally:
            self._turn.release()

    def _run_once(self) -> DispatchResult:
        if self._has_hands_full():
            return self._last
        result = self._attempt(wait=False)
        if not result.led and self._last.for_itself:
            result = replace(self._attempt(wait=True), waited=True)
        if result.led:
            self._looked_at = monotonic()
            self._last = DispatchResult(
                led=True, nobody_else=result.nobody_else, for_itself=result.for_itself
            )
        return result

    def _has_hands_full(self) -> bool:
        """Whether the last cycle was a moment ago, and there is nobody to dispatch for since."""
        own = self._own_workers
        if own is None or self._looked_at is None or self._task_servers.elsewhere():
            return False
        recent = monotonic() - self._looked_at < LOOK_AGAIN
        return recent and self._last.for_itself and not own.free

    def _attempt(self, *, wait: bool) -> DispatchResult:
        try:
            return self._run(wait, careful=False)
        except StepFailed as failed:
            if not isinstance(failed.__cause__, Refused):
                raise
        return self._run(wait, careful=True)

    def _run(self, wait: bool, *, careful: bool) -> DispatchResult:
        with KeptHands(self._own_workers) as hands:
            return self._cycle(hands, wait, careful)

    def _cycle(self, hands: KeptHands, wait: bool, careful: bool) -> DispatchResult:
        times = StepTimes()
        with self._store.leading(Lock.DISPATCH, wait=wait) as tx:
            if tx is None:
                return DispatchResult(led=False)
            seen = self._glance(tx)
            workers = self._at_rest if seen else self._living(tx)
            keep = partial(hands.keep, tx, seen)
            free = self._free_hands(workers)
            some = None if free is None else min(free, self._most_at_once())
            env = DispatchEnv(
                tx,
                self._settings,
                workers,
                self._task_servers,
                keep,
                careful,
                some,
                self._front,
                seen,
            )
            state: DispatchState = JOB_DISPATCHER.run_now(DispatchState(), env, before_step=times)
            times.stop()
            self._remember(tx, state, workers)
            if seen is None or seen.queued:
                # What was dispatched is told first; the next cycle sees to that.
                self._shut.note(env, in_a_hurry=bool(state.dispatched))
            unknown = self._unknown.fail(env)
            now = tx.now
            result = DispatchResult(
                led=True,
                loaded=len(state.entries),
                dispatched=tuple(sorted(state.dispatched.values())),
                admissions=state.admissions,
                due_in=due_in(state.next_at, now),
                failed=(*sorted(state.failed), *unknown.failed),
                unknown=unknown.waiting,
                more=_is_more(state, spare=free != some),
                by_server=by_server(state.admissions, state.dispatched),
                nobody_else=workers is not None and workers.everybody,
                for_itself=free is not None,
            )
        hands.started = state.started
        self._oldest.created(state.dispatched.values())
        result = self._pass_on(state, result, now)
        self._tell_of_cycle(result, times)
        return result

    def _remember(self, tx: Transaction, state: DispatchState, workers: Workers | None) -> None:
        self._at_rest = None if state.full else workers
        self._next_at = state.next_at
        if self._at_once:
            self._at_once.learn(state.entries[:FEW])
        self._oldest.note(tx, state.counted)

    def _tell_of_cycle(self, result: DispatchResult, times: StepTimes) -> None:
        self._observer.emit(
            "dispatcher.cycle",
            loaded=result.loaded,
            dispatched=len(result.dispatched),
            failed=len(result.failed),
            reasons=result.reasons,
            seconds=times.seconds,
        )

    def _glance(self, tx: Transaction) -> Glance | None:
        """All that there is, if it was little the last time, and is now."""
        if self._at_rest is None or not tx.on_postgresql or self._task_servers.elsewhere():
            return None
        owner = self._own_workers.owner if self._own_workers else ""
        per_group = self._settings.max_queued_jobs_per_cycle
        excluded = self._settings.exclude_from_max_active_jobs
        return glance(tx, self._at_rest, owner, per_group, excluded)

    def _living(self, tx: Transaction) -> Workers | None:
        return living_workers(tx) if self._to_own_workers else None

    def _pass_on(
        self, state: DispatchState, result: DispatchResult, now: datetime
    ) -> DispatchResult:
        """Tell what was dispatched, and whoever runs it, unless that has begun already."""
        told = state.entries if self._observer.wants("execution.dispatched") else ()
        for entry in told:
            if entry.id in state.dispatched:
                self._tell(entry, state.dispatched[entry.id], now)
        started = {one.id for one in state.started}
        for name, execution_ids in result.by_server.items():
            left = [one for one in execution_ids if one not in started]
            if left and name not in self._task_servers.relayed and not self._hand_over(name, left):
                result = replace(result, more=True)  # it is known then when to try again
        return result

    def _free_hands(self, workers: Workers | None) -> int | None:
        """How many of the own workers are free, if this cycle dispatches for no others."""
        own = self._own_workers
        if workers is None or own is None or own.owner not in workers.for_themselves:
            return None
        return own.free

    def _most_at_once(self) -> int:
        """Of many workers, half are given something while the other half is busy."""
        return max(FEW, -(-self._settings.worker_count // 2))

    def _tell(self, entry: WorkQueueEntry, execution_id: int, now: datetime) -> None:
        self._observer.emit(
            "execution.dispatched",
            execution_id=execution_id,
            entry_id=entry.id,
            external_id=entry.external_id,
            group=entry.group_name,
            workflow=entry.workflow,
            source=entry.source,
            task_server=entry.task_server,
            queued_at=entry.created_at,
            ready_at=entry.ready_at or entry.created_at,
            dispatched_at=now,
        )

    def _hand_over(self, name: str, execution_ids: Sequence[int]) -> bool:
        """After the commit; what a task server refuses goes back to the queue, uncharged."""
        server = self._server if name == LOCAL else self._task_servers[name]
        try:
            server.submit(execution_ids)
        except Exception as error:
            attempts, backoff = self._settings.max_dispatch_attempts, self._settings.retry_policy
            with self._store.writing() as tx:
                refused = outcomes.take_back(tx, execution_ids, attempts, repr(error), backoff)
            self._observer.emit(
                "dispatch.refused", task_server=name, count=len(refused), error=repr(error)
            )
            return False
        return True


def _is_more(state: DispatchState, *, spare: bool) -> bool:
    """Whether another cycle could dispatch more now; *spare* if this one left some hands free."""
    return state.full and bool(state.dispatched) and (spare or has_room(state.admissions))
