"""How a deployment stands, its servers and its audit, as the API tells of them."""

from datetime import datetime
from typing import Any

from pydantic import Field

from headway.domain.views import AttentionKind
from headway.web.api.fields import Answer, Seconds


class SummaryAnswer(Answer):
    """What waits and runs now, and how the last minutes went."""

    now: datetime
    queued: int
    delayed: int
    pending: int
    running: int
    completed_per_minute: float
    failed_per_minute: float
    success_rate: float | None
    dead_letters: int
    workers: int
    slots: int


class ThroughputPointItem(Answer):
    """What ended in one span of a chart."""

    start: datetime
    completed: int
    failed: int
    cancelled: int
    run_seconds: float


class ThroughputAnswer(Answer):
    """A chart: its points in order without gaps, each `step` seconds long."""

    step: Seconds
    points: list[ThroughputPointItem]


class NextRunItem(Answer):
    """A manifest that will run by itself, and when at the earliest."""

    external_id: str
    group_name: str
    workflow: str
    at: datetime


class AttentionItem(Answer):
    """Something that needs attention, in one sentence."""

    kind: AttentionKind
    subject: str
    sentence: str
    since: datetime | None


class OverviewAnswer(Answer):
    """How things stand."""

    summary: SummaryAnswer
    next_runs: list[NextRunItem]
    attention: list[AttentionItem]


class ServerItem(Answer):
    """A process with its lease; `late` if a third of the lease has passed without a beat."""

    id: str
    host: str
    pid: int
    roles: list[str]
    workflows: list[str]
    slots: int
    running: int
    started_at: datetime
    renewed_at: datetime
    expires_at: datetime
    unbroken_since: datetime | None
    alive: bool
    late: bool


class Servers(Answer):
    """Every process that has a lease."""

    items: list[ServerItem]


class SettingItem(Answer):
    """A setting as this process has it; what is secret is masked."""

    name: str = Field(examples=["max_active_jobs"])
    variable: str = Field(examples=["HEADWAY_MAX_ACTIVE_JOBS"])
    value: Any


class SettingsAnswer(Answer):
    """The settings of this process."""

    application: str
    database: str = Field(examples=["postgresql+psycopg://headway:***@db/headway"])
    items: list[SettingItem]


class AuditItem(Answer):
    """Who did what to what, and when."""

    id: int
    at: datetime
    actor: str
    action: str = Field(examples=["manifest.trigger"])
    subject: str
    detail: Any


class GateItem(Answer):
    """One gate: whether it is passed, why or why not, and what has to happen until it can be."""

    name: str = Field(examples=["group cap"])
    stage: str = Field(examples=["dispatch"])
    passed: bool
    sentence: str
    until: str
    at: datetime | None


class WhyAnswer(Answer):
    """Why something runs or does not, in one sentence, and the gates behind it in order."""

    subject: str
    answer: str
    gates: list[GateItem]
    entry: int | None
    execution: int | None
