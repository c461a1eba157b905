"""One cycle of the ManifestManager: all steps over one chunk, in one transaction, by one leader."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from headway.config import Settings
from headway.manager.chunk import ChunkSize
from headway.manager.decide import Decision, Verdict
from headway.manager.load import load_manifests
from headway.manager.queue import create_work_queue_entries, determine_jobs_to_queue
from headway.manager.reap import (
    cancel_timed_out_jobs,
    reap_failed_jobs,
    reap_stale_in_progress,
    reap_stale_pending,
)
from headway.manager.state import ManagerEnv, ManagerState
from headway.observe import Observer, StepTimes
from headway.store.engine import Store, ended_by_timeout
from headway.store.locks import Lock
from headway.store.transaction import Transaction
from headway.store.wakes import next_wake_at
from headway.workflow import Workflow

# An event tells the commonest reasons; each manifest's own is in its decision.
REASONS = 20

# How often what is live is looked at for what takes too long, however many cycles there are.
WATCH_EVERY = timedelta(seconds=1)

MANIFEST_MANAGER = Workflow(
    "manifest-manager",
    (
        load_manifests,
        cancel_timed_out_jobs,
        reap_stale_pending,
        reap_stale_in_progress,
        reap_failed_jobs,
        determine_jobs_to_queue,
        create_work_queue_entries,
    ),
    ManagerEnv,
)


@dataclass(frozen=True)
class ManagerResult:
    """What one cycle did: counts, the decision about every candidate, and when to run again."""

    led: bool
    candidates: int = 0
    queued: int = 0
    cancelled: int = 0
    reaped_pending: int = 0
    reaped_in_progress: int = 0
    dead_lettered: int = 0
    decisions: tuple[Decision, ...] = ()
    refused: int = 0
    due_in: timedelta | None = None

    def counts(self) -> dict[str, int]:
        """What the cycle did, in numbers."""
        return {name: value for name, value in vars(self).items() if type(value) is int}

    @property
    def skipped(self) -> Counter[str]:
        """How many candidates were skipped or deferred, by reason."""
        return Counter(one.reason for one in self.decisions if one.verdict is not Verdict.QUEUE)


class ManifestManager:
    """Decides each cycle what is due and writes it to the work queue.

    >>> ManifestManager(store, settings, observer).run_once().queued  # doctest: +SKIP
    3
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        observer: Observer,
        cancel_here: Callable[[Sequence[int]], None] = lambda execution_ids: None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._observer = observer
        self._cancel_here = cancel_here
        self._chunk = ChunkSize()
        self._last_served = 0
        self._watched_at: datetime | None = None

    def run_once(self) -> ManagerResult:
        """Run one cycle over one chunk; a server that is not the leader does nothing.

        ``due_in`` is zero or less when there is more: the next cycle is to follow at once.
        """
        times = StepTimes()
        try:
            with self._store.leading(Lock.MANAGE) as tx:
                if tx is None:
                    return ManagerResult(led=False)
                watches = self._is_time_to_watch(tx.now)
                env = ManagerEnv(tx, self._settings, self._chunk.size, self._last_served, watches)
                state: ManagerState = MANIFEST_MANAGER.run_now(
                    ManagerState(), env, before_step=times
                )
                times.stop()
                result = _result(state, _until(tx, next_wake_at(tx)))
        except Exception as error:
            if ended_by_timeout(error):
                self._chunk.took_too_long()
            raise
        self._chunk.done(result.candidates)
        self._last_served = state.last_served
        if watches:
            self._watched_at = env.tx.now
        self._tell(state)
        self._observer.emit(
            "manager.cycle",
            **result.counts(),
            reasons=dict(result.skipped.most_common(REASONS)),
            seconds=times.seconds,
        )
        return result

    def _is_time_to_watch(self, now: datetime) -> bool:
        """No timeout is so short that it matters; and a busy manager looks at thousands of runs."""
        return self._watched_at is None or not timedelta() <= now - self._watched_at < WATCH_EVERY

    def _tell(self, state: ManagerState) -> None:
        """Only now that it has happened for good: a cycle that rolls back tells nobody."""
        self._cancel_here(state.cancelled)
        for one in state.reaped:
            self._observer.emit(f"execution.{one.state}", **one.told())
        for manifest_id in state.dead_lettered:
            external_id = state.views[manifest_id].external_id
            self._observer.emit("manifest.dead_lettered", external_id=external_id)
        for manifest_id, error in state.refused.items():
            external_id = state.views[manifest_id].external_id
            self._observer.emit("manifest.refused", external_id=external_id, error=error)


def _until(tx: Transaction, moment: datetime | None) -> timedelta | None:
    return None if moment is None else moment - tx.now


def _result(state: ManagerState, due_in: timedelta | None) -> ManagerResult:
    return ManagerResult(
        led=True,
        candidates=len(state.candidates),
        queued=state.queued,
        cancelled=len(state.cancelled),
        reaped_pending=len(state.reaped_pending),
        reaped_in_progress=len(state.reaped_in_progress),
        dead_lettered=len(state.dead_lettered),
        decisions=state.decisions,
        refused=len(state.refused),
        due_in=due_in,
    )
