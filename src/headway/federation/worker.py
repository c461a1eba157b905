"""The Manifest Scheduler Worker: turns a request for a manifest into a snapshot and a workorder."""

from collections.abc import Callable
from dataclasses import dataclass

from headway.domain.azolla.artifacts import ResponseStatus
from headway.errors import StepFailed
from headway.federation.scheduling import (
    build_context_snapshot,
    claim_event,
    create_workorder,
    mark_processed,
    pick_event,
    query_azollas,
    read_local_state,
    release_claim,
)
from headway.federation.tick import Tick, WorkerEnv
from headway.observe import told
from headway.store import events
from headway.store.claims import ClaimLost
from headway.workflow import Workflow

MANIFEST_SCHEDULER_WORKER = Workflow(
    "manifest-scheduler-worker",
    (
        pick_event,
        claim_event,
        query_azollas,
        read_local_state,
        build_context_snapshot,
        create_workorder,
        mark_processed,
        release_claim,
    ),
    WorkerEnv,
)

BeforeStep = Callable[[str], None]


@dataclass(frozen=True)
class TickResult:
    """What one tick did; it is *waiting* while the page of another request is being built."""

    event_id: str | None = None
    work_order_id: str | None = None
    processed: bool = False
    failed: bool = False
    parked: int = 0
    waiting: bool = False
    answered: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()

    @property
    def worked(self) -> bool:
        """Whether there was something to do: then there may be more."""
        return self.processed or self.parked > 0


class ManifestSchedulerWorker:
    """Deals with one event in each tick; any number of them work side by side.

    >>> ManifestSchedulerWorker(env).run_once().processed  # doctest: +SKIP
    True
    """

    def __init__(self, env: WorkerEnv, before_step: BeforeStep = lambda name: None) -> None:
        self._env = env
        self._before_step = before_step

    def run_once(self) -> TickResult:
        """Take the oldest event that waits through all eight steps.

        Whoever loses its claim on the way stops there. After any other failure the claim is left to
        expire, which is how long the event waits for its next attempt, while others go ahead.
        """
        try:
            tick: Tick = MANIFEST_SCHEDULER_WORKER.run_now(
                Tick(), self._env, before_step=self._before_step
            )
        except StepFailed as failed:
            self._fail(failed.step, failed.__cause__ or failed)
            return TickResult(failed=True)
        result = _result(tick)
        if result.worked:
            self._tell(result)
        return result

    def _fail(self, step: str, error: BaseException) -> None:
        if isinstance(error, ClaimLost):
            self._env.observer.emit("azolla.claim_lost", step=step, error=str(error))
            return
        sentence = f"{step}: {told(error)}"
        with self._env.store.writing() as tx:
            events.note_failure(tx, self._env.owner, sentence)
        self._env.observer.emit("azolla.failed", step=step, error=told(error))

    def _tell(self, result: TickResult) -> None:
        self._env.observer.emit(
            "azolla.tick",
            event=result.event_id,
            workorder=result.work_order_id,
            parked=result.parked,
            answered=list(result.answered),
            silent=list(result.silent),
        )


def _result(tick: Tick) -> TickResult:
    by_status: dict[bool, set[str]] = {True: set(), False: set()}
    for one in tick.asked:
        by_status[one.response.status is ResponseStatus.OK].add(one.query.target_azolla_id)
    return TickResult(
        event_id=tick.event.event_id if tick.event else None,
        work_order_id=tick.workorder.work_order_id if tick.workorder else None,
        processed=tick.processed,
        parked=tick.parked,
        waiting=tick.waiting,
        answered=tuple(sorted(by_status[True])),
        silent=tuple(sorted(by_status[False] - by_status[True])),
    )
