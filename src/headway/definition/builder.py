"""The fluent builder: what follows ``hw.schedule(...)``.

Two pointers make a chain read like a sentence: the root is what ``schedule`` declared, the cursor
what was declared last. ``include`` hangs on the root, ``then_include`` on the cursor.
"""

from collections.abc import Callable, Iterable
from typing import Any, Unpack

from headway.definition.making import Batch, Item, Maker, checked_once
from headway.definition.options import DependentOptions, ScheduleOptions
from headway.definition.registry import Reference
from headway.definition.terms import Made
from headway.domain.dependencies import Items, Pointers
from headway.domain.names import checked_name
from headway.domain.schedule import Cron, Every, Never, Once, Schedule

Take = Callable[[Iterable[Made]], None]
FindParents = Callable[[Items], tuple[list[tuple[str, ...]], Pointers]]


class Chain:
    """Where a chain of scheduling calls stands; each call returns the chain to go on with.

    >>> from headway import Headway, every
    >>> hw = Headway()
    >>> @hw.workflow
    ... def work(name: str) -> None: ...
    >>> chain = hw.schedule(work, "extract", "users", every(hours=1), group="etl")
    >>> chain.then_include(work, "transform", "users", group="etl").cursor
    'transform'
    """

    def __init__(self, maker: Maker, take: Take, pointers: Pointers | None = None) -> None:
        self._maker = maker
        self._take = take
        self._pointers = pointers or Pointers()

    @property
    def root(self) -> str | None:
        """What :meth:`include` hangs on: the external id ``schedule`` declared."""
        return self._pointers.root

    @property
    def cursor(self) -> str | None:
        """What :meth:`then_include` hangs on: the external id declared last."""
        return self._pointers.cursor

    def schedule(
        self,
        workflow: Reference,
        external_id: str,
        input: Any,
        schedule: Schedule | None,
        **options: Unpack[ScheduleOptions],
    ) -> "Chain":
        """Declare a manifest that runs by time; it becomes root and cursor."""
        if schedule is None and isinstance(input, Every | Cron | Once | Never):
            input, schedule = None, input  # nothing else can be meant: no input is a schedule
        made = self._maker.make(workflow, external_id, input, options, schedule=schedule)
        _, pointers = self._pointers.schedule(made.manifest.external_id)
        return self._taken([made], pointers)

    def schedule_once(
        self,
        workflow: Reference,
        external_id: str,
        input: Any,
        at: Once,
        **options: Unpack[ScheduleOptions],
    ) -> "Chain":
        """Declare a manifest that runs a single time; nothing can hang on it by position."""
        schedule = checked_once(external_id, at)
        made = self._maker.make(workflow, external_id, input, options, schedule=schedule)
        _, pointers = self._pointers.schedule_once()
        return self._taken([made], pointers)

    def schedule_many(
        self,
        workflow: Reference,
        name: str,
        items: Iterable[Item],
        schedule: Schedule,
        **options: Unpack[ScheduleOptions],
    ) -> "Chain":
        """Declare a batch that runs by time: one manifest ``name-id`` per item, in group *name*."""
        batch = Batch(workflow, name, options, schedule)
        _, pointers = self._pointers.schedule_many()
        return self._taken(self._maker.make_batch(batch, ((item, ()) for item in items)), pointers)

    def include(
        self,
        workflow: Reference,
        external_id: str,
        input: Any = None,
        **options: Unpack[DependentOptions],
    ) -> "Chain":
        """Declare a dependent of the root."""
        name = checked_name("external_id", external_id)
        parent, pointers = self._pointers.include(name)
        return self._dependent(workflow, name, input, options, parent, pointers)

    def then_include(
        self,
        workflow: Reference,
        external_id: str,
        input: Any = None,
        **options: Unpack[DependentOptions],
    ) -> "Chain":
        """Declare a dependent of what was declared last."""
        name = checked_name("external_id", external_id)
        parent, pointers = self._pointers.then_include(name)
        return self._dependent(workflow, name, input, options, parent, pointers)

    def include_many(
        self,
        workflow: Reference,
        name: str,
        items: Iterable[Item],
        **options: Unpack[DependentOptions],
    ) -> "Chain":
        """Declare a batch of dependents: of what each item names, else of the root."""
        return self._dependents(Batch(workflow, name, options), items, self._pointers.include_many)

    def then_include_many(
        self,
        workflow: Reference,
        name: str,
        items: Iterable[Item],
        **options: Unpack[DependentOptions],
    ) -> "Chain":
        """Declare a batch of dependents, each of what it names itself."""
        return self._dependents(
            Batch(workflow, name, options), items, self._pointers.then_include_many
        )

    def _dependent(
        self,
        workflow: Reference,
        external_id: str,
        input: Any,
        options: DependentOptions,
        parent: str,
        pointers: Pointers,
    ) -> "Chain":
        made = self._maker.make(workflow, external_id, input, options, parents=(parent,))
        return self._taken([made], pointers)

    def _dependents(
        self, batch: Batch, items: Iterable[Item], find_parents: FindParents
    ) -> "Chain":
        given = list(items)
        parents, pointers = find_parents(
            [(batch.external_id(one), one.depends_on) for one in given]
        )
        return self._taken(
            self._maker.make_batch(batch, zip(given, parents, strict=True)), pointers
        )

    def _taken(self, made: Iterable[Made], pointers: Pointers) -> "Chain":
        self._take(made)
        return Chain(self._maker, self._take, pointers)
