"""A manifest's definition as columns, and back."""

from datetime import timedelta
from functools import lru_cache
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

from headway.domain.due import MisfirePolicy
from headway.domain.exclusion_json import exclusions_from_json, exclusions_to_json
from headway.domain.manifest import DEPENDENTS, Manifest
from headway.domain.retry import RetryPolicy
from headway.domain.schedule import Never, Schedule, schedule_from_fields, schedule_to_fields
from headway.domain.time_options import TimeOptions
from headway.domain.timing import FirstRun, Timing


def shared_columns(item: Manifest) -> dict[str, Any]:
    """What a declared manifest writes into the columns that all items of its batch have alike."""
    return {
        "workflow": item.workflow,
        "input_type": item.input_type,
        **_schedule_columns(item),
        **_time_columns(item.time),
        **_retry_columns(item.retry),
        "priority": item.priority,
        "max_retries": item.max_retries,
        "timeout_seconds": _seconds(item.timeout),
        "join_mode": item.join if item.parents else None,
        "when_busy": item.when_busy.value if item.dormant else None,
        "enabled": item.enabled,
        "batch": item.batch,
        "allow_overlap": item.allow_overlap,
    }


def _schedule_columns(item: Manifest) -> dict[str, Any]:
    fields = dict(schedule_to_fields(item.schedule))
    zone = fields["time_zone"] or item.time.tz
    return fields | {"schedule_kind": item.kind, "time_zone": zone}


def _time_columns(time: TimeOptions) -> dict[str, Any]:
    return {
        "misfire_policy": time.misfire_policy.value if time.misfire_policy else None,
        "misfire_threshold_seconds": _seconds(time.misfire_threshold),
        "catch_up_limit": time.catch_up_limit,
        "first_run": time.first_run.value if time.first_run else None,
        "variance_seconds": _seconds(time.variance),
        "exclusions": exclusions_to_json(time.exclusions),
    }


def _retry_columns(retry: RetryPolicy | None) -> dict[str, Any]:
    return {
        "retry_delay_seconds": retry.delay.total_seconds() if retry else None,
        "retry_multiplier": retry.multiplier if retry else None,
        "retry_max_delay_seconds": retry.max_delay.total_seconds() if retry else None,
        "retry_jitter": retry.jitter if retry else None,
    }


def schedule_of(row: Any) -> Schedule:
    """The schedule in a row; that of a dependent never fires by itself."""
    if row.schedule_kind in DEPENDENTS:
        return Never()
    zone = row.time_zone if row.schedule_kind == "cron" else None
    return schedule_from_fields(
        row.schedule_kind,
        row.interval_seconds,
        row.cron_expression,
        zone,
        row.once_at,
        row.fixed_rate,
    )


def time_of(row: Any) -> TimeOptions:
    """The time options in a row."""
    return TimeOptions(
        misfire_policy=MisfirePolicy(row.misfire_policy) if row.misfire_policy else None,
        misfire_threshold=span_of(row.misfire_threshold_seconds),
        catch_up_limit=row.catch_up_limit,
        variance=span_of(row.variance_seconds),
        exclusions=exclusions_from_json(row.exclusions),
        first_run=FirstRun(row.first_run) if row.first_run else None,
        tz=row.time_zone,
    )


# What says when a manifest runs.
TIMED = (
    "schedule_kind",
    "interval_seconds",
    "cron_expression",
    "time_zone",
    "once_at",
    "fixed_rate",
    "misfire_policy",
    "misfire_threshold_seconds",
    "catch_up_limit",
    "variance_seconds",
    "exclusions",
    "first_run",
)
_timed = attrgetter(*TIMED)


def timing_of(row: Any) -> Timing:
    """When the manifest in a row runs; a row somebody edited may be refused."""
    return _timing_of(_timed(row))


def schedule_and_time_of(row: Any) -> tuple[Schedule, TimeOptions]:
    """The schedule and the time options in a row, once it is certain that they go together."""
    return _schedule_and_time_of(_timed(row))


@lru_cache(maxsize=4096)
def _timing_of(values: tuple[Any, ...]) -> Timing:
    """Kept, because thousands of manifests share a few schedules."""
    schedule, time = _schedule_and_time_of(values)
    return time.timing(schedule)


@lru_cache(maxsize=4096)
def _schedule_and_time_of(values: tuple[Any, ...]) -> tuple[Schedule, TimeOptions]:
    """Kept likewise, but never what is refused: what a machine knows of time zones may grow."""
    row = SimpleNamespace(**dict(zip(TIMED, values, strict=True)))
    schedule, time = schedule_of(row), time_of(row)
    time.timing(schedule)
    return schedule, time


def retry_of(row: Any) -> RetryPolicy | None:
    """The retry policy in a row, if the manifest has one of its own."""
    if row.retry_delay_seconds is None:
        return None
    return RetryPolicy(
        timedelta(seconds=row.retry_delay_seconds),
        row.retry_multiplier,
        timedelta(seconds=row.retry_max_delay_seconds),
        row.retry_jitter or 0.0,
    )


def _seconds(span: timedelta | None) -> int | None:
    return None if span is None else int(span.total_seconds())


def span_of(seconds: int | None) -> timedelta | None:
    """A span of time in a row."""
    return None if seconds is None else timedelta(seconds=seconds)
