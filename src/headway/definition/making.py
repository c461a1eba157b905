"""From what a user writes to a checked manifest: one way for declarations and for run time."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headway.definition.registry import Reference, Registry
from headway.definition.terms import Agreed, Made, agree
from headway.domain.dependencies import DependsOn
from headway.domain.names import checked_name
from headway.domain.schedule import Cron, Every, Never, Once, Schedule
from headway.domain.text import shown
from headway.errors import DefinitionError


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
    ) -> Made:
        """One manifest; with *parents* it is a dependent, otherwise *schedule* says when."""
        registered = self._registry.find(workflow)
        subject = checked_name("external_id", external_id)
        agreed = agree(registered, subject, options, schedule, dependent=bool(parents))
        return agreed.make(subject, input, parents)

    def make_batch(
        self, batch: Batch, items: Iterable[tuple[Item, tuple[str, ...]]]
    ) -> Iterator[Made]:
        """The manifests of a batch, one by one as *items* come with their parents."""
        shared: dict[bool, Agreed] = {}
        for item, parents in items:
            subject = checked_name("external_id", batch.external_id(item))
            if item.depends_on is not None and not parents:
                raise DefinitionError(
                    f"{subject}: depends_on = {shown(item.depends_on)}: what runs by time has "
                    "no parents; leave it out, or declare a dependent with include_many(...)"
                )
            agreed = None if item.options else shared.get(bool(parents))
            if agreed is None:
                agreed = self._agree(batch, item, subject, dependent=bool(parents))
            if not item.options:
                shared[bool(parents)] = agreed
            yield agreed.make(subject, item.input, parents)

    def _agree(self, batch: Batch, item: Item, subject: str, *, dependent: bool) -> Agreed:
        registered = self._registry.find(batch.workflow)
        options = {**batch.options, **item.options}
        return agree(
            registered, subject, options, batch.schedule, dependent=dependent, batch=batch.name
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
