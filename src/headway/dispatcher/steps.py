"""LoadQueuedJobs → LoadDispatchCapacity → ApplyCapacityLimits → DispatchJobs."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from headway.dispatcher.workflow import DispatchEnv, DispatchState
from headway.domain.admission import Verdict
from headway.domain.dispatching import decide_admissions
from headway.domain.execution import Execution, FailureCode
from headway.domain.resting import resting_until
from headway.domain.routing import LOCAL
from headway.domain.work_queue import WorkQueueEntry
from headway.store import delays, executions, failed_entries, outbox, work_queue
from headway.store.dispatch_page import Page, is_over, limits_of, read_page

# What comes due at the same moment takes its place in the order in portions like this.
MOST_RIPENED = 10_000

# A page may be full of entries at rest; each look puts off all that rest for the same reason.
LOOKS = 5


def load_queued_jobs(state: DispatchState, env: DispatchEnv) -> DispatchState:
    """Read what may be dispatched now, best first, no group taking up the whole page.

    What was queued before an exclusion of its manifest began is put off until that ends.
    """
    page = Page(env.seen.entries, False, env.seen.next_at) if env.seen else _read(env)
    if is_over(page.next_at, env.tx.now) and delays.ripen(env.tx, MOST_RIPENED):
        page = _read(env)
    resting = resting_until(page.entries, env.tx.now)
    for _ in range(LOOKS):
        if not resting:
            break
        delays.rest(env.tx, resting)
        page = _read(env)
        resting = resting_until(page.entries, env.tx.now)
    awake = [entry for entry in page.entries if entry.resting not in resting]
    return replace(
        state,
        entries=tuple(env.task_servers.routed(awake)),
        full=page.full,
        next_at=page.next_at,
        live_from=page.live_from,
    )


def _read(env: DispatchEnv) -> Page:
    return read_page(
        env.tx, env.settings, env.workers, env.task_servers.reachable(), env.free_hands, env.front
    )


def load_dispatch_capacity(state: DispatchState, env: DispatchEnv) -> DispatchState:
    """Count what holds a slot, overall and per group."""
    if env.seen:
        return replace(state, active=env.seen.active)
    if not state.entries:
        return state
    excluded = env.settings.exclude_from_max_active_jobs
    active = executions.count_active(env.tx, excluded, state.live_from)
    env.front.count_from(active.oldest)
    return replace(state, active=active)


def apply_capacity_limits(state: DispatchState, env: DispatchEnv) -> DispatchState:
    """Decide who gets a slot; decides only, writes nothing."""
    limits = limits_of(env.tx, env.settings, env.workers, env.free_hands)
    return replace(state, admissions=decide_admissions(state.entries, state.active, limits))


def dispatch_jobs(state: DispatchState, env: DispatchEnv) -> DispatchState:
    """Turn the admitted entries into executions, and fail what can never be one.

    All in one statement; where the database refuses that, the entry it refuses is found, fails
    with the reason, and costs no other: its slot goes to the next.
    """
    dispatched: dict[int, int] = {}
    started: list[Execution] = []
    hands = env.keep_hands() if _admitted(state, ()) else None
    refused = {one.entry.id: one.reason for one in state.admissions if one.verdict is Verdict.FAIL}
    for _ in range(LOOKS):
        admitted = _admitted(state, {*dispatched, *refused})
        elsewhere = {one.id: one.task_server for one in admitted if one.task_server != LOCAL}
        ids = [one.id for one in admitted]
        begin = hands.start(admitted) if hands else None
        done = work_queue.dispatch_each(env.tx, ids, elsewhere, begin, careful=env.careful)
        dispatched |= done.executions
        refused |= done.refused
        started += done.started
        hands = None
        if not done.refused:
            break
        state = _admit_others(state, env)
    outbox.put(env.tx, _to_tell(state, env, dispatched))
    if state.active.oldest is None:  # then these are
        env.front.count_from(min(dispatched.values(), default=None))
    ended = failed_entries.fail(env.tx, refused, FailureCode.NOT_DISPATCHABLE)
    failed = {key: refused[key] for key in ended}
    return replace(state, dispatched=dispatched, started=tuple(started), failed=failed)


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
    left = tuple(one for one in state.entries if one.id not in ids)
    # Those that were dispatched count as well.
    others, now = replace(state, entries=left, live_from=0), replace(env, seen=None)
    again = apply_capacity_limits(load_dispatch_capacity(others, now), now)
    return replace(again, entries=state.entries, admissions=(*decided, *again.admissions))
