"""The read side, one API for CLI, demo, tests and (later) web and federation; and retention."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from headway.config import Settings
from headway.domain.dead_letter import DeadLetter
from headway.domain.execution import Execution, ExecutionState
from headway.observe import Observer
from headway.store import dead_letters, reading, retention
from headway.store.engine import Store
from headway.store.reading import GroupOverview, ManifestOverview, QueuedEntry
from headway.store.transaction import Transaction


class History:
    """What happened and how things stand.

    >>> History(store).executions(external_id="load-users")  # doctest: +SKIP
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def executions(
        self,
        external_id: str | None = None,
        states: Collection[ExecutionState] = (),
        limit: int | None = None,
    ) -> list[Execution]:
        """Executions, live and finished, oldest first; with *limit* only the newest."""
        with self._store.reading() as tx:
            return reading.list_executions(tx, external_id=external_id, states=states, limit=limit)

    def queued(self, limit: int | None = None) -> list[QueuedEntry]:
        """What waits in the queue, oldest first."""
        with self._store.reading() as tx:
            return reading.list_queued(tx, limit)

    def groups(self) -> list[GroupOverview]:
        """Every group with its counts."""
        with self._store.reading() as tx:
            return reading.list_groups(tx)

    def manifests(self) -> list[ManifestOverview]:
        """Every manifest and where it stands."""
        with self._store.reading() as tx:
            return reading.list_manifests(tx)

    def dead_letters(self) -> list[DeadLetter]:
        """Dead letters that wait for a person."""
        with self._store.reading() as tx:
            return dead_letters.awaiting(tx)


@dataclass(frozen=True)
class Retained:
    """What one pass of retention deleted, and whether it found as much as one pass may."""

    executions: int = 0
    entries: int = 0
    dead_letters: int = 0
    more: bool = False


Delete = Callable[[Transaction, datetime, int], int]


class Retention:
    """Deletes finished work older than the settings say, a batch of each kind per pass."""

    def __init__(self, store: Store, settings: Settings, observer: Observer) -> None:
        self._store = store
        self._settings = settings
        self._observer = observer

    def run_once(self) -> Retained:
        """Delete at most a batch of each kind of what is old enough now."""
        kept = self._settings.retention_period
        executions = self._delete(retention.delete_finished, kept)
        entries = self._delete(retention.delete_ended_entries, kept)
        letters = 0
        if self._settings.auto_purge_dead_letters:
            letters_kept = self._settings.dead_letter_retention_period
            letters = self._delete(retention.delete_resolved_dead_letters, letters_kept)
        full = max(executions, entries, letters) >= self._settings.delete_batch_size
        self._observer.emit("retention.pass", executions=executions)
        return Retained(executions, entries, letters, more=full)

    def _delete(self, delete: Delete, kept: timedelta) -> int:
        with self._store.writing() as tx:
            return delete(tx, tx.now - kept, self._settings.delete_batch_size)
