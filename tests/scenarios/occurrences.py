"""Which runs some schedules ask for, worked out without headway, and which runs there were."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select

from headway import Headway, cron, every
from headway.applying import apply_declarations
from headway.domain.schedule import Schedule
from headway.store.engine import Store
from headway.store.tables import (
    execution_history,
    executions,
    manifest,
    manifest_state,
    work_queue,
)

SECOND = timedelta(seconds=1)

Runs = Counter[tuple[str, datetime]]


@dataclass(frozen=True)
class Job:
    """One manifest: every so many seconds, on the clock's own seconds or from its declaration."""

    external_id: str
    seconds: int
    by_clock: bool

    @property
    def schedule(self) -> Schedule:
        if self.by_clock:
            return cron(f"*/{self.seconds} * * * * *")
        return every(seconds=self.seconds, fixed_rate=True)

    def moments(self, since: datetime, until: datetime) -> list[datetime]:
        """All of (*since*, *until*] at which it is to run."""
        if not self.by_clock:
            passed = int((until - since) / SECOND) // self.seconds
            return [since + SECOND * self.seconds * count for count in range(1, passed + 1)]
        first = since.replace(microsecond=0) + SECOND
        spanned = int((until - first) / SECOND) + 1
        walked = [first + SECOND * count for count in range(spanned)]
        return [moment for moment in walked if moment.second % self.seconds == 0]


class Ledger:
    """Some jobs declared on a database, what they have to do until a moment, and what was done."""

    def __init__(self, store: Store, jobs: list[Job], seconds: int) -> None:
        self._store = store
        self._declare(jobs)
        self.since = self._declared_at()
        self.until = self.since + SECOND * seconds
        wanted = {job.external_id: job.moments(self.since, self.until) for job in jobs}
        self._last = {name: moments[-1] for name, moments in wanted.items()}
        self.expected: Runs = Counter(
            (name, moment) for name, moments in wanted.items() for moment in moments
        )

    def _declare(self, jobs: list[Job]) -> None:
        app = Headway("fleet")

        @app.workflow
        def nothing() -> None: ...

        for job in jobs:
            app.schedule(
                nothing,
                job.external_id,
                None,
                job.schedule,
                group=f"every-{job.seconds}",
                misfire="catch_up",
                catch_up_limit=1000,
                first_run="at_first_occurrence",
            )
        apply_declarations(app, self._store)

    def _declared_at(self) -> datetime:
        with self._store.reading() as tx:
            declared = select(manifest.c.scheduled_since).distinct()
            moment: datetime = tx.connection.execute(declared).scalar_one()
            return moment

    def now(self) -> datetime:
        """The database's clock."""
        with self._store.reading() as tx:
            return tx.now

    def unfinished(self) -> int:
        """How many jobs have not come to the end yet."""
        settled = select(manifest.c.external_id, manifest_state.c.settled_until).join_from(
            manifest_state, manifest
        )
        with self._store.reading() as tx:
            rows = tx.connection.execute(settled).all()
        return sum(moment is None or moment < self._last[name] for name, moment in rows)

    def ended(self) -> int:
        """How many runs have ended so far."""
        with self._store.reading() as tx:
            counted = select(func.count()).select_from(execution_history)
            return tx.connection.execute(counted).scalar_one()

    def entries(self) -> Runs:
        """Every entry there was or is until the end, whatever became of it."""
        started = select(
            executions.c.entry_id, executions.c.external_id, executions.c.scheduled_for
        )
        waiting = select(work_queue.c.id, manifest.c.external_id, work_queue.c.scheduled_for)
        with self._store.reading() as tx:
            found = {
                *map(tuple, tx.connection.execute(started)),
                *map(tuple, tx.connection.execute(waiting.join(manifest, THEIR_MANIFEST))),
            }
        return Counter((name, moment) for _, name, moment in found if moment <= self.until)

    def queued_twice(self) -> list[int]:
        """Manifests with two queued automatic entries; there must never be one."""
        twice = (
            select(work_queue.c.manifest_id)
            .where(work_queue.c.status == "queued", work_queue.c.source == "schedule")
            .group_by(work_queue.c.manifest_id)
            .having(func.count() > 1)
        )
        with self._store.reading() as tx:
            return list(tx.connection.execute(twice).scalars())

    def first_entry_at(self) -> datetime | None:
        """When the first entry of all was made."""
        started = select(func.min(executions.c.queued_at))
        waiting = select(func.min(work_queue.c.created_at))
        with self._store.reading() as tx:
            moments = [tx.connection.execute(one).scalar() for one in (started, waiting)]
        return min((one for one in moments if one is not None), default=None)


THEIR_MANIFEST = manifest.c.id == work_queue.c.manifest_id
