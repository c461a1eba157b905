"""What must hold whatever was killed, stopped or restarted. Pure: facts in, breaches out."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise

from headway.domain.execution import Execution, ExecutionState
from headway.torture.facts import Facts, first_words, seconds
from headway.torture.intervals import most_at_once, overlaps
from headway.torture.plan import CAPS, GLOBAL_CAP

COMPLETED, CANCELLED = ExecutionState.COMPLETED, ExecutionState.CANCELLED

Check = Callable[[Facts], Iterator[str]]

SHOWN = 5
NOTICED_P99, NOTICED_MAX = 10.0, 15.0
LEADERLESS = 10.0
BACK_WITHIN = 5.0
ENOUGH_ZOMBIES = 10
OWN_CONNECTIONS = 4  # the client and whoever looks on, with two each


def nothing_is_lost(facts: Facts) -> Iterator[str]:
    """I1: what was accepted is over when everything has calmed down."""
    yield from facts.unfinished
    started = {line.words[1] for line in facts.noted("start")}
    done = facts.completed_per_number()
    cancelled = first_words(facts.noted("cancelled"))
    for number in sorted(first_words(facts.noted("accepted")) - cancelled):
        if number != "poison" and not done.get(number):
            yield f"{number} was accepted, {'started' if number in started else 'never started'}, \
and did not complete"


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


def nobody_is_given_up_without_reason(facts: Facts) -> Iterator[str]:
    """I6: only workers that were killed or stopped for long lost their runs."""
    gone = {int(word) for what in ("killed", "exited") for word in first_words(facts.noted(what))}
    slept = {int(word) for word in first_words(facts.noted("stopped"))}
    for one in facts.executions:
        if one.lost and _pid(one) not in gone | slept:
            yield f"execution {one.id} was taken from {one.owner}, who lived"


def the_dead_are_noticed_in_time(facts: Facts) -> Iterator[str]:
    """I7: what a killed worker ran is free again within its lease and a sweep."""
    waits = sorted(noticed_after(facts))
    if not waits:
        return
    p99 = waits[int(0.99 * (len(waits) - 1))]
    if p99 > NOTICED_P99 or waits[-1] > NOTICED_MAX:
        yield f"noticed after {p99:.1f} s (p99), {waits[-1]:.1f} s at worst"


def noticed_after(facts: Facts) -> list[float]:
    """For each run a SIGKILL ended: the seconds until it was known, outages not counted."""
    killed = {int(line.words[0]): line.moment for line in facts.noted("killed")}
    waits = []
    for one in facts.executions:
        if one.lost and (at := killed.get(_pid(one))) is not None:
            noticed = seconds(one.finished_at)
            waits.append(noticed - at - _outage(facts, at, noticed))
    return waits


def somebody_leads(facts: Facts) -> Iterator[str]:
    """I8: no stretch without a manager's cycle."""
    led = [line.moment for line in facts.noted("led") if line.moment <= facts.cutoff]
    for earlier, later in pairwise(led):
        if later - earlier - _outage(facts, earlier, later) > LEADERLESS:
            yield f"nobody led for {later - earlier:.1f} s from {earlier}"


def work_goes_on_after_an_outage(facts: Facts) -> Iterator[str]:
    """I9: the first start comes soon after the database is back."""
    starts = [line.moment for line in facts.noted("start")]
    downs = [line.moment for line in facts.noted("down")]
    for up in (line.moment for line in facts.noted("up")):
        first = next((moment for moment in starts if moment > up), None)
        again = next((moment for moment in downs if moment > up), facts.cutoff)
        if first is not None and first - up > BACK_WITHIN and again - up > BACK_WITHIN:
            yield f"nothing started for {first - up:.1f} s after the database was back"


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


def nobody_ends_uncalled(facts: Facts) -> Iterator[str]:
    """I13: a process ends when it is told to, with 0, and its connections with it."""
    for line in facts.noted("exited"):
        yield f"process {line.words[0]} ended by itself"
    for line in facts.noted("left"):
        if line.words[1] != "0":
            yield f"process {line.words[0]} ended with {line.words[1]} after SIGTERM"
    before, after = facts.connections
    if after > before + OWN_CONNECTIONS:
        yield f"{after} connections are left, {before} at the start"


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


INVARIANTS: tuple[Check, ...] = (
    nothing_is_lost,
    one_completion,
    what_is_completed_has_ended,
    epochs_rise,
    late_writes_were_refused,
    ticks_are_exact,
    caps_hold_in_the_record,
    caps_hold_in_the_bodies,
    nobody_is_given_up_without_reason,
    the_dead_are_noticed_in_time,
    somebody_leads,
    work_goes_on_after_an_outage,
    failures_are_counted_once,
    chains_are_followed,
    no_activation_is_lost,
    cancelled_is_cancelled,
    nobody_ends_uncalled,
    the_record_is_sound,
    nothing_unhandled,
    poison_is_put_away,
)


def breaches(facts: Facts) -> dict[str, list[str]]:
    """What does not hold, by the invariant's name."""
    found = {check.__name__: list(check(facts)) for check in INVARIANTS}
    return {name: told for name, told in found.items() if told}


def _pid(one: Execution) -> int:
    """The process of an owner: ids are host, process id and something unique."""
    return int((one.owner or "-0-").split("-")[-2])


def _outage(facts: Facts, since: float, until: float) -> float:
    """How long the database was away between two moments."""
    ups = [line.moment for line in facts.noted("up")]
    downs = [line.moment for line in facts.noted("down")]
    spans = zip(downs, ups, strict=False)
    return sum(max(0.0, min(up, until) - max(down, since)) for down, up in spans)
