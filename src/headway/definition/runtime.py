"""The runtime API: asking for runs and changing manifests while everything is running.

Every call is one transaction of its own, or joins the caller's: ``connection=`` takes a SQLAlchemy
connection or session on headway's database, and then commit makes it so and rollback leaves
nothing. A call that fails leaves nothing either, even if the caller goes on and commits. From async
code: ``await asyncio.to_thread(hw.trigger, "extract-users")``.

A caller's transaction may stay open: no cycle of manager or dispatcher waits for it. Who changes
the same manifest waits, and so does who changes dependents while it does too; see
:mod:`headway.store.declarations`. SQLite has one writer: there everybody waits until it ends.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Any, Unpack

from headway.definition.azolla import Azolla
from headway.definition.cancelling import Cancelling
from headway.definition.collection import Collection
from headway.definition.interventions import DeadLetters
from headway.definition.making import Batch, Item, Maker, checked_once
from headway.definition.options import DependentOptions, ScheduleOptions
from headway.definition.registry import Reference, Registry
from headway.definition.terms import Made
from headway.domain.attempts import checked_attempts
from headway.domain.declaration import Declaration
from headway.domain.dependencies import DependsOn, parents_of
from headway.domain.manifest import Group
from headway.domain.schedule import Once, Schedule
from headway.domain.text import shown
from headway.domain.work_queue import NewEntry, Source, checked_delay
from headway.errors import (
    CreatedMeanwhile,
    DefinitionError,
    ExecutionNotFound,
    GroupNotFound,
    ManifestNotFound,
)
from headway.store import declarations, declared_groups, removal, triggers, work_queue
from headway.store.engine import Store
from headway.store.notifications import notify_at_commit
from headway.store.transaction import Transaction

NOT_GIVEN: Any = object()


class Runtime:
    """What can be done to a running deployment; ``hw.runtime`` of an application."""

    def __init__(self, application: str, registry: Registry, store: Store) -> None:
        self.owner = f"{application}:runtime"
        self._registry = registry
        self._maker = Maker(registry)
        self.store = store
        self.dead_letters = DeadLetters(store, registry)
        self.cancelling = Cancelling(store)
        self.azolla = Azolla(application, store)

    @contextmanager
    def _joined(self, connection: Any) -> Iterator[Transaction]:
        if connection is None:
            with self.store.writing() as tx:
                yield tx
                notify_at_commit(tx)
        else:
            tx = self.store.joining(connection)
            yield tx
            notify_at_commit(tx)

    def trigger(
        self,
        external_id: str,
        input: Any = NOT_GIVEN,
        *,
        delay: timedelta | None = None,
        max_attempts: int = 1,
        connection: Any = None,
    ) -> None:
        """Queue a run of a manifest, with its own input or another one, now or after *delay*."""
        later = checked_delay(external_id, delay)
        attempts = checked_attempts(external_id, max_attempts)
        with self._joined(connection) as tx:
            text = None if input is NOT_GIVEN else self._encoded(tx, external_id, input)
            if not triggers.trigger(tx, external_id, later, text, attempts):
                raise ManifestNotFound(external_id)

    def _encoded(self, tx: Transaction, external_id: str, input: Any) -> str:
        workflow = triggers.workflow_of(tx, external_id)
        if workflow is None:
            raise ManifestNotFound(external_id)
        return self._registry.find(workflow).input_type.encode(input, external_id)

    def trigger_group(self, group: str, *, connection: Any = None) -> int:
        """Queue a run of every enabled manifest of a group, dependents aside; returns how many."""
        with self._joined(connection) as tx:
            queued = triggers.trigger_group(tx, group)
            if not queued and not triggers.group_exists(tx, group):
                raise GroupNotFound(group)
        return queued

    def enqueue(
        self,
        workflow: Reference,
        input: Any = None,
        *,
        priority: int = 0,
        max_attempts: int = 1,
        connection: Any = None,
    ) -> int:
        """Queue a single run of a workflow without any manifest; returns the entry's id."""
        registered = self._registry.find(workflow)
        entry = NewEntry(
            workflow=registered.name,
            source=Source.AD_HOC,
            input=registered.input_type.encode(input, registered.name),
            input_type=registered.input_type.name,
            priority=priority,
            max_attempts=checked_attempts(registered.name, max_attempts),
        )
        with self._joined(connection) as tx:
            return work_queue.enqueue(tx, [entry])[0]

    def rerun(self, execution_id: int, *, max_attempts: int = 1, connection: Any = None) -> int:
        """Queue what an execution ran once more, with the same input; returns the entry's id."""
        attempts = checked_attempts(f"execution {shown(execution_id)}", max_attempts)
        with self._joined(connection) as tx:
            entry = triggers.rerun(tx, execution_id, attempts) if _may_be_id(execution_id) else None
            if entry is None:
                raise ExecutionNotFound(execution_id)
        return entry

    def enable(self, external_id: str, *, connection: Any = None) -> None:
        """Switch a manifest on."""
        self._set_enabled(external_id, True, connection)

    def disable(self, external_id: str, *, connection: Any = None) -> None:
        """Switch a manifest off: nothing more is queued, and what is queued waits."""
        self._set_enabled(external_id, False, connection)

    def _set_enabled(self, external_id: str, enabled: bool, connection: Any) -> None:
        with self._joined(connection) as tx:
            if not triggers.set_enabled(tx, external_id, enabled):
                raise ManifestNotFound(external_id)

    def set_group(
        self,
        group: str,
        *,
        max_active_jobs: int | None = NOT_GIVEN,
        priority: int = NOT_GIVEN,
        enabled: bool = NOT_GIVEN,
        connection: Any = None,
    ) -> None:
        """Change a group's cap (None: no cap), priority or switch; what is left out stays."""
        named = {"max_active_jobs": max_active_jobs, "priority": priority, "enabled": enabled}
        values = {name: value for name, value in named.items() if value is not NOT_GIVEN}
        _check_group(group, values)
        with self._joined(connection) as tx:
            if not declared_groups.change_group(tx, group, values):
                raise GroupNotFound(group)

    def unschedule(self, external_id: str, *, connection: Any = None) -> None:
        """Remove a manifest softly: its history stays, its id is free again."""
        with self._joined(connection) as tx:
            ids = triggers.ids_of(tx, [external_id])
            if not ids:
                raise ManifestNotFound(external_id)
            removal.remove(tx, ids, "the manifest was unscheduled")

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
        with self._joined(connection) as tx, _all_or_nothing(tx):
            return declarations.upsert(tx, wanted, prune_batch=prune_batch)


def _all_or_nothing(tx: Transaction) -> AbstractContextManager[Any]:
    """In a caller's transaction, who may catch the error of a batch and then commit the rest."""
    return tx.connection.begin_nested() if tx.joined else nullcontext()


def _named_parents(external_id: str, depends_on: DependsOn) -> tuple[str, ...]:
    parents = parents_of(external_id, depends_on)
    if not parents:
        raise DefinitionError(
            f"{external_id}: a dependent needs a parent; for example depends_on='extract-users'"
        )
    return parents


def _may_be_id(value: object) -> bool:
    return type(value) is int and 0 < value < 2**63


def _check_group(group: str, values: Mapping[str, Any]) -> None:
    if not values:
        raise DefinitionError(
            f"group {shown(group)}: nothing to change; for example set_group('nightly', priority=9)"
        )
    checked = Group(group, **values)
    if not isinstance(checked.enabled, bool):
        raise DefinitionError(
            f"group {shown(group)}: enabled = {shown(checked.enabled)}: must be True or False; "
            "for example enabled=False"
        )
