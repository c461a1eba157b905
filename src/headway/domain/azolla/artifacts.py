"""The artifacts of the federation, with exactly the fields the protocol gives them.

All are frozen, refuse extra fields, and carry text ids and times with an offset. What headway has
to remember beyond these fields (why an event ended, which event a workorder belongs to) stands in
columns beside them and never crosses to another deployment.
"""

from typing import Annotated, Any, TypeAlias

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from headway.domain.azolla.words import (
    ArtifactType as ArtifactType,
)
from headway.domain.azolla.words import (
    BlockerKind as BlockerKind,
)
from headway.domain.azolla.words import (
    CaptureStatus as CaptureStatus,
)
from headway.domain.azolla.words import (
    DiazotrophType as DiazotrophType,
)
from headway.domain.azolla.words import (
    EventType as EventType,
)
from headway.domain.azolla.words import (
    GateResult as GateResult,
)
from headway.domain.azolla.words import (
    ObjectiveStatus as ObjectiveStatus,
)
from headway.domain.azolla.words import (
    ObjectiveType as ObjectiveType,
)
from headway.domain.azolla.words import (
    PauseReason as PauseReason,
)
from headway.domain.azolla.words import (
    ResourceType as ResourceType,
)
from headway.domain.azolla.words import (
    ResponseStatus as ResponseStatus,
)
from headway.domain.azolla.words import (
    TerminalReason as TerminalReason,
)
from headway.domain.azolla.words import (
    WorkorderStatus as WorkorderStatus,
)

Id: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]
Degree: TypeAlias = Annotated[int, Field(ge=0, le=4)]
Text: TypeAlias = Annotated[str, Field(min_length=1)]


class Artifact(BaseModel):
    """What all artifacts have in common."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Event(Artifact):
    """Something that has to be dealt with once.

    >>> from datetime import UTC, datetime
    >>> Event(event_id="e1", type=EventType.MANIFEST_REQUESTED, resource_id="warehouse",
    ...       azolla_id="warehouse", created_at=datetime(2026, 1, 1, tzinfo=UTC)).processed
    False
    """

    event_id: Id
    type: EventType
    resource_id: Id
    azolla_id: Id
    created_at: AwareDatetime
    processed: bool = False


class ClaimRecord(Artifact):
    """Who works on an event or a workorder, and until when nobody else may."""

    resource_type: ResourceType
    resource_id: Id
    owner_id: Id
    lease_expires_at: AwareDatetime
    heartbeat_at: AwareDatetime
    claim_version: Annotated[int, Field(ge=0)]


class ContextSnapshot(Artifact):
    """All a diazotroph is given; never changed.

    >>> from datetime import UTC, datetime
    >>> seen = ContextSnapshot(
    ...     snapshot_id="s1",
    ...     objective_id="standing",
    ...     full_prompt_text="Build a session manifest …",
    ...     created_at=datetime(2026, 11, 15, 8, tzinfo=UTC),
    ... )
    >>> seen.full_prompt_text
    'Build a session manifest …'
    """

    snapshot_id: Id
    objective_id: Id
    related_yield_refs: tuple[str, ...] = ()
    full_prompt_text: Text
    created_at: AwareDatetime
    metadata: dict[str, Any] | None = None


class Workorder(Artifact):
    """The order to execute one diazotroph on one snapshot."""

    work_order_id: Id
    objective_id: Id
    diazotroph_type: DiazotrophType
    context_snapshot_id: Id
    branch_name: str | None
    budget_ms: Annotated[int, Field(ge=1)]
    created_at: AwareDatetime
    status: WorkorderStatus = WorkorderStatus.CREATED


class PauseState(Artifact):
    """Why work rests, and what to do first when somebody comes back to it."""

    objective_id: Id
    azolla_id: Id
    reason: PauseReason
    prioritized_actions: Annotated[tuple[Text, ...], Field(min_length=1, max_length=3)]
    created_at: AwareDatetime


class CaptureBuffer(Artifact):
    """A note that nobody has sorted yet."""

    capture_id: Id
    azolla_id: Id
    raw_content: Text
    source_label: Text
    status: CaptureStatus = CaptureStatus.PENDING
    created_at: AwareDatetime
    updated_at: AwareDatetime


class BlockerRef(Artifact):
    """What keeps an objective from going on."""

    blocker_id: Id
    kind: BlockerKind
    description: Text
    resolved: bool = False


class Objective(Artifact):
    """Something to be reached, and how much it matters."""

    objective_id: Id
    azolla_id: Id
    title: Text
    acceptance_criteria: str
    objective_type: ObjectiveType
    status: ObjectiveStatus
    importance: Degree
    urgency: Degree
    blocked_reason: str | None
    blocked_on: tuple[BlockerRef, ...]
    metadata: dict[str, Any]
    created_at: AwareDatetime
    updated_at: AwareDatetime


class SubstrateQuery(Artifact):
    """A read-only question to another deployment."""

    query_id: Id
    source_azolla_id: Id
    target_azolla_id: Id
    artifact_type: ArtifactType
    filter: dict[str, Any]
    created_at: AwareDatetime


class SubstrateQueryResponse(Artifact):
    """Its answer."""

    response_id: Id
    query_id: Id
    target_azolla_id: Id
    status: ResponseStatus
    results: tuple[dict[str, Any], ...] = ()
    created_at: AwareDatetime


class OutputBundle(Artifact):
    """What a diazotroph made; never changed."""

    output_id: Id
    objective_id: Id
    title: str
    metadata: dict[str, Any]
    content: str
    notes: str
    created_at: AwareDatetime


class RunRecord(Artifact):
    """What the gate thought of it; one for each workorder."""

    run_id: Id
    work_order_id: Id
    objective_id: Id
    output_id: Id
    gate_result: GateResult
    gate_reason: str
    created_at: AwareDatetime


class PauseSummary(Artifact):
    """A pause state as the page shows it."""

    source_azolla_id: Id
    objective_id: Id
    reason: PauseReason
    prioritized_actions: Annotated[tuple[Text, ...], Field(min_length=1, max_length=3)]


class SessionManifest(Artifact):
    """The operator's page: where was I, across all deployments?"""

    manifest_id: Id
    azolla_id: Id
    queried_azolla_ids: tuple[Id, ...]
    pause_state_summary: tuple[PauseSummary, ...]
    prioritized_orientation: Annotated[tuple[Text, ...], Field(min_length=1, max_length=5)]
    created_at: AwareDatetime


ARTIFACTS: tuple[type[Artifact], ...] = (
    Event,
    ClaimRecord,
    ContextSnapshot,
    Workorder,
    PauseState,
    CaptureBuffer,
    Objective,
    BlockerRef,
    SubstrateQuery,
    SubstrateQueryResponse,
    OutputBundle,
    RunRecord,
    SessionManifest,
)
