"""The JobDispatcher's short way: what is queued while nothing else is starts at once."""

import time
from collections.abc import Iterable, Sequence
from datetime import datetime

from headway.config import Settings
from headway.domain.execution import Execution
from headway.domain.routing import LOCAL
from headway.domain.starting import OwnWorkers
from headway.domain.work_queue import WorkQueueEntry
from headway.observe import Observer
from headway.store.servers import Workers
from headway.store.starting_all import Room, start_all
from headway.store.together import Line

# After so many starts in a row without any manifest, none is expected.
IN_A_ROW = 20
# However often it was in vain, so many wake-ups later it is tried again.
MOST_PASSED = 100


class AtOnce:
    """Starts all that is queued in the own workers, where nothing has to be decided for that.

    It goes by the last that were started: whether manifests have to be asked for, which takes
    longer. The more often it was in vain, the more seldom it is tried.

    >>> AtOnce(own_workers, settings, observer).start(line, workers, None)  # doctest: +SKIP
    [Execution(id=7, ...)]
    """

    def __init__(self, own_workers: OwnWorkers, settings: Settings, observer: Observer) -> None:
        self._own_workers = own_workers
        self._observer = observer
        self._room = Room(
            settings.max_active_jobs,
            settings.exclude_from_max_active_jobs,
            settings.max_queued_jobs_per_cycle,
        )
        self._without_manifest = IN_A_ROW
        self._in_vain = 0
        self._to_pass = 0

    def start(self, line: Line, workers: Workers, next_at: datetime | None) -> Sequence[Execution]:
        """Start all, or nothing; what is delayed is due from *next_at* on."""
        if self._to_pass:
            self._to_pass -= 1
            return ()
        began, hands = time.perf_counter(), self._own_workers.reserve()
        if hands is None:
            return ()
        of_manifests = self._without_manifest < IN_A_ROW
        started: list[Execution] = []
        try:
            started = start_all(
                line, workers, hands, self._room, next_at, of_manifests=of_manifests
            )
        finally:
            self._own_workers.start_at_once(hands, started)
        if started:
            self._tell(started, time.perf_counter() - began)
        self._in_vain = 0 if started else self._in_vain + 1
        self._to_pass = min(max(self._in_vain - 1, 0), MOST_PASSED)
        self.learn(started)
        return started

    def learn(self, started: Iterable[Execution | WorkQueueEntry]) -> None:
        """What has *started* now, here or in a cycle, is what comes next as well."""
        for one in started:
            self._without_manifest = (self._without_manifest + 1) if one.manifest_id is None else 0

    def _tell(self, started: Sequence[Execution], seconds: float) -> None:
        if self._observer.wants("execution.dispatched"):
            for one in started:
                self._tell_of(one)
        count = len(started)
        self._observer.emit(
            "dispatcher.cycle",
            loaded=count,
            dispatched=count,
            failed=0,
            reasons={},
            seconds={"start_all": seconds},
        )

    def _tell_of(self, started: Execution) -> None:
        self._observer.emit(
            "execution.dispatched",
            execution_id=started.id,
            entry_id=started.entry_id,
            external_id=started.external_id,
            group=started.group_name,
            workflow=started.workflow,
            source=started.source,
            task_server=LOCAL,
            queued_at=started.queued_at,
            ready_at=started.queued_at,
            dispatched_at=started.dispatched_at,
        )
