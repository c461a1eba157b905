"""Which schedules let runs of one manifest overlap, once the manifest allows it."""

from headway.domain.due import MisfirePolicy
from headway.domain.schedule import counts_from_success
from headway.domain.timing import Timing


def waits_for_the_end(timing: Timing) -> str | None:
    """Return why no run starts by time while another one is going on, even if they may overlap.

    None for a schedule that keeps to the clock.

    >>> from headway.domain.schedule import every
    >>> waits_for_the_end(Timing(every(minutes=5)))
    'already running, and the next run is counted from its end'
    """
    if timing.misfire_policy is MisfirePolicy.CATCH_UP:
        return "already running, and missed runs are made up for one after another"
    if counts_from_success(timing.schedule):
        return "already running, and the next run is counted from its end"
    return None
