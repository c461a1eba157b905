"""What the manifests of one call have in common, checked once however many items there are."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from headway.definition.inputs import InputType
from headway.definition.options import check_options
from headway.definition.registry import RegisteredWorkflow
from headway.domain.due import MisfirePolicy
from headway.domain.exclusions import check_exclusions
from headway.domain.manifest import Group, Manifest, Terms, WhenBusy, checked_priority
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


class Made(NamedTuple):
    """A manifest together with its group, if that was declared and not merely named."""

    manifest: Manifest
    group: Group | None


@dataclass(frozen=True, slots=True)
class Agreed:
    """What the manifests of one call are made of: their terms, and how their inputs are stored."""

    terms: Terms
    input_type: InputType
    declared_group: Group | None

    def make(self, external_id: str, input: Any, parents: tuple[str, ...]) -> Made:
        """The manifest of these terms with an id, an input and parents of its own."""
        if external_id in parents:
            raise DefinitionError(f"{external_id}: depends on itself; name another parent")
        encoded = self.input_type.encode(input, external_id)
        return Made(Manifest(external_id, encoded, self.terms, parents), self.declared_group)


def agree(
    workflow: RegisteredWorkflow,
    subject: str,
    options: Mapping[str, Any],
    schedule: Schedule | None,
    *,
    dependent: bool,
    batch: str | None = None,
) -> Agreed:
    """What *options* and *schedule* come to; *subject* is who is blamed for a mistake."""
    check_options(subject, options, dependent=dependent)
    priority = checked_priority(subject, options.get("priority", 0))
    checked = _schedule(subject, schedule)
    group = _group(options.get("group"), batch or subject, priority)
    terms = Terms(
        workflow=workflow.name,
        input_type=workflow.input_type.name,
        schedule=checked,
        group=group,
        time=_time_options(subject, checked, options),
        batch=batch,
        when_busy=WhenBusy(options.get("when_busy", WhenBusy.SKIP)),
        **{name: options[name] for name in PLAIN_OPTIONS if name in options},
    )
    declared = group if isinstance(options.get("group"), Group) else None
    return Agreed(terms.checked(subject), workflow.input_type, declared)


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
