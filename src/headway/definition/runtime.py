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
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from itertools import islice
from typing import Any

from headway.definition.azolla import Azolla
from headway.definition.cancelling import Cancelling
from headway.definition.interventions import DeadLetters
from headway.definition.making import Maker
from headway.definition.registry import Reference, RegisteredWorkflow, Registry
from headway.definition.scheduling import Scheduling, all_or_nothing
from headway.definition.tokens import Tokens
from headway.domain.attempts import checked_attempts
from headway.domain.manifest import Group
from headway.domain.names import may_be_stored
from headway.domain.text import shown
from headway.domain.work_queue import NewEntry, Source, checked_delay
from headway.errors import (
    DefinitionError,
    ExecutionNotFound,
    GroupNotFound,
    ManifestNotFound,
)
from headway.store import declared_groups, removal, triggers, work_queue
from headway.store.database_errors import worded_for_callers
from headway.store.engine import Store
from headway.store.notifications import EVERYBODY, notify_at_commit
from headway.store.transaction import Transaction
from headway.store.within import Redirectable, Transactions, Within
from headway.wakeups import Role

NOT_GIVEN: Any = object()
# So many inputs are held in memory at once, and written by one statement.
PORTION = 10_000


class Runtime(Scheduling):
    """What can be done to a running deployment; ``hw.runtime`` of an application."""

    def __init__(
        self,
        application: str,
        registry: Registry,
        store: Store | Redirectable,
        transactions: Transactions | None = None,
        *,
        most_queued: int | None = None,
    ) -> None:
        self.application = application
        self.owner = f"{application}:runtime"
        self._registry = registry
        self._maker = Maker(registry)
        self._database = store if isinstance(store, Redirectable) else Redirectable(store)
        self.transactions: Transactions = self._database if transactions is None else transactions
        self.most_queued = most_queued
        self.dead_letters = DeadLetters(self.transactions, registry)
        self.cancelling = Cancelling(self.transactions, registry.not_found)
        self.azolla = Azolla(application, self.transactions)
        self.tokens = Tokens(self.transactions)

    @property
    def store(self) -> Store:
        """The database that the verbs act on."""
        return self._database.store

    def within(self, tx: Transaction) -> "Runtime":
        """The same verbs, all as parts of one transaction that is open already."""
        most = self.most_queued
        return Runtime(self.application, self._registry, self.store, Within(tx), most_queued=most)

    def name_of(self, workflow: Reference) -> str:
        """The name a workflow is registered by."""
        return self._registry.find(workflow).name

    @contextmanager
    def _joined(self, connection: Any, topic: str = EVERYBODY) -> Iterator[Transaction]:
        if connection is None:
            with self.transactions.writing(topic) as tx:
                yield tx
        else:
            with worded_for_callers(self.store):
                tx = self.store.joining(connection)
                yield tx
                notify_at_commit(tx, topic)

    def _queueing(self, connection: Any) -> AbstractContextManager[Transaction]:
        """It is the dispatcher who has to know, and nobody else should be in its way."""
        return self._joined(connection, Role.DISPATCHER)

    def _queueing_one(self, connection: Any) -> AbstractContextManager[Transaction]:
        """The same for what is one statement."""
        if connection is None:
            return self.transactions.queueing(Role.DISPATCHER)
        return self._queueing(connection)

    def trigger(
        self,
        external_id: str,
        input: Any = NOT_GIVEN,
        *,
        delay: timedelta | None = None,
        max_attempts: int = 1,
        connection: Any = None,
    ) -> int:
        """Queue a run of a manifest, with its own input or another one, now or after *delay*;
        returns the entry's id."""
        later = checked_delay(external_id, delay)
        attempts = checked_attempts(external_id, max_attempts)
        _check_manifest_name(external_id)
        # When a delay is over follows from the moment of the whole transaction.
        queueing = self._queueing_one if later is None else self._queueing
        with queueing(connection) as tx:
            text = None if input is NOT_GIVEN else self._encoded(tx, external_id, input)
            entry = triggers.trigger(tx, external_id, later, text, attempts)
            if entry is None:
                raise self._registry.not_found(external_id)
        return entry

    def _encoded(self, tx: Transaction, external_id: str, input: Any) -> str:
        workflow = triggers.workflow_of(tx, external_id)
        if workflow is None:
            raise self._registry.not_found(external_id)
        return self._registry.find(workflow).input_type.encode(input, external_id)

    def trigger_group(self, group: str, *, connection: Any = None) -> int:
        """Queue a run of every enabled manifest of a group, dependents aside; returns how many."""
        _check_group_name(group)
        with self._queueing(connection) as tx:
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
        text = registered.input_type.encode(input, registered.name)
        entry = _ad_hoc(registered, text, priority, max_attempts)
        with self._queueing_one(connection) as tx:
            return work_queue.enqueue(tx, [entry])[0]

    def enqueue_many(
        self,
        workflow: Reference,
        inputs: Iterable[Any],
        *,
        priority: int = 0,
        max_attempts: int = 1,
        connection: Any = None,
    ) -> int:
        """Queue a run of a workflow for each of *inputs*, all or none; returns how many."""
        registered = self._registry.find(workflow)
        like = _ad_hoc(registered, "null", priority, max_attempts)
        encode = registered.input_type.encode
        texts = (encode(one, f"{registered.name}[{place}]") for place, one in enumerate(inputs))
        queued = 0
        with self._queueing(connection) as tx, all_or_nothing(tx):
            while portion := list(islice(texts, PORTION)):
                work_queue.enqueue_like(tx, like, portion)
                queued += len(portion)
        return queued

    def rerun(
        self,
        execution_id: int,
        input: Any = NOT_GIVEN,
        *,
        max_attempts: int = 1,
        connection: Any = None,
    ) -> int:
        """Queue what an execution ran once more, with the same input or another one; returns the
        entry's id."""
        attempts = checked_attempts(f"execution {shown(execution_id)}", max_attempts)
        if not may_be_id(execution_id):
            raise ExecutionNotFound(execution_id)
        with self._queueing(connection) as tx:
            text = None if input is NOT_GIVEN else self._encoded_again(tx, execution_id, input)
            entry = triggers.rerun(tx, execution_id, attempts, text)
            if entry is None:
                raise ExecutionNotFound(execution_id)
        return entry

    def _encoded_again(self, tx: Transaction, execution_id: int, input: Any) -> str:
        workflow = triggers.workflow_that_ran(tx, execution_id)
        if workflow is None:
            raise ExecutionNotFound(execution_id)
        return self._registry.find(workflow).input_type.encode(input, f"execution {execution_id}")

    def enable(
        self, external_id: str, *, expected: str | None = None, connection: Any = None
    ) -> None:
        """Switch a manifest on, if it has the version *expected*."""
        self._set_enabled(external_id, True, expected, connection)

    def disable(
        self, external_id: str, *, expected: str | None = None, connection: Any = None
    ) -> None:
        """Switch a manifest off: nothing more is queued, and what is queued waits."""
        self._set_enabled(external_id, False, expected, connection)

    def _set_enabled(
        self, external_id: str, enabled: bool, expected: str | None, connection: Any
    ) -> None:
        _check_manifest_name(external_id)
        with self._joined(connection) as tx:
            if not triggers.set_enabled(tx, external_id, enabled, expected):
                raise self._registry.not_found(external_id)

    def set_group(
        self,
        group: str,
        *,
        max_active_jobs: int | None = NOT_GIVEN,
        priority: int = NOT_GIVEN,
        enabled: bool = NOT_GIVEN,
        expected: str | None = None,
        connection: Any = None,
    ) -> None:
        """Change a group's cap (None: no cap), priority or switch; what is left out stays.

        With *expected*, a version read before, only if nobody has changed the group since then.
        """
        named = {"max_active_jobs": max_active_jobs, "priority": priority, "enabled": enabled}
        values = {name: value for name, value in named.items() if value is not NOT_GIVEN}
        _check_group_name(group)
        _check_group(group, values)
        with self._joined(connection) as tx:
            if not declared_groups.change_group(tx, group, values, expected):
                raise GroupNotFound(group)

    def unschedule(self, external_id: str, *, connection: Any = None) -> None:
        """Remove a manifest softly: its history stays, its id is free again."""
        _check_manifest_name(external_id)
        with self._joined(connection) as tx:
            ids = triggers.ids_of(tx, [external_id])
            if not ids:
                raise self._registry.not_found(external_id)
            removal.remove(tx, ids, "the manifest was unscheduled")


def _ad_hoc(
    registered: RegisteredWorkflow, text: str, priority: int, max_attempts: int
) -> NewEntry:
    return NewEntry(
        workflow=registered.name,
        source=Source.AD_HOC,
        input=text,
        input_type=registered.input_type.name,
        priority=priority,
        max_attempts=checked_attempts(registered.name, max_attempts),
    )


def may_be_id(value: object) -> bool:
    """Whether *value* could be the id of a row.

    >>> may_be_id(17), may_be_id("17"), may_be_id(2**63)
    (True, False, False)
    """
    return type(value) is int and 0 < value < 2**63


def _check_manifest_name(external_id: str) -> None:
    if not may_be_stored(external_id):
        raise ManifestNotFound(external_id)


def _check_group_name(group: str) -> None:
    if not may_be_stored(group):
        raise GroupNotFound(group)


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
