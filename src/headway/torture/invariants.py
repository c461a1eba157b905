"""What must hold whatever was killed, stopped or restarted. Pure: facts in, breaches out."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from headway.domain.execution import Execution, ExecutionState, FailureCode
from headway.torture.facts import Facts, first_words, seconds
from headway.torture.intervals import most_at_once, overlaps
from headway.torture.outages import OUTAGES
from headway.torture.plan import CAPS, GLOBAL_CAP
from headway.torture.processes import PROCESSES, Check

COMPLETED, CANCELLED = ExecutionState.COMPLETED, ExecutionState.CANCELLED

SHOWN = 5
ENOUGH_ZOMBIES = 10
OVERTAKEN_BY = 10.0


def nothing_is_lost(facts: Facts) -> Iterator[str]:
    """I1: what was accepted is over when everything has calmed down."""
    yield from facts.unfinished
    runs = facts.runs_per_number()
    asked_for = first_words(facts.noted("accepted")) - first_words(facts.noted("cancelled"))
    for number in sorted(asked_for - {"poison"}):
        ends = [_end(one) for one in runs.get(number, ())]
        # What has lost so many workers counts as their murderer, and is given up.
        given_up = ends.count(FailureCode.WORKER_LOST) >= facts.plan.max_crashes
        if COMPLETED not in ends and not given_up:
            yield f"{number} was accepted and did not complete; its runs: {', '.join(ends) or '-'}"


def _end(one: Execution) -> str:
    return one.failure.type if one.failure is not None else one.state


def one_completion(facts: Facts) -> Iterator[str]:
    """I2: no piece of work is recorded as completed twice."""
    for number, times in facts.completed_per_number().items():
        if times > 1 and not number.startswith(("chain", "alarm", "flaky")):
            yield f"{number} was completed {times} times"


def epochs_rise(facts: Facts) -> Iterator[str]:
    """I3: an execution starts once, and a later start has a higher number.

    A body that a pause kept from starting until its run was somebody else's comes late: that is
    what the number is for, and what it says is refused.
    """
    lost = {one.id for one in facts.executions if one.lost}
    starts = [(int(line.words[0]), line.words[1]) for line in facts.noted("start")]
    for key, times in Counter(key for key, _ in starts).items():
        if times > 1:
            yield f"execution {key} started {times} times"
    last: dict[str, int] = defaultdict(int)
    for key, number in starts:
        if key < last[number] and key not in lost:
            yield f"{number}: execution {key} started after {last[number]}"
        last[number] = max(key, last[number])


def late_writes_were_refused(facts: Facts) -> Iterator[str]:
    """I3: zombies did come back and tried; otherwise nothing was shown. A short run has too few."""
    long = [line for line in facts.noted("stopped") if float(line.words[1]) > facts.plan.lease]
    if len(long) >= ENOUGH_ZOMBIES and not facts.noted("execution.refused"):
        yield "nobody who was buried came back to write: the run proved nothing about that"


def ticks_are_exact(facts: Facts) -> Iterator[str]:
    """I4: the occurrences run are those of the schedule: none missing, none twice."""
    ran: dict[str, list[float]] = defaultdict(list)
    every = facts.plan.tick_seconds
    for one in facts.finished(COMPLETED):
        if one.external_id and one.external_id.startswith("tick-") and one.scheduled_for:
            ran[one.external_id].append(seconds(one.scheduled_for))
    if len(ran) != facts.plan.tickers:
        yield f"{len(ran)} of {facts.plan.tickers} tickers ran"
    for name, moments in ran.items():
        for earlier, later in pairwise(sorted(moments)):
            if earlier == later:
                yield f"{name}: {earlier} twice"
            elif later - earlier > every and later < facts.cutoff:
                yield f"{name}: nothing between {earlier} and {later}"
            elif later - earlier < every:
                yield f"{name}: {later} is not {every} seconds after {earlier}"


def caps_hold_in_the_record(facts: Facts) -> Iterator[str]:
    """I5: at no sampled moment more held a slot than the caps allow."""
    for sample in facts.samples:
        if sample.total > GLOBAL_CAP:
            yield f"{sample.total} at once at {sample.moment}"
        for cap in CAPS:
            if (count := sample.by_group.get(f"cap-{cap}", 0)) > cap:
                yield f"{count} of cap-{cap} at {sample.moment}"


def what_is_completed_has_ended(facts: Facts) -> Iterator[str]:
    """I2: nobody records the end of a body that has not come to it."""
    ended = {int(line.words[0]): line.moment for line in facts.noted("end")}
    for one in facts.finished(COMPLETED):
        moment = ended.get(one.id)
        if moment is None or moment > seconds(one.finished_at) + 0.001:
            yield f"execution {one.id} of {one.external_id or one.workflow} is completed, but \
its body {'never ended' if moment is None else 'ended later'}"


def caps_hold_in_the_bodies(facts: Facts) -> Iterator[str]:
    """I5: the bodies say the same, those aside whose worker was given up."""
    groups = {one.id: one.group_name or "" for one in facts.executions if not one.lost}
    ran = overlaps(facts, groups)
    if (count := most_at_once([one for each in ran.values() for one in each])) > GLOBAL_CAP:
        yield f"{count} bodies ran at once"
    for group, intervals in ran.items():
        cap = int(group.removeprefix("cap-")) if group.startswith("cap-") else GLOBAL_CAP
        if (count := most_at_once(intervals)) > cap:
            yield f"{count} bodies of {group or 'no group'} ran at once"


def failures_are_counted_once(facts: Facts) -> Iterator[str]:
    """I10: a hopeless job gets exactly its attempts; crashes and hand-backs are not charged."""
    failures: Counter[str] = Counter()
    for one in facts.finished(ExecutionState.FAILED):
        if one.external_id and one.external_id.startswith("hopeless-") and not one.lost:
            failures[one.external_id] += 1
    for name, count in failures.items():
        if count != 2:
            yield f"{name} failed {count} times, with max_retries=2"


def chains_are_followed(facts: Facts) -> Iterator[str]:
    """I11: a dependent runs after each success of its parent, and never more often."""
    ran: dict[str, list[Execution]] = defaultdict(list)
    for one in facts.finished(COMPLETED):
        ran[one.external_id or ""].append(one)
    for number in range(facts.plan.chains):
        for parent, child in ("ab", "bc"):
            above, below = ran[f"chain-{number}-{parent}"], ran[f"chain-{number}-{child}"]
            name = f"chain-{number}-{child}"
            if len(below) > len(above):
                yield f"{name} completed {len(below)} times, its parent {len(above)} times"
            ends = [seconds(one.finished_at) for one in above]
            before = [end for end in ends if end < facts.cutoff - 5]
            if before and not any(seconds(one.started_at) >= before[-1] for one in below):
                yield f"{name} did not run after its parent's last success"


def no_activation_is_lost(facts: Facts) -> Iterator[str]:
    """I11: what a parent was told will run, ran."""
    done = facts.completed_per_number()
    for line in facts.noted("activated"):
        if line.moment < facts.cutoff and done.get(line.words[0], 0) != 1:
            yield f"the activation {line.words[0]} of {line.words[1]} did not run once"


def cancelled_is_cancelled(facts: Facts) -> Iterator[str]:
    """I12: the answer to a cancellation is what became of the work."""
    started = {line.words[1] for line in facts.noted("start")}
    done = facts.completed_per_number()
    for line in facts.noted("cancelled"):
        number, answer = line.words
        never_starts = answer.endswith("_cancelled")
        if never_starts and done.get(number):
            yield f"{number} was told to be cancelled before it started, and completed"
        elif never_starts and number in started and not _restarted(facts, number):
            yield f"{number} was told to be cancelled before it started, and started"
        elif answer == "already_finished:_completed" and done.get(number) != 1:
            yield f"{number} was told to be completed, and is not"


def _restarted(facts: Facts, number: str) -> bool:
    """Whether it had started before it was cancelled, and was back in the queue then."""
    starts = [line.moment for line in facts.noted("start") if line.words[1] == number]
    [asked] = [line.moment for line in facts.noted("cancelled") if line.words[0] == number]
    return max(starts) < asked


def the_record_is_sound(facts: Facts) -> Iterator[str]:
    """I14: no ailment in the database."""
    yield from facts.ailments


def nothing_unhandled(facts: Facts) -> Iterator[str]:
    """I15: no traceback in the log."""
    if (count := facts.log.count("Traceback (most recent call last)")) > 0:
        yield f"{count} tracebacks in the log"


def poison_is_put_away(facts: Facts) -> Iterator[str]:
    """P11: a job that kills its workers is dead-lettered."""
    letters = {letter.external_id for letter in facts.dead_letters}
    for number in range(facts.plan.poisonous):
        if f"poison-{number}" not in letters:
            yield f"poison-{number} is not dead-lettered"


def nobody_is_overtaken(facts: Facts) -> Iterator[str]:
    """I16: of equal pieces of work, what was asked for much later is not sent first."""
    asked = {line.words[1]: line.moment for line in facts.noted("accepted")}
    sent: dict[str, dict[float, float]] = defaultdict(dict)
    for one in sorted(facts.executions, key=lambda one: one.id, reverse=True):
        if (moment := asked.get(str(one.entry_id))) is not None:
            sent[one.external_id or "work without a manifest"][moment] = seconds(one.dispatched_at)
    for name, line in sent.items():
        first = float("inf")
        later: list[tuple[float, float]] = []
        for moment in sorted(line, reverse=True):
            while later and later[0][0] > moment + OVERTAKEN_BY:
                first = min(first, later.pop(0)[1])
            if line[moment] > first:
                yield f"{name}: what was asked for at {moment} was sent after what came much later"
            later.append((moment, line[moment]))


INVARIANTS: tuple[Check, ...] = (
    nothing_is_lost,
    one_completion,
    what_is_completed_has_ended,
    epochs_rise,
    late_writes_were_refused,
    ticks_are_exact,
    caps_hold_in_the_record,
    caps_hold_in_the_bodies,
    failures_are_counted_once,
    chains_are_followed,
    no_activation_is_lost,
    cancelled_is_cancelled,
    the_record_is_sound,
    nothing_unhandled,
    poison_is_put_away,
    nobody_is_overtaken,
    *PROCESSES,
    *OUTAGES,
)


def breaches(facts: Facts) -> dict[str, list[str]]:
    """What does not hold, by the invariant's name."""
    found = {check.__name__: list(check(facts)) for check in INVARIANTS}
    return {name: told for name, told in found.items() if told}
