"""Retention: finished work is deleted once it is old enough."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from headway.config import Settings
from headway.observe import Observer
from headway.store import (
    artifact_retention,
    dead_letters,
    idempotency,
    logouts,
    nonces,
    retention,
    tallies,
    wrong_tries,
)
from headway.store.engine import Store
from headway.store.transaction import Transaction


@dataclass(frozen=True)
class Retained:
    """What one pass of retention deleted, and whether there may be more."""

    executions: int = 0
    entries: int = 0
    dead_letters: int = 0
    manifests: int = 0
    groups: int = 0
    declarations: int = 0
    workorders: int = 0
    events: int = 0
    snapshots: int = 0
    claims: int = 0
    queries: int = 0
    pauses: int = 0
    pages: int = 0
    captures: int = 0
    objectives: int = 0
    nonces: int = 0
    answers: int = 0
    logouts: int = 0
    tries: int = 0
    audit: int = 0
    tallies: int = 0
    more: bool = False

    def counts(self) -> dict[str, int]:
        """How many rows of each kind were deleted.

        >>> Retained(executions=3).counts()["executions"]
        3
        """
        return {name: value for name, value in vars(self).items() if name != "more"}


Delete = Callable[[Transaction, datetime, int], int]


class Retention:
    """Deletes finished work older than the settings say, a batch of each kind per pass.

    Of every manifest the newest success is kept, however old.

    >>> Retention(store, settings, observer).run_once().more  # doctest: +SKIP
    False
    """

    def __init__(self, store: Store, settings: Settings, observer: Observer) -> None:
        self._store = store
        self._settings = settings
        self._observer = observer
        self._place: retention.Place | None = None
        self._walking = True

    def run_once(self) -> Retained:
        """Delete at most a batch of each kind of what is old enough now.

        Executions are walked through first, a page each time. What refers to other rows goes
        before them: a removed manifest once its history is gone, a group once its manifests are.
        """
        executions = self._delete_page() if self._walking else 0
        counts = {} if self._walking else self._delete_others()
        full = any(count >= self._settings.delete_batch_size for count in counts.values())
        passed = Retained(executions, **counts, more=self._walking or full)
        self._walking = self._walking or not full  # the next clean-up begins with a new walk
        self._observer.emit("retention.pass", **passed.counts())
        return passed

    def _delete_page(self) -> int:
        with self._store.writing() as tx:
            before = tx.now - self._settings.retention_period
            limit = self._settings.delete_batch_size
            page = retention.delete_finished(tx, before, limit, self._place)
        self._place = page.next_place
        self._walking = self._place is not None
        return page.deleted

    def _delete_others(self) -> dict[str, int]:
        kept = self._settings.retention_period
        return {
            "entries": self._delete(retention.delete_ended_entries, kept),
            "dead_letters": self._delete_letters(),
            "manifests": self._delete(retention.delete_removed_manifests, kept),
            "groups": self._delete(retention.delete_empty_groups, kept),
            "declarations": self._delete(retention.delete_old_declarations, kept),
            "tallies": self._delete(retention.delete_old_tallies, tallies.KEPT),
        } | self._delete_artifacts(kept)

    def _delete_artifacts(self, kept: timedelta) -> dict[str, int]:
        verbs: dict[str, Delete] = {
            "workorders": artifact_retention.delete_judged_workorders,
            "events": artifact_retention.delete_processed_events,
            "snapshots": artifact_retention.delete_unused_snapshots,
            "claims": artifact_retention.delete_ended_claims,
            "queries": artifact_retention.delete_old_queries,
            "pauses": artifact_retention.delete_old_pauses,
            "pages": artifact_retention.delete_old_pages,
            "captures": artifact_retention.delete_processed_captures,
            "objectives": artifact_retention.delete_done_objectives,
            "audit": artifact_retention.delete_old_audit,
        }
        counts = {name: self._delete(verb, kept) for name, verb in verbs.items()}
        return counts | self._delete_what_the_web_kept()

    def _delete_what_the_web_kept(self) -> dict[str, int]:
        return {
            "nonces": self._delete(artifact_retention.delete_old_nonces, nonces.KEPT),
            "answers": self._delete(artifact_retention.delete_old_answers, idempotency.KEPT),
            "logouts": self._delete(artifact_retention.delete_old_logouts, logouts.KEPT),
            "tries": self._delete(artifact_retention.delete_old_tries, wrong_tries.KEPT),
        }

    def _delete_letters(self) -> int:
        with self._store.writing() as tx:
            dead_letters.resolve_left_behind(tx, self._settings.delete_batch_size)
        if not self._settings.auto_purge_dead_letters:
            return 0
        kept = self._settings.dead_letter_retention_period
        return self._delete(retention.delete_resolved_dead_letters, kept)

    def _delete(self, delete: Delete, kept: timedelta) -> int:
        with self._store.writing() as tx:
            return delete(tx, tx.now - kept, self._settings.delete_batch_size)
