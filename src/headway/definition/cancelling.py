"""Cancelling work: ``hw.cancel`` of an application."""

from collections.abc import Callable
from dataclasses import dataclass

from headway.domain.execution import ExecutionState
from headway.domain.names import checked_id, checked_words, may_be_stored
from headway.domain.text import printable, shown
from headway.errors import (
    DefinitionError,
    EntryNotFound,
    ExecutionNotFound,
    GroupNotFound,
    ManifestNotFound,
)
from headway.store import cancelling, executions
from headway.store.cancelling import Target
from headway.store.notifications import notify_at_commit
from headway.store.transaction import Transaction
from headway.store.within import Transactions

REASON_LIMIT = 500
ASKED = "asked for"
# In the database this word means that headway itself asked.
RESERVED = {"timeout": "timeout, as somebody said"}


@dataclass(frozen=True)
class Cancelled:
    """What was reached: how many will never start, how many running ones were asked to stop, and
    how one execution or entry had ended that was over already.

    >>> print(Cancelled(cancelled=2, requested=1))
    2 cancelled, 1 asked to stop
    >>> print(Cancelled(finished=ExecutionState.COMPLETED))
    already finished: completed
    """

    cancelled: int = 0
    requested: int = 0
    finished: ExecutionState | None = None

    def __str__(self) -> str:
        if self.finished is not None:
            return f"already finished: {self.finished}"
        told = [f"{self.cancelled} cancelled"] if self.cancelled else []
        told += [f"{self.requested} asked to stop"] if self.requested else []
        return ", ".join(told) or "nothing to cancel"


class Cancelling:
    """Cancels by manifest, group, execution or entry."""

    def __init__(
        self,
        store: Transactions,
        not_found: Callable[[str], ManifestNotFound] = ManifestNotFound,
    ) -> None:
        self._store = store
        self._not_found = not_found

    def cancel(
        self,
        external_id: str | None,
        group: str | None,
        execution: int | None,
        entry: int | None,
        reason: str | None,
    ) -> Cancelled:
        """Cancel what the one given of the first four names."""
        given = [one for one in (external_id, group, execution, entry) if one is not None]
        if len(given) != 1:
            raise DefinitionError(
                f"cancel takes one thing to cancel, not {len(given)}; for example "
                "cancel('load-users'), cancel(group='nightly'), cancel(execution=17) or "
                "cancel(entry=7)"
            )
        told = _checked_reason(reason)
        with self._store.writing() as tx:
            if external_id is not None:
                done = self._cancel_manifest(tx, external_id, told)
            elif group is not None:
                done = _cancel_group(tx, group, told)
            elif execution is not None:
                done = _cancel_execution(tx, checked_id("execution", execution), told)
            else:
                done = _cancel_entry(tx, checked_id("entry", entry), told)
            notify_at_commit(tx)
        return done

    def _cancel_manifest(self, tx: Transaction, external_id: str, reason: str) -> Cancelled:
        target = cancelling.of_manifest(tx, external_id) if may_be_stored(external_id) else None
        if target is None:
            raise self._not_found(external_id)
        return _cancel(tx, target, reason)


def _cancel_group(tx: Transaction, group: str, reason: str) -> Cancelled:
    target = cancelling.of_group(tx, group) if may_be_stored(group) else None
    if target is None:
        raise GroupNotFound(group)
    return _cancel(tx, target, reason)


def _cancel_execution(tx: Transaction, execution_id: int, reason: str) -> Cancelled:
    found = executions.find(tx, execution_id)
    if found is None:
        raise ExecutionNotFound(execution_id)
    if found.state.terminal:
        return Cancelled(finished=found.state)
    done = _cancel(tx, cancelling.of_execution(found.entry_id, execution_id), reason)
    if done != Cancelled():
        return done
    ended = executions.find(tx, execution_id)  # it got ahead of us
    return Cancelled(finished=ended.state if ended else None)


def _cancel_entry(tx: Transaction, entry_id: int, reason: str) -> Cancelled:
    done = _cancel(tx, cancelling.of_entry(entry_id), reason)
    if done != Cancelled():
        return done
    ended = cancelling.how_entry_ended(tx, entry_id)
    if ended is None:
        raise EntryNotFound(entry_id)
    return Cancelled(finished=ended)


def _cancel(tx: Transaction, target: Target, reason: str) -> Cancelled:
    reached = cancelling.cancel(tx, target, reason)
    return Cancelled(reached.cancelled, reached.requested)


def _checked_reason(reason: object) -> str:
    if reason is None:
        return ASKED
    if not isinstance(reason, str):
        raise DefinitionError(f"reason = {shown(reason)}: must be text; for example 'wrong day'")
    words = checked_words("reason", reason, "wrong day")
    told = printable(words, REASON_LIMIT).strip() or ASKED
    return RESERVED.get(told, told)
