"""Every setting of headway, in one frozen object with its defaults and units.

A keyword wins over a ``HEADWAY_<NAME>`` variable, which wins over the default. Values out of
range are refused, all of them at once, and never clamped.
"""

import difflib
import os
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Self

from pydantic import ConfigDict, Field, ValidationError

from headway.domain.azolla.settings import AzollaSettings
from headway.domain.dashboard_settings import DashboardSettings
from headway.domain.due import MisfirePolicy
from headway.domain.queue_settings import QueueSettings
from headway.domain.readiness import Defaults
from headway.domain.retry import RetryPolicy
from headway.domain.setting_values import (
    Count,
    Delay,
    EnvironmentText,
    Flag,
    Fraction,
    Lease,
    Limit,
    Multiplier,
    Names,
    Period,
    Policy,
    Priority,
    Retries,
    Rule,
    Workers,
    as_text,
)
from headway.domain.text import printable, shown
from headway.errors import SettingsError

PREFIX = "HEADWAY_"
KNOWN_VARIABLES = ("HEADWAY_DATABASE_URL", "HEADWAY_APP")
KNOWN_PREFIXES = ("HEADWAY_TESTS_", "HEADWAY_TEST_")


def _cpu_count() -> int:
    # The CPUs this process may use: a container often owns two of a host's sixty-four.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _default(value: Any, description: str) -> Any:
    return Field(default=value, description=description)


