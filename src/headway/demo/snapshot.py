"""How things stand at one moment, as the demo shows it; read through the history alone."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from headway.domain.execution import Execution, ExecutionState
from headway.history import GroupOverview, History

ENDED = (ExecutionState.COMPLETED, ExecutionState.FAILED, ExecutionState.CANCELLED)


@dataclass(frozen=True)
class Upcoming:
    """Something that will run: when, what, and which retry it is (0: none)."""

    at: datetime
    external_id: str
    is_retry: bool = False


@dataclass(frozen=True)
class Snapshot:
    """Groups, what runs, what ended last (newest first), what comes next, who waits for help."""

    now: datetime
    groups: tuple[GroupOverview, ...]
    running: tuple[Execution, ...]
    recent: tuple[Execution, ...]
    upcoming: tuple[Upcoming, ...]
    dead: tuple[str, ...]

    def total(self, what: str) -> int:
        """The sum of one count over all groups."""
        return sum(getattr(group, what) for group in self.groups)


class Snapshots:
    """Takes snapshots of one database.

    >>> Snapshots(History(store)).take().total("completed")  # doctest: +SKIP
    0
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._names: dict[int | None, str] = {}

    def take(self, recent: int = 30) -> Snapshot:
        """Read everything as it stands now."""
        history = self._history
        ended = history.executions.all(states=ENDED, limit=recent)
        return Snapshot(
            now=datetime.now(UTC),
            groups=tuple(history.groups.all()),
            running=tuple(history.executions.all(states=[ExecutionState.IN_PROGRESS])),
            recent=tuple(sorted(ended, key=_ended_at, reverse=True)),
            upcoming=tuple(sorted(self._upcoming(), key=lambda one: one.at)),
            dead=tuple(self._dead()),
        )

    def _upcoming(self) -> Iterable[Upcoming]:
        for manifest in self._history.manifests.all():
            if manifest.wake_at is not None:
                yield Upcoming(manifest.wake_at, manifest.external_id)
        for entry in self._history.queue.all():
            at = entry.scheduled_at or entry.created_at
            yield Upcoming(at, entry.external_id or entry.workflow, entry.scheduled_at is not None)

    def _dead(self) -> Iterable[str]:
        for letter in self._history.dead_letters.awaiting():
            if letter.manifest_id not in self._names:
                failed = self._history.executions.all(states=[ExecutionState.FAILED])
                self._names |= {one.manifest_id: one.external_id or "" for one in failed}
            yield self._names.get(letter.manifest_id, "a manifest")


def _ended_at(one: Execution) -> datetime:
    return one.finished_at or one.dispatched_at
