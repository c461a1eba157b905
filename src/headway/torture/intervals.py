"""When bodies ran, by their own notes, and how many did at once."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from headway.torture.facts import Facts

Interval = tuple[float, float]


def overlaps(facts: Facts, groups: Mapping[int, str]) -> dict[str, list[Interval]]:
    """When the bodies of the executions in *groups* ran, by group; killed ones until their kill."""
    ends = {int(line.words[0]): line.moment for line in facts.noted("end")}
    kills = {int(line.words[0]): line.moment for line in facts.noted("killed")}
    ran: dict[str, list[Interval]] = defaultdict(list)
    for line in facts.noted("start"):
        key = int(line.words[0])
        if key not in groups:
            continue
        end = ends.get(key) or kills.get(line.pid)
        ran[groups[key]].append((line.moment, end if end is not None else line.moment))
    return ran


def most_at_once(intervals: Iterable[Interval]) -> int:
    """How many of *intervals* there were at the busiest moment; touching is not overlapping.

    >>> most_at_once([(0, 2), (1, 3), (3, 4)])
    2
    """
    changes = sorted(
        change for start, end in intervals for change in ((start, 1), (end, -1)) if end > start
    )
    now = most = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most
