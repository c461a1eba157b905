"""DetermineJobsToQueue and CreateWorkQueueEntries."""

import json
from dataclasses import replace
from datetime import datetime, timedelta

from headway.domain.manifest import DEPENDENT, ManifestDispatchView
from headway.domain.work_queue import NewEntry, Source, entry_priority
from headway.manager.decide import Decision, Verdict, decide_all, last_group
from headway.manager.state import ManagerEnv, ManagerState
from headway.store import wakes, work_queue

# When to try again what the database would not take.
REFUSED_PAUSE = timedelta(minutes=1)


def determine_jobs_to_queue(state: ManagerState, env: ManagerEnv) -> ManagerState:
    """Decide about every loaded manifest; decides only, writes nothing."""
    decisions = decide_all(
        state.views.values(), state.dead_lettered, env.tx.now, env.settings, env.last_served
    )
    return replace(
        state, decisions=tuple(decisions), last_served=last_group(decisions, env.last_served)
    )


def create_work_queue_entries(state: ManagerState, env: ManagerEnv) -> ManagerState:
    """Write the entries, and for every candidate the time of its next look."""
    boost = env.settings.dependent_priority_boost
    entries = [_entry(one, boost) for one in state.decisions if one.verdict is Verdict.QUEUE]
    queued, refused = work_queue.enqueue_each(env.tx, entries)
    # What is queued sleeps until its run ends; a candidate without a view was removed, and sleeps
    # for good.
    times: dict[int, datetime | None] = dict.fromkeys(state.candidates)
    times |= {one.view.manifest_id: one.wake_at for one in state.decisions}
    times |= dict.fromkeys(refused, env.tx.now + REFUSED_PAUSE)
    wakes.set_wake_times(env.tx, times, locked=state.candidates)
    wakes.settle(
        env.tx,
        {one.view.manifest_id: one.settle_until for one in state.decisions if one.settle_until},
    )
    return replace(state, queued=len(queued), refused=refused)


def _entry(decision: Decision, boost: int) -> NewEntry:
    view = decision.view
    dependent = view.kind == DEPENDENT
    return NewEntry(
        workflow=view.workflow,
        source=Source.DEPENDENT if dependent else Source.SCHEDULE,
        input=view.input,
        input_type=view.input_type,
        priority=entry_priority(view.group_priority, boost if dependent else 0),
        manifest_id=view.manifest_id,
        group_id=view.group_id,
        scheduled_at=decision.not_before,
        scheduled_for=decision.scheduled_for,
        attempts=view.failed_count,
        parents_seen=_seen(view),
    )


def _seen(view: ManifestDispatchView) -> str | None:
    """The newest success of each parent, noted for when this entry has been dealt with."""
    if not view.edges:
        return None
    seen = {str(edge): state.seen_seq for edge, state in view.edges.items()}
    return json.dumps(seen, sort_keys=True)
