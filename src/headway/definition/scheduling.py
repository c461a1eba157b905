"""Creating and changing manifests while everything is running: part of ``hw.runtime``."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Unpack

from headway.definition.collection import Collection
from headway.definition.making import Batch, Item, Maker, checked_once
from headway.definition.options import DependentOptions, ScheduleOptions
from headway.definition.registry import Reference
from headway.definition.terms import Made
from headway.domain.declaration import Declaration
from headway.domain.dependencies import DependsOn, parents_of
from headway.domain.schedule import Once, Schedule
from headway.errors import CreatedMeanwhile, DefinitionError
from headway.store import declarations
from headway.store.transaction import Transaction


class Scheduling(ABC):
    """The scheduling calls, effective at once."""

    owner: str
    _maker: Maker

    @abstractmethod
    def _joined(self, connection: Any) -> AbstractContextManager[Transaction]:
        """The caller's transaction, or one of our own."""

    def schedule(
        self,
        workflow: Reference,
        external_id: str,
        input: Any,
        schedule: Schedule,
        *,
        connection: Any = None,
        **options: Unpack[ScheduleOptions],
    ) -> None:
        """Create or change a manifest that runs by time, at once."""
        made = self._maker.make(workflow, external_id, input, options, schedule=schedule)
        self._write([made], connection)

    def schedule_once(
        self,
        workflow: Reference,
        external_id: str,
        input: Any,
        at: Once,
        *,
        connection: Any = None,
        **options: Unpack[ScheduleOptions],
    ) -> None:
        """Create or change a manifest that runs a single time."""
        schedule = checked_once(external_id, at)
        made = self._maker.make(workflow, external_id, input, options, schedule=schedule)
        self._write([made], connection)

    def schedule_many(
        self,
        workflow: Reference,
        name: str,
        items: Iterable[Item],
        schedule: Schedule,
        *,
        prune: bool = False,
        connection: Any = None,
        **options: Unpack[ScheduleOptions],
    ) -> int:
        """Create or change a batch, all or nothing; *prune* removes its items not named here."""
        batch = Batch(workflow, name, options, schedule)
        made = self._maker.make_batch(batch, ((item, ()) for item in items))
        return self._write(made, connection, prune_batch=batch.name if prune else None)

    def schedule_dependent(
        self,
        workflow: Reference,
        external_id: str,
        input: Any,
        depends_on: DependsOn,
        *,
        connection: Any = None,
        **options: Unpack[DependentOptions],
    ) -> None:
        """Create or change a manifest that runs after the parents named."""
        parents = _named_parents(external_id, depends_on)
        made = self._maker.make(workflow, external_id, input, options, parents=parents)
        self._write([made], connection)

    def schedule_many_dependent(
        self,
        workflow: Reference,
        name: str,
        items: Iterable[Item],
        *,
        prune: bool = False,
        connection: Any = None,
        **options: Unpack[DependentOptions],
    ) -> int:
        """Create or change a batch of dependents, all or nothing."""
        batch = Batch(workflow, name, options)
        named = ((item, _named_parents(batch.external_id(item), item.depends_on)) for item in items)
        made = self._maker.make_batch(batch, named)
        return self._write(made, connection, prune_batch=batch.name if prune else None)

    def _write(self, made: Iterable[Made], connection: Any, prune_batch: str | None = None) -> int:
        batch = Collection()
        batch.add(made)
        wanted = batch.declaration(self.owner)
        try:
            return self._upsert(wanted, connection, prune_batch)
        except CreatedMeanwhile:  # and is there now
            return self._upsert(wanted, connection, prune_batch)

    def _upsert(self, wanted: Declaration, connection: Any, prune_batch: str | None) -> int:
        with self._joined(connection) as tx, all_or_nothing(tx):
            return declarations.upsert(tx, wanted, prune_batch=prune_batch)


def all_or_nothing(tx: Transaction) -> AbstractContextManager[Any]:
    """In a caller's transaction, who may catch the error of a batch and then commit the rest."""
    return tx.connection.begin_nested() if tx.joined else nullcontext()


def _named_parents(external_id: str, depends_on: DependsOn) -> tuple[str, ...]:
    parents = parents_of(external_id, depends_on)
    if not parents:
        raise DefinitionError(
            f"{external_id}: a dependent needs a parent; for example depends_on='extract-users'"
        )
    return parents
