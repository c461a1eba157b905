"""DetermineJobsToQueue and CreateWorkQueueEntries."""

from dataclasses import replace

from headway.domain.work_queue import NewEntry, Source, entry_priority
from headway.manager.decide import Decision, Verdict, decide_all
from headway.manager.workflow import ManagerEnv, ManagerState
from headway.store import wakes, work_queue


def determine_jobs_to_queue(state: ManagerState, env: ManagerEnv) -> ManagerState:
    """Decide about every loaded manifest; decides only, writes nothing."""
    decisions = decide_all(state.views.values(), state.dead_lettered, env.tx.now, env.settings)
    return replace(state, decisions=tuple(decisions))


def create_work_queue_entries(state: ManagerState, env: ManagerEnv) -> ManagerState:
    """Write the entries, and for every candidate the time of its next look."""
    entries = [_entry(one) for one in state.decisions if one.verdict is Verdict.QUEUE]
    queued = work_queue.enqueue(env.tx, entries)
    # A candidate without a view has been removed: it sleeps for good.
    times = dict.fromkeys(state.candidates)
    wakes.set_wake_times(
        env.tx, times | {one.view.manifest_id: one.wake_at for one in state.decisions}
    )
    return replace(state, queued=len(queued))


def _entry(decision: Decision) -> NewEntry:
    view = decision.view
    return NewEntry(
        workflow=view.workflow,
        source=Source.SCHEDULE,
        input=view.input,
        input_type=view.input_type,
        priority=entry_priority(view.group_priority),
        manifest_id=view.manifest_id,
        group_id=view.group_id,
        scheduled_at=decision.not_before,
        scheduled_for=decision.scheduled_for,
        attempts=view.failed_count,
    )
