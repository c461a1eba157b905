"""The coming runs of a manifest, as if every run took no time.

The decisions are those of the manager itself: first run, misfires, variance and exclusions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from headway.domain.manifest import Manifest
from headway.domain.timing import Timing, decide_timing, settled_by_success


@dataclass(frozen=True)
class ComingRun:
    """A run: when it starts, and the occurrence it stands for, which may be earlier.

    >>> from datetime import UTC
    >>> ComingRun(datetime(2030, 1, 1, 9, tzinfo=UTC), datetime(2030, 1, 1, 9, tzinfo=UTC)).moved
    False
    """

    at: datetime
    stands_for: datetime

    @property
    def moved(self) -> bool:
        """Whether variance or an exclusion lets it start later than its schedule says."""
        return self.at != self.stands_for


def coming_runs(
    timing: Timing,
    key: str,
    now: datetime,
    until: datetime,
    *,
    settled: datetime | None = None,
    declared_at: datetime | None = None,
) -> Iterator[ComingRun]:
    """Yield the runs of the manifest called *key* up to *until*, in order.

    What is *settled* is over; one that has no such time is as if it were declared now, or as it
    was declared, *declared_at*.

    >>> from datetime import UTC
    >>> from headway.domain.schedule import cron
    >>> noon = datetime(2030, 1, 1, 12, tzinfo=UTC)
    >>> daily = coming_runs(Timing(cron.daily(hour=9)), "report", noon, noon.replace(day=3))
    >>> [f"{run.at:%d %H:%M}" for run in daily]
    ['01 12:00', '02 09:00', '03 09:00']
    """
    moment, declared_at = now, declared_at or now
    while True:
        due = decide_timing(timing, key, settled, declared_at, moment)
        if due.due and due.scheduled_for is not None:
            yield ComingRun(moment, due.scheduled_for)
            settled = settled_by_success(timing, key, settled, due.scheduled_for, moment)
            if timing.schedule.kind == "once":
                return
        elif due.next_at is None or not moment < due.next_at <= until:
            return
        else:
            moment = due.next_at


def how_it_runs(manifest: Manifest) -> str:
    """When a manifest runs, in words.

    >>> from headway.domain.manifest import Group, Terms
    >>> from headway.domain.schedule import Never
    >>> terms = Terms("copy", "int", Never(), Group("etl"))
    >>> how_it_runs(Manifest("load", "1", terms, parents=("extract",)))
    'after extract'
    """
    if not manifest.parents:
        return manifest.schedule.describe()
    if manifest.dormant:
        return f"when activated by {' or '.join(manifest.parents)}"
    return f"after {(' and ' if manifest.join == 'all' else ' or ').join(manifest.parents)}"
