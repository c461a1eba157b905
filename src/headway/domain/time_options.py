"""What a manifest says about its time beyond its schedule."""

from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any

from headway.domain.due import MisfirePolicy
from headway.domain.exclusion_kinds import Exclusion
from headway.domain.schedule import Schedule
from headway.domain.timing import FirstRun, Timing


@dataclass(frozen=True)
class TimeOptions:
    """The options of a schedule; None means the deployment's default.

    >>> from headway.domain.schedule import every
    >>> TimeOptions(variance=timedelta(seconds=30)).timing(every(minutes=5)).variance
    datetime.timedelta(seconds=30)
    """

    misfire_policy: MisfirePolicy | None = None
    misfire_threshold: timedelta | None = None
    catch_up_limit: int | None = None
    variance: timedelta | None = None
    exclusions: tuple[Exclusion, ...] = ()
    first_run: FirstRun | None = None
    tz: str | None = None

    def timing(
        self,
        schedule: Schedule,
        default_policy: MisfirePolicy = MisfirePolicy.FIRE_ONCE_NOW,
        default_threshold: timedelta = timedelta(seconds=60),
    ) -> Timing:
        """These options and *schedule* together, checked, with what is left out filled in."""
        return _timing(self, schedule, default_policy, default_threshold)


@lru_cache(maxsize=4096)
def _timing(
    options: TimeOptions,
    schedule: Schedule,
    default_policy: MisfirePolicy,
    default_threshold: timedelta,
) -> Timing:
    """Cached because thousands of manifests share a few schedules, and each is asked every time."""
    defaults: dict[str, Any] = {
        "misfire_policy": default_policy,
        "misfire_threshold": default_threshold,
    }
    # None alone means the default: a zero is a value, checked like any other.
    given = {name: value for name, value in vars(options).items() if value is not None}
    return Timing(schedule, **defaults | given)
