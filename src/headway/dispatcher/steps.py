"""LoadQueuedJobs → LoadDispatchCapacity → ApplyCapacityLimits → DispatchJobs."""

from dataclasses import replace

from headway.dispatcher.capacity import Verdict, admit, keep_to_room
from headway.dispatcher.resting import resting_until
from headway.dispatcher.workflow import DispatchEnv, DispatchState
from headway.domain.work_queue import WorkQueueEntry
from headway.store import delays, executions, work_queue

MOST_IN_ONE_CYCLE = 1000

# A page may be full of entries at rest; each look puts off all that rest for the same reason.
LOOKS = 5

# As many wait for a slot as there are slots; the rest stays queued, where limits, priorities and
# cancellation still reach it, and nothing grows stale.
KEPT_READY = 2


def load_queued_jobs(state: DispatchState, env: DispatchEnv) -> DispatchState:
    """Read what may be dispatched now, best first, no group taking up the whole page.

    What was queued before an exclusion of its manifest began is put off until that ends.
    """
    for _ in range(LOOKS):
        entries = _dispatchable(env)
        resting = resting_until(entries, env.tx.now)
        if not resting:
            break
        delays.rest(env.tx, resting)
    awake = [entry for entry in entries if entry.resting not in resting]
    return replace(state, entries=tuple(awake))


def _dispatchable(env: DispatchEnv) -> list[WorkQueueEntry]:
    return work_queue.dispatchable(
        env.tx,
        env.settings.max_queued_jobs_per_cycle,
        MOST_IN_ONE_CYCLE,
        env.settings.exclude_from_max_active_jobs,
        None if env.workers is None else env.workers.workflows,
    )


def load_dispatch_capacity(state: DispatchState, env: DispatchEnv) -> DispatchState:
    """Count what holds a slot, overall and per group."""
    if not state.entries:
        return state
    active = executions.count_active(env.tx, env.settings.exclude_from_max_active_jobs)
    return replace(state, active=active)


def apply_capacity_limits(state: DispatchState, env: DispatchEnv) -> DispatchState:
    """Decide who gets a slot; decides only, writes nothing."""
    admissions = admit(
        state.entries,
        state.active,
        env.settings.max_active_jobs,
        env.settings.exclude_from_max_active_jobs,
    )
    if env.workers is not None:
        room = env.workers.slots * KEPT_READY - state.active.live
        admissions = keep_to_room(admissions, room)
    return replace(state, admissions=tuple(admissions))


def dispatch_jobs(state: DispatchState, env: DispatchEnv) -> DispatchState:
    """Turn the admitted entries into pending executions, all in one statement."""
    admitted = [one.entry.id for one in state.admissions if one.verdict is Verdict.DISPATCH]
    return replace(state, dispatched=work_queue.dispatch(env.tx, admitted))
