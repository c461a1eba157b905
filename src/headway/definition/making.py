"""From what a user writes to a checked manifest: one way for declarations and for run time."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from headway.definition.options import check_options
from headway.definition.registry import Reference, Registry
from headway.domain.dependencies import DependsOn
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
    "join",
    "dormant",
)


class Item:
    """One manifest of a batch: its id inside the batch, its input, and what it depends on.

    Options given here win over those of the batch.

    >>> Item("users", {"table": "users"}, depends_on="extract-users", priority=5).id
    'users'
    """

    __slots__ = ("depends_on", "id", "input", "options")

    def __init__(
        self,
        id: object,
        input: Any = None,
        *,
        depends_on: DependsOn = None,
        **options: Any,
    ) -> None:
        self.id = checked_name("item id", str(id) if isinstance(id, int) else id)
        self.input = input
        self.depends_on = depends_on
        self.options = options


@dataclass(frozen=True)
class Made:
    """A manifest together with its group, if that was declared and not merely named."""

    manifest: Manifest
    group: Group | None


@dataclass(frozen=True)
class Batch:
    """What the items of a batch have in common."""

    workflow: Reference
    name: str
    options: Mapping[str, Any]
    schedule: Schedule | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", checked_name("batch name", self.name))
        if isinstance(excluded := self.options.get("exclude"), Iterator):
            # Every item reads it, and a generator can be read once.
            object.__setattr__(self, "options", {**self.options, "exclude": tuple(excluded)})

    def external_id(self, item: Item) -> str:
        """The external id an item gets: the batch's name and its own id."""
        if not isinstance(item, Item):
            raise DefinitionError(
                f"{self.name}: {shown(item)} is not an Item; for example Item('users', input)"
            )
        return f"{self.name}-{item.id}"


class Maker:
    """Makes manifests of registered workflows; every mistake is an error at the call."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def make(
        self,
        workflow: Reference,
        external_id: str,
        input: Any,
        options: Mapping[str, Any],
        *,
        schedule: Schedule | None = None,
        parents: tuple[str, ...] = (),
        batch: str | None = None,
    ) -> Made:
        """One manifest; with *parents* it is a dependent, otherwise *schedule* says when."""
        registered = self._registry.find(workflow)
        subject = checked_name("external_id", external_id)
        check_options(subject, options, dependent=bool(parents))
        if subject in parents:
            raise DefinitionError(f"{subject}: depends on itself; name another parent")
        checked_priority(subject, options.get("priority", 0))
        group = _group(options.get("group"), batch or subject, options.get("priority", 0))
        manifest = Manifest(
            external_id=subject,
            workflow=registered.name,
            input=registered.input_type.encode(input, subject),
            input_type=registered.input_type.name,
            schedule=_schedule(subject, schedule),
            group=group,
            parents=parents,
            batch=batch,
            when_busy=WhenBusy(options.get("when_busy", WhenBusy.SKIP)),
            time=_time_options(subject, schedule, options),
            **{name: options[name] for name in PLAIN_OPTIONS if name in options},
        )
        return Made(manifest, group if isinstance(options.get("group"), Group) else None)

    def make_batch(
        self, batch: Batch, items: Iterable[tuple[Item, tuple[str, ...]]]
    ) -> Iterator[Made]:
        """The manifests of a batch, one by one as *items* come with their parents."""
        for item, parents in items:
            external_id = batch.external_id(item)
            if item.depends_on is not None and not parents:
                raise DefinitionError(
                    f"{external_id}: depends_on = {shown(item.depends_on)}: what runs by time has "
                    "no parents; leave it out, or declare a dependent with include_many(...)"
                )
            yield self.make(
                batch.workflow,
                external_id,
                item.input,
                {**batch.options, **item.options},
                schedule=batch.schedule,
                parents=parents,
                batch=batch.name,
            )


def checked_once(subject: str, at: Once) -> Once:
    """*at* if it is a single moment, else an error that says how to write one."""
    if not isinstance(at, Once):
        given = at.describe() if isinstance(at, Every | Cron | Never) else shown(at)
        raise DefinitionError(
            f"{subject}: schedule_once(...) takes a single moment, not {given}; for example "
            "once(datetime(2030, 1, 1, tzinfo=UTC))"
        )
    return at


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


def _time_options(
    subject: str, schedule: Schedule | None, options: Mapping[str, Any]
) -> TimeOptions:
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
        time.timing(_schedule(subject, schedule))
    except DefinitionError as error:
        raise DefinitionError(f"{subject}: {error}") from error
    _check_zone(subject, schedule, time)
    return time


def _check_zone(subject: str, schedule: Schedule | None, time: TimeOptions) -> None:
    if isinstance(schedule, Cron) and time.tz not in (None, schedule.tz):
        raise DefinitionError(
            f"{subject}: tz = {time.tz!r}, but its cron expression is read in {schedule.tz!r}; "
            f"write it once: cron({schedule.expression!r}, tz={time.tz!r})"
        )
