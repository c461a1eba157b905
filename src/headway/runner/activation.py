"""What ``run.activate_many`` does: check everything first, then write all of it or nothing."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from headway.definition.registry import Registry
from headway.domain.attempts import checked_attempts
from headway.domain.execution import Execution
from headway.domain.manifest import DORMANT, WhenBusy
from headway.domain.work_queue import EntryStatus, entry_priority
from headway.errors import (
    DefinitionError,
    DependentBusyError,
    JobCancelled,
    NoParentRunError,
    NotDormantError,
    NotYourDependentError,
)
from headway.runner.patience import Undecided
from headway.runner.secrets import RunSecrets
from headway.store import activation
from headway.store.activation import Activation, Child, Ending
from headway.store.engine import Store
from headway.store.transaction import Transaction

logger = logging.getLogger("headway")


class Activations:
    """Activates the dormant dependents of one running execution."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        owner: str,
        execution: Execution,
        boost: int,
        secrets: RunSecrets,
    ) -> None:
        self._store = store
        self._registry = registry
        self._owner = owner
        self._execution = execution
        self._boost = boost
        self._secrets = secrets

    def call(self, wanted: Iterable[tuple[str, Any]], max_attempts: int = 1) -> "Call":
        """Read what one call of ``run.activate_many`` asks for, before anything is written."""
        inputs = _by_name(wanted)
        attempts = checked_attempts("activate", max_attempts)
        if self._execution.manifest_id is None:
            raise NoParentRunError
        return Call(self._store, inputs, lambda tx: self._write(tx, inputs, attempts), self._hold)

    def _hold(self, tx: Transaction) -> str:
        held = activation.still_running(tx, self._owner, self._execution.id)
        if held is None:
            raise JobCancelled("this run is no longer ours, so it activates nothing")
        return held

    def _write(self, tx: Transaction, inputs: Mapping[str, Any], attempts: int) -> int:
        parent = self._execution.manifest_id
        assert parent is not None
        children = activation.find_children(tx, parent, inputs)
        checked = [self._checked(name, children.get(name), inputs[name]) for name in inputs]
        return _write(tx, [replace(one, max_attempts=attempts) for one in checked])

    def _checked(self, external_id: str, child: Child | None, value: Any) -> Activation:
        if child is None:
            raise self._registry.not_found(external_id)
        if child.kind != DORMANT:
            raise NotDormantError(external_id, child.kind)
        if not child.is_child:
            raise NotYourDependentError(external_id, str(self._execution.external_id))
        input_type = self._registry.find(child.workflow).input_type
        self._secrets.hand_on(input_type, value)
        text = input_type.encode(value, external_id)
        if child.busy and child.when_busy is WhenBusy.REJECT:
            raise DependentBusyError(external_id)
        priority = entry_priority(child.group_priority, self._boost)
        return Activation(child, text, input_type.name, priority)


class Call:
    """A call of ``run.activate_many``: written once, however often it is attempted.

    A connection that is lost during a commit leaves open whether the commit was done. The next
    attempt asks PostgreSQL how that transaction has ended, and writes only if it was not committed.
    """

    def __init__(
        self,
        store: Store,
        inputs: Mapping[str, Any],
        write: Callable[[Transaction], int],
        hold: Callable[[Transaction], str],
    ) -> None:
        self._store = store
        self._inputs = inputs
        self._write = write
        self._hold = hold
        self._transaction = ""
        self._taken = 0

    def attempt(self) -> int:
        """Write the activations and return how many will run.

        Raises :class:`Undecided` while the transaction of an earlier attempt has not ended.
        """
        if not self._inputs:
            return 0
        if self._transaction and self._was_committed():
            return self._taken
        with self._store.writing() as tx:
            self._transaction = self._hold(tx)
            self._taken = self._write(tx)
        return self._taken

    def _was_committed(self) -> bool:
        with self._store.reading() as tx:
            ending = activation.how_it_ended(tx, self._transaction)
        if ending is Ending.IN_PROGRESS:
            raise Undecided("the transaction of an earlier attempt has not ended")
        return ending is Ending.COMMITTED


def _by_name(wanted: Iterable[tuple[str, Any]]) -> Mapping[str, Any]:
    inputs: dict[str, Any] = {}
    for external_id, value in wanted:
        if external_id in inputs:
            raise DefinitionError(f"{external_id!r} is activated twice in one call; once is enough")
        inputs[external_id] = value
    return inputs


def _write(tx: Transaction, checked: list[Activation]) -> int:
    free = [one for one in checked if not one.child.busy]
    taken = len(activation.activate(tx, free, EntryStatus.QUEUED))
    keep = [one for one in checked if one.child.busy and one.child.when_busy is WhenBusy.KEEP]
    taken += len(activation.activate(tx, keep, EntryStatus.HELD))
    for one in checked:
        if one.child.busy and one.child.when_busy is WhenBusy.REPLACE:
            activation.replace_held(tx, one)
            taken += 1
        elif one.child.busy and one.child.when_busy is WhenBusy.SKIP:
            logger.warning("%s is busy: this activation is skipped", one.child.external_id)
    return taken
