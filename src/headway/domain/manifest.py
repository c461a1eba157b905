"""The manifest: what runs, with which input, when or after what, and in which group."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from headway.domain.dependencies import EdgeState, Join
from headway.domain.names import checked_name
from headway.domain.retry import RetryPolicy
from headway.domain.schedule import Schedule
from headway.domain.time_options import TimeOptions
from headway.domain.work_queue import PRIORITY_MAX, PRIORITY_MIN
from headway.errors import DefinitionError

PLAIN_TIME = TimeOptions()

T = TypeVar("T")


class WhenBusy(StrEnum):
    """What becomes of an activation whose dormant dependent is queued or running already."""

    SKIP = "skip"
    KEEP = "keep"
    REPLACE = "replace"
    REJECT = "reject"


def checked_priority(subject: str, value: int) -> int:
    """*value* if it is a priority, else an error that says what one is.

    >>> checked_priority("group 'etl'", 31)
    31
    """
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not PRIORITY_MIN <= value <= PRIORITY_MAX:
        raise DefinitionError(
            f"{subject}: priority = {value!r}: must be a whole number from {PRIORITY_MIN} to "
            f"{PRIORITY_MAX}; for example 10"
        )
    return value


def _checked_cap(subject: str, value: int | None) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if value is not None and (not whole or value < 1):
        raise DefinitionError(
            f"{subject}: max_active_jobs = {value!r}: must be a whole number of at least 1, or "
            "None for no cap; for example 4"
        )
    return value


DEPENDENT = "dependent"
DORMANT = "dormant_dependent"
DEPENDENTS = (DEPENDENT, DORMANT)
"""The kinds of manifests that run after others and not by time."""


@dataclass(frozen=True)
class Group:
    """A named set of manifests with a cap, a priority and an on/off switch.

    Without a name it configures the group that the external id or the batch's name gives.

    >>> Group("delta", max_active_jobs=4, priority=20).max_active_jobs
    4
    """

    name: str = ""
    max_active_jobs: int | None = None
    priority: int = 0
    enabled: bool = True

    def __post_init__(self) -> None:
        if self.name != "":
            object.__setattr__(self, "name", checked_name("group", self.name))
        subject = f"group {self.name!r}" if self.name else "group"
        _checked_cap(subject, self.max_active_jobs)
        checked_priority(subject, self.priority)


@dataclass(frozen=True, slots=True)
class Terms:
    """Everything about a manifest but its external id, its input and its parents.

    The items of a batch share one such value, however many they are. ``None`` for ``max_retries``,
    ``retry`` and ``timeout`` means the deployment's default. With ``allow_overlap`` a run may start
    while another one of the same manifest is going on.
    """

    workflow: str
    input_type: str
    schedule: Schedule
    group: Group
    priority: int = 0
    max_retries: int | None = None
    timeout: timedelta | None = None
    enabled: bool = True
    retry: RetryPolicy | None = None
    time: TimeOptions = PLAIN_TIME
    join: Join = "all"
    dormant: bool = False
    when_busy: WhenBusy = WhenBusy.SKIP
    batch: str | None = None
    allow_overlap: bool = False

    def checked(self, subject: str) -> "Terms":
        """These terms, if their numbers are in range; *subject* is who is blamed for a mistake."""
        checked_priority(subject, self.priority)
        _check_max_retries(subject, self.max_retries)
        _check_timeout(subject, self.timeout)
        return self


class _Term(Generic[T]):
    """A field of a manifest's terms, read as if it were the manifest's own."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, manifest: "Manifest", owner: type) -> T:
        value: T = getattr(manifest.terms, self._name)
        return value


@dataclass(frozen=True, slots=True)
class Manifest:
    """A declared manifest: everything the code says about one job.

    ``input`` is the encoded input. One with ``parents`` runs after them and has no schedule. Of a
    million declared ones each takes memory for what is its own alone: the terms are shared.

    >>> from headway.domain.schedule import every
    >>> Manifest("load", "1", Terms("copy", "int", every(hours=1), Group("etl"))).group.name
    'etl'
    """

    external_id: str
    input: str
    terms: Terms
    parents: tuple[str, ...] = ()

    workflow = _Term[str]()
    input_type = _Term[str]()
    schedule = _Term[Schedule]()
    group = _Term[Group]()
    priority = _Term[int]()
    max_retries = _Term[int | None]()
    timeout = _Term[timedelta | None]()
    enabled = _Term[bool]()
    retry = _Term[RetryPolicy | None]()
    time = _Term[TimeOptions]()
    join = _Term[Join]()
    dormant = _Term[bool]()
    when_busy = _Term[WhenBusy]()
    batch = _Term[str | None]()
    allow_overlap = _Term[bool]()

    @property
    def kind(self) -> str:
        """How it comes to run: by a kind of schedule, after its parents, or when activated."""
        if not self.parents:
            return self.schedule.kind
        return DORMANT if self.dormant else DEPENDENT

    def is_like(self, other: "Manifest") -> bool:
        """Whether only external id, input and parents differ, as between items of one batch.

        The terms have to be the same object: what is merely equal may be told in other words.
        """
        return self.terms is other.terms and bool(self.parents) is bool(other.parents)


def _check_max_retries(subject: str, value: int | None) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if value is not None and (not whole or not 0 <= value <= 1000):
        raise DefinitionError(
            f"{subject}: max_retries = {value!r}: must be a whole number from 0 to 1000; "
            "for example 3"
        )


def _check_timeout(subject: str, value: timedelta | None) -> None:
    if value is None:
        return
    span = timedelta(seconds=1), timedelta(days=366)
    if not isinstance(value, timedelta) or not span[0] <= value <= span[1]:
        raise DefinitionError(
            f"{subject}: timeout = {value!r}: must be a timedelta from 1 second to 366 days; "
            "for example timedelta(minutes=20)"
        )


class ManifestDispatchView(NamedTuple):
    """A manifest as the ManifestManager looks at it: definition, state and guards in one row.

    The counts and flags are computed in the database for these manifests alone. A row that cannot
    be understood (somebody edited it) has its ``trouble`` told here and is never due. What runs of
    one that ``may_overlap`` stand for counts in ``settled_until`` and ``edges`` as dealt with.
    ``failed_for`` is the newest occurrence among the failures counted.
    """

    manifest_id: int
    external_id: str
    workflow: str
    input: str
    input_type: str
    schedule: Schedule
    enabled: bool
    max_retries: int | None
    group_id: int
    group_name: str
    group_priority: int
    group_enabled: bool
    settled_until: datetime | None
    wake_at: datetime | None
    failed_count: int = 0
    last_failed_at: datetime | None = None
    retry_at: datetime | None = None
    failed_for: datetime | None = None
    failed_for_good: bool = False
    has_awaiting_dead_letter: bool = False
    has_queued_work: bool = False
    has_active_execution: bool = False
    may_overlap: bool = False
    has_successful_execution: bool = False
    trouble: str | None = None
    kind: str = ""
    time: TimeOptions = PLAIN_TIME
    declared_at: datetime | None = None
    retry: RetryPolicy | None = None
    join: Join = "all"
    edges: Mapping[int, EdgeState] = MappingProxyType({})
