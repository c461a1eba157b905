"""Manifests as lists and pages show them."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from headway.domain.preview import ComingRun
from headway.domain.views.dead_letters import DeadLetterOverview
from headway.domain.views.executions import ExecutionOverview
from headway.domain.views.queue import EntryOverview
from headway.domain.views.states import NodeState


@dataclass(frozen=True)
class ManifestFilter:
    """Which manifests; what is left out does not restrict.

    ``search`` is the beginning of the external id; with ``anywhere`` any part of it. ``kind`` is
    ``interval``, ``cron``, ``once``, ``none``, ``dependent`` or ``dormant_dependent``.

    >>> ManifestFilter(search="load-", enabled=True).dead_lettered
    False
    """

    search: str = ""
    anywhere: bool = False
    group: str | None = None
    workflow: str | None = None
    enabled: bool | None = None
    kind: str | None = None
    dead_lettered: bool = False


@dataclass(frozen=True)
class ManifestOverview:
    """A manifest and where it stands; ``schedule`` says in words when it runs."""

    id: int
    external_id: str
    workflow: str
    group_name: str
    schedule_kind: str
    enabled: bool
    last_success_at: datetime | None
    settled_until: datetime | None
    wake_at: datetime | None
    schedule: str
    group_enabled: bool
    running: bool
    queued: bool
    dead_lettered: bool
    state: NodeState


@dataclass(frozen=True)
class ManifestDefinition:
    """What was declared; None means the deployment's default."""

    input: str
    input_type: str
    priority: int
    time_zone: str | None
    exclusions: tuple[str, ...]
    misfire_policy: str | None
    misfire_threshold: timedelta | None
    catch_up_limit: int | None
    first_run: str | None
    variance: timedelta | None
    max_retries: int | None
    retry: str | None
    timeout: timedelta | None
    join: str | None
    when_busy: str | None
    allow_overlap: bool
    owner: str
    batch: str | None
    scheduled_since: datetime
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class EdgeView:
    """A parent or child; a parent without a name was removed.

    ``fresh`` says that the parent has a success that the child has not consumed.
    """

    external_id: str | None
    group_name: str | None
    enabled: bool
    state: NodeState
    last_success_at: datetime | None
    fresh: bool


@dataclass(frozen=True)
class ManifestDetail:
    """Everything about a manifest. Of parents, children and runs the first or last ones.

    ``trouble`` says why its row cannot be understood, if somebody has edited it.
    """

    overview: ManifestOverview
    definition: ManifestDefinition
    parents: tuple[EdgeView, ...]
    parent_count: int
    children: tuple[EdgeView, ...]
    child_count: int
    next_runs: tuple[ComingRun, ...]
    executions: tuple[ExecutionOverview, ...]
    dead_letter: DeadLetterOverview | None
    entries: tuple[EntryOverview, ...]
    trouble: str | None
