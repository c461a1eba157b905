"""What ``run.activate_many`` does: check everything first, then write all of it or nothing."""

import logging
from collections.abc import Iterable, Mapping
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
    ManifestNotFound,
    NoParentRunError,
    NotDormantError,
    NotYourDependentError,
)
from headway.store import activation
from headway.store.activation import Activation, Child
from headway.store.engine import Store
from headway.store.transaction import Transaction

logger = logging.getLogger("headway")


class Activations:
    """Activates the dormant dependents of one running execution."""

    def __init__(
        self, store: Store, registry: Registry, owner: str, execution: Execution, boost: int
    ) -> None:
        self._store = store
        self._registry = registry
        self._owner = owner
        self._execution = execution
        self._boost = boost

    def activate_many(self, wanted: Iterable[tuple[str, Any]], max_attempts: int = 1) -> int:
        """Activate each named dependent with its input; returns how many will run."""
        inputs = _by_name(wanted)
        attempts = checked_attempts("activate", max_attempts)
        if self._execution.manifest_id is None:
            raise NoParentRunError
        if not inputs:
            return 0
        with self._store.writing() as tx:
            if not activation.still_running(tx, self._owner, self._execution.id):
                raise JobCancelled("this run is no longer ours, so it activates nothing")
            children = activation.find_children(tx, self._execution.manifest_id, inputs)
            checked = [self._checked(name, children.get(name), inputs[name]) for name in inputs]
            return _write(tx, [replace(one, max_attempts=attempts) for one in checked])

    def _checked(self, external_id: str, child: Child | None, value: Any) -> Activation:
        if child is None:
            raise ManifestNotFound(external_id)
        if child.kind != DORMANT:
            raise NotDormantError(external_id, child.kind)
        if not child.is_child:
            raise NotYourDependentError(external_id, str(self._execution.external_id))
        input_type = self._registry.find(child.workflow).input_type
        text = input_type.encode(value, external_id)
        if child.busy and child.when_busy is WhenBusy.REJECT:
            raise DependentBusyError(external_id)
        priority = entry_priority(child.group_priority, self._boost)
        return Activation(child, text, input_type.name, priority)


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
