"""LoadQueuedJobs → LoadDispatchCapacity → ApplyCapacityLimits → DispatchJobs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from headway.config import Settings
from headway.dispatcher.ageing import aged_first, free_slots
from headway.dispatcher.capacity import Verdict, admit
from headway.dispatcher.faults import failing
from headway.dispatcher.resting import resting_until
from headway.dispatcher.workflow import DispatchEnv, DispatchState
from headway.domain.execution import FailureCode
from headway.domain.routing import LOCAL, Share
from headway.domain.work_queue import WorkQueueEntry, dispatch_order, one_per_manifest
from headway.store import delays, executions, failed_entries, outbox, shut_groups, work_queue

MOST_IN_ONE_CYCLE = 1000

# Read beyond what could start at all, so that a cycle can say why these do not.
BEYOND = 100

# What comes due at the same moment takes its place in the order in portions like this.
MOST_RIPENED = 10_000

# How exactly it is known when a group was last full or disabled, in parts of ``starvation_after``.
NOTED_WITHIN = 10

# A page may be full of entries at rest; each look puts off all that rest for the same reason.
LOOKS = 5

# As many wait for a slot as there are slots; the rest stays queued, where limits, priorities and
# cancellation still reach it, and nothing grows stale.
KEPT_READY = 2


def load_queued_jobs(state: DispatchState, env: DispatchEnv) -> DispatchState:
    """Read what may be dispatched now, best first, no group taking up the whole page.

    What was queued before an exclusion of its manifest began is put off until that ends.
    """
    delays.ripen(env.tx, MOST_RIPENED)
    for _ in range(LOOKS):
        entries = _dispatchable(env)
        resting = resting_until(entries, env.tx.now)
        if not resting:
            break
        delays.rest(env.tx, resting)
    awake = [entry for entry in entries if entry.resting not in resting]
    return replace(state, entries=tuple(env.task_servers.routed(awake)))


def _dispatchable(env: DispatchEnv) -> list[WorkQueueEntry]:
    """What the own workers take, and what this application sends elsewhere.

    Read apart, so that neither hides the other when the page is full.
    """
    most, workers = _most(env.settings), env.workers
    if workers is None:
        return _read(env, None, most)
    found = _read(env, workers.shares, min(most, workers.slots * KEPT_READY + BEYOND))
    if elsewhere := env.task_servers.reachable():
        found += _read(env, elsewhere, most)
        found = sorted(one_per_manifest(found), key=dispatch_order)
    return found


def _most(settings: Settings) -> int:
    """What a cycle could start at best; there is no use in reading much more."""
    limit = settings.max_active_jobs
    return MOST_IN_ONE_CYCLE if limit is None else min(MOST_IN_ONE_CYCLE, limit + BEYOND)


def _read(env: DispatchEnv, taken: Sequence[Share] | None, most: int) -> list[WorkQueueEntry]:
    return work_queue.dispatchable(
        env.tx,
        env.settings.max_queued_jobs_per_cycle,
        most,
        env.settings.exclude_from_max_active_jobs,
        taken,
        env.tx.now - env.settings.starvation_after,
    )


def load_dispatch_capacity(state: DispatchState, env: DispatchEnv) -> DispatchState:
    """Count what holds a slot, overall and per group."""
    if not state.entries:
        return state
    active = executions.count_active(env.tx, env.settings.exclude_from_max_active_jobs)
    return replace(state, active=active)


def apply_capacity_limits(state: DispatchState, env: DispatchEnv) -> DispatchState:
    """Decide who gets a slot; decides only, writes nothing."""
    settings, workers = env.settings, env.workers
    excluded = settings.exclude_from_max_active_jobs
    faulty = failing(state.entries)
    ids = {one.entry.id for one in faulty}
    sound = [entry for entry in state.entries if entry.id not in ids]
    room = None if workers is None else max(0, workers.slots * KEPT_READY - state.active.local)
    elsewhere = sum(entry.task_server != LOCAL for entry in sound)
    hands = None if room is None else room + elsewhere
    slots = free_slots(len(sound), state.active, settings.max_active_jobs, hands)
    aged_before = env.tx.now - settings.starvation_after
    ordered = aged_first(sound, state.active, slots, aged_before, excluded, room)
    admissions = admit(ordered, state.active, settings.max_active_jobs, excluded, room)
    return replace(state, admissions=(*faulty, *admissions))


def dispatch_jobs(state: DispatchState, env: DispatchEnv) -> DispatchState:
    """Turn the admitted entries into pending executions, and fail what can never be one.

    All in one statement; where the database refuses that, the entry it refuses is found, fails
    with the reason, and costs no other: its slot goes to the next.
    """
    dispatched: dict[int, int] = {}
    refused = {one.entry.id: one.reason for one in state.admissions if one.verdict is Verdict.FAIL}
    for _ in range(LOOKS):
        admitted = _admitted(state, {*dispatched, *refused})
        elsewhere = {one.id: one.task_server for one in admitted if one.task_server != LOCAL}
        ids = [one.id for one in admitted]
        started, unfit = work_queue.dispatch_each(env.tx, ids, elsewhere)
        dispatched |= started
        refused |= unfit
        if not unfit:
            break
        state = _admit_others(state, env)
    outbox.put(env.tx, _to_tell(state, env, dispatched))
    ended = failed_entries.fail(env.tx, refused, FailureCode.NOT_DISPATCHABLE)
    shut_groups.note_shut_groups(env.tx, env.settings.starvation_after / NOTED_WITHIN)
    return replace(state, dispatched=dispatched, failed={key: refused[key] for key in ended})


def _to_tell(
    state: DispatchState, env: DispatchEnv, dispatched: Mapping[int, int]
) -> dict[int, str]:
    """The executions of servers that are told through the outbox, with their servers' names."""
    relayed = env.task_servers.relayed
    return {
        dispatched[one.id]: one.task_server
        for one in state.entries
        if one.id in dispatched and one.task_server in relayed
    }


def _admitted(state: DispatchState, but: Collection[int]) -> list[WorkQueueEntry]:
    admitted = [one.entry for one in state.admissions if one.verdict is Verdict.DISPATCH]
    return [entry for entry in admitted if entry.id not in but]


def _admit_others(state: DispatchState, env: DispatchEnv) -> DispatchState:
    """Let those whom the limits kept out have what is free now that others were refused."""
    decided = [one for one in state.admissions if one.verdict in (Verdict.DISPATCH, Verdict.FAIL)]
    ids = {one.entry.id for one in decided}
    others = replace(state, entries=tuple(one for one in state.entries if one.id not in ids))
    again = apply_capacity_limits(load_dispatch_capacity(others, env), env)
    return replace(again, entries=state.entries, admissions=(*decided, *again.admissions))
