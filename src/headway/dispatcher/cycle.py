"""One cycle of the JobDispatcher: one transaction under the dispatch lock, then the hand-over."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from headway.config import Settings
from headway.definition.registry import Registry
from headway.definition.task_servers import TaskServers
from headway.dispatcher.capacity import Admission, Verdict
from headway.dispatcher.steps import (
    apply_capacity_limits,
    dispatch_jobs,
    load_dispatch_capacity,
    load_queued_jobs,
)
from headway.dispatcher.unknown import fail_unknown
from headway.dispatcher.workflow import DispatchEnv, DispatchState
from headway.domain.routing import LOCAL, TaskServer
from headway.observe import Observer, StepTimes
from headway.store import outcomes
from headway.store.delays import next_scheduled_at
from headway.store.engine import Lock, Store
from headway.store.servers import living_workers
from headway.workflow import Workflow

# An event tells the commonest reasons; each entry's own is in its admission.
REASONS = 20

JOB_DISPATCHER = Workflow(
    "job-dispatcher",
    (load_queued_jobs, load_dispatch_capacity, apply_capacity_limits, dispatch_jobs),
    DispatchEnv,
)


@dataclass(frozen=True)
class DispatchResult:
    """What one cycle did: counts, the decision about every entry, and when to run again."""

    led: bool
    loaded: int = 0
    dispatched: tuple[int, ...] = ()
    admissions: tuple[Admission, ...] = ()
    due_in: timedelta | None = None
    failed: tuple[int, ...] = ()
    unknown: Mapping[str, int] = field(default_factory=dict)
    by_server: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def skipped(self) -> Counter[str]:
        """How many entries stay queued, by reason."""
        kept = (Verdict.SKIP, Verdict.STOP)
        return Counter(one.reason for one in self.admissions if one.verdict in kept)


class JobDispatcher:
    """Admits queued work under the limits and hands it to task servers.

    What *task_servers* sends nowhere else goes to *server*; with *to_own_workers* of that only
    what a living worker knows, and no more than they have hands for.

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
    ) -> None:
        self._task_servers = task_servers or TaskServers(Registry())
        self._to_own_workers = to_own_workers
        self._store = store
        self._settings = settings
        self._observer = observer
        self._server = server

    def run_once(self) -> DispatchResult:
        """Run one cycle; a server that does not get the lock does nothing."""
        times = StepTimes()
        with self._store.leading(Lock.DISPATCH) as tx:
            if tx is None:
                return DispatchResult(led=False)
            workers = living_workers(tx) if self._to_own_workers else None
            env = DispatchEnv(tx, self._settings, workers, self._task_servers)
            state: DispatchState = JOB_DISPATCHER.run_now(DispatchState(), env, before_step=times)
            unknown = fail_unknown(env)
            times.stop()
            next_at = next_scheduled_at(tx)
            result = DispatchResult(
                led=True,
                loaded=len(state.entries),
                dispatched=tuple(sorted(state.dispatched.values())),
                admissions=state.admissions,
                due_in=None if next_at is None else next_at - tx.now,
                failed=(*sorted(state.failed), *unknown.failed),
                unknown=unknown.waiting,
                by_server=_by_server(state),
            )
        for name, execution_ids in result.by_server.items():
            if name not in self._task_servers.relayed:
                self._hand_over(name, execution_ids)
        self._observer.emit(
            "dispatcher.cycle",
            loaded=result.loaded,
            dispatched=len(result.dispatched),
            failed=len(result.failed),
            reasons=dict(_reasons(result).most_common(REASONS)),
            seconds=times.seconds,
        )
        return result

    def _hand_over(self, name: str, execution_ids: Sequence[int]) -> None:
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


def _by_server(state: DispatchState) -> dict[str, tuple[int, ...]]:
    """The executions for each task server, in the order of their ids."""
    sent: dict[str, list[int]] = {}
    for entry in state.entries:
        if entry.id in state.dispatched:
            sent.setdefault(entry.task_server, []).append(state.dispatched[entry.id])
    return {name: tuple(sorted(sent[name])) for name in sorted(sent, key=_own_first)}


def _own_first(name: str) -> tuple[bool, str]:
    """Waking the own workers takes no time; another server may take its own."""
    return (name != LOCAL, name)


def _reasons(result: DispatchResult) -> Counter[str]:
    """Why entries stay queued, those that nobody could run included."""
    nobody = {f"no living server knows {name!r}": many for name, many in result.unknown.items()}
    return result.skipped + Counter(nobody)
