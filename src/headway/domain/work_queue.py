"""The work queue entry: the intent to run once, whatever asked for it."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from headway.domain.routing import LOCAL
from headway.domain.text import shown
from headway.errors import DefinitionError

PRIORITY_MIN = 0
PRIORITY_MAX = 31
LONGEST_DELAY = timedelta(days=3653)
MAX_INPUT_BYTES = 256_000


class Source(StrEnum):
    """Where an entry comes from."""

    SCHEDULE = "schedule"
    DEPENDENT = "dependent"
    ACTIVATION = "activation"
    TRIGGER = "trigger"
    RERUN = "rerun"
    REQUEUE = "requeue"
    AD_HOC = "ad_hoc"

    @property
    def automatic(self) -> bool:
        """Whether headway itself decided that this should run.

        >>> Source.SCHEDULE.automatic, Source.TRIGGER.automatic
        (True, False)
        """
        return self in AUTOMATIC


AUTOMATIC = frozenset({Source.SCHEDULE, Source.DEPENDENT, Source.ACTIVATION})


class EntryStatus(StrEnum):
    """What has become of an entry; ``dispatched`` entries live on as their execution."""

    QUEUED = "queued"
    HELD = "held"
    DISPATCHED = "dispatched"
    CANCELLED = "cancelled"
    FAILED = "failed"


class NewEntry(NamedTuple):
    """An entry about to be queued.

    >>> NewEntry(workflow="extract", source=Source.AD_HOC, input="null").priority
    0
    """

    workflow: str
    source: Source
    input: str
    input_type: str = ""
    priority: int = 0
    manifest_id: int | None = None
    group_id: int | None = None
    scheduled_at: datetime | None = None
    scheduled_for: datetime | None = None
    attempts: int = 0
    max_attempts: int = 1
    parents_seen: str | None = None


class RestingTimes(NamedTuple):
    """When a scheduled entry must not start: its manifest's exclusions as stored, and their zone.

    >>> RestingTimes("[]", "UTC").zone
    'UTC'
    """

    exclusions: str
    zone: str


class WorkQueueEntry(NamedTuple):
    """One entry as the dispatcher reads it, with what its manifest and group say about it.

    ``ready_at`` is when its time had come, ``eligible_since`` when it could last have begun to
    wait for nothing but its turn, its group being neither full nor switched off;
    ``missing`` names the manifest or group it belongs to if there is no such thing. One that
    ``may_overlap`` waits for no other entry or run of its manifest; ``task_server`` is where it
    goes once it is admitted.
    """

    id: int
    workflow: str
    source: Source
    priority: int
    created_at: datetime
    manifest_id: int | None
    group_id: int | None
    external_id: str | None
    group_name: str | None
    group_priority: int
    group_max_active_jobs: int | None
    resting: RestingTimes | None = None
    eligible_since: datetime | None = None
    input_bytes: int = 0
    missing: str | None = None
    may_overlap: bool = False
    task_server: str = LOCAL
    ready_at: datetime | None = None


def age(entry: WorkQueueEntry) -> tuple[datetime, int]:
    """What entries are sorted by where the oldest comes first."""
    return (entry.created_at, entry.id)


def dispatch_order(entry: WorkQueueEntry) -> tuple[int, int, datetime, int]:
    """What entries are sorted by: group priority, own priority, age, id."""
    return (-entry.group_priority, -entry.priority, entry.created_at, entry.id)


def one_per_manifest(entries: Iterable[WorkQueueEntry]) -> list[WorkQueueEntry]:
    """Each entry once, of a manifest that runs once at a time the best, in the order given."""
    unique = {one.id: one for one in entries}
    alone = [one.manifest_id for one in unique.values() if one.manifest_id and not one.may_overlap]
    if len(set(alone)) == len(alone):
        return list(unique.values())
    best: dict[int, WorkQueueEntry] = {}
    for one in sorted(unique.values(), key=dispatch_order):
        free = one.manifest_id is None or one.may_overlap
        best.setdefault(-one.id if free else one.manifest_id or 0, one)
    kept = {one.id for one in best.values()}
    return [one for one in unique.values() if one.id in kept]


def entry_priority(group_priority: int, boost: int = 0) -> int:
    """The priority an automatic entry is stored with, never above the highest there is.

    >>> entry_priority(5, boost=16), entry_priority(20, boost=16)
    (21, 31)
    """
    return min(group_priority + boost, PRIORITY_MAX)


def checked_delay(external_id: str, delay: timedelta | None) -> timedelta | None:
    """*delay* if an entry may be queued for so much later, else an error saying why not.

    >>> checked_delay("extract-users", timedelta(minutes=30))
    datetime.timedelta(seconds=1800)
    """
    if delay is None:
        return None
    if not isinstance(delay, timedelta) or not timedelta(0) <= delay <= LONGEST_DELAY:
        raise DefinitionError(
            f"{external_id}: delay = {shown(delay)}: must be a timedelta from 0 to 10 years; "
            "for example timedelta(minutes=30)"
        )
    return delay


class QueuedInput(NamedTuple):
    """A queued entry of a manifest, with the workflow and the input it will run.

    >>> QueuedInput(7, "load-users", "load", '"users"').workflow
    'load'
    """

    id: int
    external_id: str
    workflow: str
    input: str