class Settings(AzollaSettings, DashboardSettings, QueueSettings):
    """All settings; durations may be timedeltas, seconds, or text such as ``"1h30m"``.

    >>> Settings(default_retry_delay="90s").default_retry_delay
    datetime.timedelta(seconds=90)
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    manager_enabled: Flag = _default(True, "Whether this process runs the manifest manager.")
    dispatcher_enabled: Flag = _default(True, "Whether this process runs the job dispatcher.")
    manager_polling_interval: Period = _default(
        timedelta(seconds=5), "Longest time between two manager cycles, a duration."
    )
    dispatcher_polling_interval: Period = _default(
        timedelta(seconds=2), "Longest time between two dispatcher cycles, a duration."
    )
    max_active_jobs: Limit = _default(
        10, "Most jobs pending or running at once over all servers; none = no global limit."
    )
    exclude_from_max_active_jobs: Names = _default(
        (), "Names of workflows that neither count towards nor wait for max_active_jobs."
    )
    max_dispatch_attempts: Count = _default(
        5, "Hand-overs to the task server tried before a queue entry fails, a number."
    )
    starvation_after: Period = _default(
        timedelta(minutes=10),
        "Time an entry that might have run waits before it goes ahead of better ones, a duration.",
    )
    unknown_workflow_timeout: Period = _default(
        timedelta(minutes=20),
        "Time an entry waits for a living server that knows its workflow, a duration.",
    )
    dependent_priority_boost: Priority = _default(
        16, "Added to the group's priority for dependents and activations, 0 to 31."
    )
    default_max_retries: Retries = _default(
        3, "Failures in a row after which a manifest is dead-lettered, a number."
    )
    default_retry_delay: Delay = _default(
        timedelta(minutes=5), "Wait after the first failure, a duration."
    )
    retry_backoff_multiplier: Multiplier = _default(
        2.0, "Growth of the wait with every further failure, a factor."
    )
    max_retry_delay: Delay = _default(
        timedelta(hours=1), "Longest wait between two attempts, a duration."
    )
    retry_jitter: Fraction = _default(
        0.0, "How much longer a wait may be, drawn for each retry, a fraction from 0 to 1."
    )
    default_job_timeout: Period = _default(
        timedelta(minutes=20), "Time a run may take before it fails as JobTimeout, a duration."
    )
    cancel_grace: Period = _default(
        timedelta(seconds=60), "Time a run has to stop once its timeout is over, a duration."
    )
    stale_pending_timeout: Period = _default(
        timedelta(minutes=20),
        "Time a dispatched run may wait while no worker starts anything, a duration.",
    )
    stale_in_progress_timeout: Period = _default(
        timedelta(minutes=60),
        "Time after which a run in progress is given up, a duration above default_job_timeout.",
    )
    default_misfire_policy: Policy = _default(
        MisfirePolicy.FIRE_ONCE_NOW, "What becomes of missed runs: fire_once_now or do_nothing."
    )
    default_misfire_threshold: Delay = _default(
        timedelta(seconds=60), "How late a run may be before it counts as missed, a duration."
    )
    retention_period: Period = _default(
        timedelta(days=30), "Age at which finished executions and entries are deleted, a duration."
    )
    dead_letter_retention_period: Period = _default(
        timedelta(days=30), "Age at which resolved dead letters are deleted, a duration."
    )
    auto_purge_dead_letters: Flag = _default(
        True, "Whether resolved dead letters are deleted at all."
    )
    cleanup_interval: Period = _default(
        timedelta(hours=1), "Time between two clean-ups of old rows, a duration."
    )
    delete_batch_size: Count = _default(1000, "Most rows one clean-up statement deletes, a number.")
    worker_count: Workers = Field(
        default_factory=_cpu_count, description="Jobs this process runs at once, a number."
    )
    polling_interval: Period = _default(
        timedelta(seconds=2), "Longest time between two looks of an idle worker, a duration."
    )
    shutdown_timeout: Delay = _default(
        timedelta(seconds=30), "Time running jobs get to finish on shutdown, a duration."
    )
    server_lease: Lease = _default(
        None,
        "Time after which a silent server is taken for dead, the same on all servers; "
        "none = 15s on PostgreSQL and 30s on SQLite.",
    )
    max_crashes: Count = _default(
        3, "Workers one job may take with it before it is dead-lettered, a number."
    )
    seeding_attempts: Count = _default(
        5, "How often applying the declarations is tried at start, a number."
    )
    seeding_base_delay: Delay = _default(
        timedelta(seconds=2), "Wait after the first failed attempt of those, a duration."
    )
    database_start_timeout: Delay = _default(
        timedelta(seconds=60),
        "Time a start waits for a PostgreSQL that refuses every connection, a duration.",
    )
    allow_lost_commits: Flag = _default(
        False, "Whether to start on a PostgreSQL whose synchronous_commit is off."
    )

    def __init__(self, **values: Any) -> None:
        problems: list[str] = []
        wrong: set[str] = set()
        try:
            super().__init__(**values)
        except ValidationError as error:
            wrong = {str(detail["loc"][0]) for detail in error.errors(include_url=False)}
            problems = [_problem(name, values[name]) for name in values if name in wrong]
            super().__init__(**{name: values[name] for name in values if name not in wrong})
        problems += _contradictions(self, values, wrong)
        if problems:
            raise SettingsError("\n".join(problems))

    @classmethod
    def from_sources(cls, environ: Mapping[str, str], **keywords: Any) -> Self:
        """Build the settings from *keywords*, then ``HEADWAY_*`` variables, then defaults.

        >>> Settings.from_sources({"HEADWAY_MAX_ACTIVE_JOBS": "4"}, worker_count=2).max_active_jobs
        4
        """
        variables = {
            name: EnvironmentText(environ[variable_name(name)])
            for name in cls.model_fields
            if variable_name(name) in environ
        }
        return cls(**(variables | keywords))

    @property
    def retry_policy(self) -> RetryPolicy:
        """The backoff for manifests that bring none of their own.

        >>> Settings().retry_policy.multiplier
        2.0
        """
        return RetryPolicy(
            self.default_retry_delay,
            self.retry_backoff_multiplier,
            self.max_retry_delay,
            self.retry_jitter,
        )

    @property
    def manifest_defaults(self) -> Defaults:
        """What counts for manifests that say nothing of their own.

        >>> Settings(default_max_retries=7).manifest_defaults.max_retries
        7
        """
        return Defaults(
            self.retry_policy,
            self.default_max_retries,
            self.default_misfire_policy,
            self.default_misfire_threshold,
        )


def variable_name(setting: str) -> str:
    """Return the environment variable of *setting*.

    >>> variable_name("max_active_jobs")
    'HEADWAY_MAX_ACTIVE_JOBS'
    """
    return PREFIX + setting.upper()


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """Return a sentence for every ``HEADWAY_*`` variable that sets nothing.

    >>> unknown_variables({"HEADWAY_WORKER_COUN": "4"})
    ['HEADWAY_WORKER_COUN is not a setting and is ignored; did you mean HEADWAY_WORKER_COUNT?']
    """
    known = [variable_name(name) for name in Settings.model_fields]
    return [
        f"{printable(name, 60)} is not a setting and is ignored{_suggestion(name, known)}"
        for name in sorted(environ)
        if name.startswith(PREFIX)
        and name not in (*known, *KNOWN_VARIABLES)
        and not name.startswith(KNOWN_PREFIXES)
    ]


def _problem(name: str, value: object) -> str:
    field = Settings.model_fields.get(name)
    if field is None:
        return f"{printable(name, 60)} is not a setting{_suggestion(name, Settings.model_fields)}"
    rule = next(item for item in field.metadata if isinstance(item, Rule))
    fallback = None if field.default_factory else field.default
    example = _assignment(name, fallback or rule.example, value)
    label = variable_name(name) if isinstance(value, EnvironmentText) else name
    return f"{label}={shown(value)} {rule.text}, for example {example}"


def _contradictions(
    settings: Settings, values: Mapping[str, Any], wrong: Iterable[str]
) -> list[str]:
    """Settings that are fine alone but not together; those already refused are left out."""
    pairs = (
        ("stale_in_progress_timeout", "default_job_timeout", "above", timedelta.__gt__),
        ("max_retry_delay", "default_retry_delay", "at least", timedelta.__ge__),
    )
    problems = []
    for name, other, relation, holds in pairs:
        high, low = getattr(settings, name), getattr(settings, other)
        if name in wrong or other in wrong or holds(high, low):
            continue
        problems.append(
            f"{_assignment(name, high, values.get(name))} must be {relation} "
            f"{_assignment(other, low, values.get(other))}, for example "
            f"{_assignment(name, low * 2, values.get(name))}"
        )
    return problems


def _assignment(name: str, value: Any, given: object) -> str:
    """How to set *name* to *value* where *given* came from: a variable or a keyword."""
    if isinstance(given, EnvironmentText):
        return f"{variable_name(name)}={as_text(value)}"
    plain = as_text(value) if isinstance(value, (timedelta, str)) else value
    return f"{name}={plain!r}"


def _suggestion(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name[:64], known, n=1)
    return f"; did you mean {close[0]}?" if close else ""
