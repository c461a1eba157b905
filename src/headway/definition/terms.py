"""What the manifests of one call have in common, checked once however many items there are."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from headway.definition.options import check_options
from headway.definition.registry import RegisteredWorkflow
from headway.domain.due import MisfirePolicy
from headway.domain.exclusions import check_exclusions
from headway.domain.manifest import Group, Manifest, WhenBusy, checked_priority
from headway.domain.names import checked_name
from headway.domain.schedule import Cron, Every, Never, Once, Schedule
from headway.domain.text import shown
from headway.domain.time_options import TimeOptions
from headway.domain.timing import FirstRun
from headway.errors import DefinitionError

# Options that a manifest takes over as they are.
PLAIN_OPTIONS = (
    "priority",
    "max_retries",
    "retry",
    "timeout",
    "enabled",
    "allow_overlap",
    "join",
    "dormant",
)


@dataclass(frozen=True, slots=True)
class Made:
    """A manifest together with its group, if that was declared and not merely named."""

    manifest: Manifest
    group: Group | None


@dataclass(frozen=True, slots=True)
class Terms:
    """Everything about a manifest but its external id, its input and its parents."""

    workflow: RegisteredWorkflow
    schedule: Schedule
    time: TimeOptions
    group: Group
    group_is_declared: bool
    batch: str | None
    when_busy: WhenBusy
    plain: Mapping[str, Any]

    def make(self, external_id: str, input: Any, parents: tuple[str, ...]) -> Made:
        """The manifest of these terms with an id, an input and parents of its own."""
        if external_id in parents:
            raise DefinitionError(f"{external_id}: depends on itself; name another parent")
        manifest = Manifest(
            external_id=external_id,
            workflow=self.workflow.name,
            input=self.workflow.input_type.encode(input, external_id),
            input_type=self.workflow.input_type.name,
            schedule=self.schedule,
            group=self.group,
            parents=parents,
            batch=self.batch,
            when_busy=self.when_busy,
            time=self.time,
            **self.plain,
        )
        return Made(manifest, self.group if self.group_is_declared else None)


def agree(
    workflow: RegisteredWorkflow,
    subject: str,
    options: Mapping[str, Any],
    schedule: Schedule | None,
    *,
    dependent: bool,
    batch: str | None = None,
) -> Terms:
    """The terms that *options* and *schedule* make; *subject* is who is blamed for a mistake."""
    check_options(subject, options, dependent=dependent)
    priority = checked_priority(subject, options.get("priority", 0))
    checked = _schedule(subject, schedule)
    return Terms(
        workflow,
        checked,
        _time_options(subject, checked, options),
        _group(options.get("group"), batch or subject, priority),
        isinstance(options.get("group"), Group),
        batch,
        WhenBusy(options.get("when_busy", WhenBusy.SKIP)),
        {name: options[name] for name in PLAIN_OPTIONS if name in options},
    )


def _group(given: str | Group | None, derived: str, priority: int) -> Group:
    """The group itself; one that is merely named starts with the manifest's own priority."""
    if not isinstance(given, Group):
        return Group(checked_name("group", derived if given is None else given), priority=priority)
    return given if given.name else replace(given, name=checked_name("group", derived))


def _schedule(subject: str, schedule: Schedule | None) -> Schedule:
    if schedule is None:
        return Never()
    if not isinstance(schedule, Every | Cron | Once | Never):
        raise DefinitionError(
            f"{subject}: schedule = {shown(schedule)}: must be every(...), cron(...) or once(...); "
            "for example every(hours=1)"
        )
    return schedule


def _time_options(subject: str, schedule: Schedule, options: Mapping[str, Any]) -> TimeOptions:
    """The options about time, tried together with the schedule so that nonsense shows at once."""
    try:
        misfire, first_run = options.get("misfire"), options.get("first_run")
        time = TimeOptions(
            misfire_policy=None if misfire is None else MisfirePolicy(misfire),
            misfire_threshold=options.get("misfire_threshold"),
            catch_up_limit=options.get("catch_up_limit"),
            variance=options.get("variance"),
            exclusions=check_exclusions(options.get("exclude", ())),
            first_run=None if first_run is None else FirstRun(first_run),
            tz=options.get("tz"),
        )
        time.timing(schedule)
    except DefinitionError as error:
        raise DefinitionError(f"{subject}: {error}") from error
    _check_zone(subject, schedule, time)
    return time


def _check_zone(subject: str, schedule: Schedule, time: TimeOptions) -> None:
    if isinstance(schedule, Cron) and time.tz not in (None, schedule.tz):
        raise DefinitionError(
            f"{subject}: tz = {time.tz!r}, but its cron expression is read in {schedule.tz!r}; "
            f"write it once: cron({schedule.expression!r}, tz={time.tz!r})"
        )
