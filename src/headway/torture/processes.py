"""What must hold of the processes, whatever was done to them. Pure: facts in, breaches out."""

from collections.abc import Callable, Iterator
from itertools import pairwise

from headway.domain.execution import Execution
from headway.torture.facts import Facts, first_words, seconds

Check = Callable[[Facts], Iterator[str]]

NOTICED_P99, NOTICED_MAX = 10.0, 15.0
LEADERLESS = 10.0
BACK_WITHIN = 5.0
OWN_CONNECTIONS = 4  # the client and whoever looks on, with two each
# Of a lease: a gap in a server's renewals is half a lease, and it renews five times in each.
GAP = 1 / 2 - 1 / 10
GROWS_BY = 1.5


def nobody_is_given_up_without_reason(facts: Facts) -> Iterator[str]:
    """I6: only workers that were killed or stopped for long lost their runs.

    A worker that is told to end hands them back; it can not if it ends while the database is away.
    """
    gone = {int(word) for what in ("killed", "exited") for word in first_words(facts.noted(what))}
    slept = {int(word) for word in first_words(facts.noted("stopped"))}
    excused = gone | slept | _ended_beside_an_outage(facts)
    for one in facts.executions:
        if one.lost and _pid(one) not in excused:
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
    """For each run a SIGKILL ended: the seconds until it was known, outages not counted.

    After an outage of nearly half a lease they count anew: by the rule of ``store.leases``, no
    server buries then before it has renewed its own lease for a whole one.
    """
    killed = {int(line.words[0]): line.moment for line in facts.noted("killed")}
    waits = []
    for one in facts.executions:
        if one.lost and (at := killed.get(_pid(one))) is not None:
            noticed, since = seconds(one.finished_at), _counted_from(facts, at)
            waits.append(noticed - since - _outage(facts, since, noticed))
    return waits


def _counted_from(facts: Facts, killed: float) -> float:
    lease, since = facts.plan.lease, killed
    for down, up in facts.outages():
        if since < up and down < since + lease and up - down > lease * GAP:
            since = up
    return since


def _ended_beside_an_outage(facts: Facts) -> set[int]:
    """The processes that were told to end, and did when the database was away."""
    told = {line.words[0]: line.moment for line in facts.noted("terminated")}
    return {
        int(line.words[0])
        for line in facts.noted("left")
        if _outage(facts, told.get(line.words[0], line.moment), line.moment) > 0
    }


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


def nobody_grows(facts: Facts) -> Iterator[str]:
    """I13: who has lived through it needs no more memory than half as much again."""
    young = {line.words[0]: int(line.words[1]) for line in facts.noted("weighed")}
    for line in facts.noted("weighs"):
        process, old = line.words[0], int(line.words[1])
        if old > GROWS_BY * young.get(process, old):
            yield f"process {process} has grown from {young[process]} to {old} kB"


PROCESSES: tuple[Check, ...] = (
    nobody_is_given_up_without_reason,
    the_dead_are_noticed_in_time,
    somebody_leads,
    work_goes_on_after_an_outage,
    nobody_ends_uncalled,
    nobody_grows,
)


def _pid(one: Execution) -> int:
    """The process of an owner: ids are host, process id and something unique."""
    return int((one.owner or "-0-").split("-")[-2])


def _outage(facts: Facts, since: float, until: float) -> float:
    """How long the database was away between two moments."""
    spans = facts.outages()
    return sum(max(0.0, min(up, until) - max(down, since)) for down, up in spans)
