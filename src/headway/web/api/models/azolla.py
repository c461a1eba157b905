"""The federation as the API tells of it; artifacts are answered as they are."""

from datetime import datetime

from pydantic import Field

from headway.domain.azolla.artifacts import (
    BlockerKind,
    CaptureStatus,
    EventType,
    GateResult,
    ObjectiveStatus,
    ObjectiveType,
    PauseReason,
    SessionManifest,
)
from headway.federation.known import Known
from headway.history import Session
from headway.store.events import KnownEvent
from headway.web.api.fields import Answer


class SaidItem(Answer):
    """What one deployment said when it was asked."""

    azolla_id: str
    answered: bool
    status: str = Field(examples=["OK"])
    notes: list[str]
    pause_states: int
    objectives: int


class MatterItem(Answer):
    """Something that waits, in some deployment."""

    azolla_id: str
    objective_id: str
    actions: list[str]
    urgency: int
    importance: int
    since: datetime


class SessionAnswer(Answer):
    """Where was I, over all deployments? `session_manifest` is none if the gate let none pass."""

    event_id: str | None
    created_at: datetime
    gate_result: GateResult
    gate_reason: str
    session_manifest: SessionManifest | None
    content: str = Field(description="The whole page, in Markdown")
    said: list[SaidItem]
    matters: list[MatterItem] = Field(description="What waits, the most urgent first")

    @classmethod
    def of(cls, session: Session, most: int) -> "SessionAnswer":
        """*session*, with so many matters at most."""
        return cls(
            event_id=session.event_id,
            created_at=session.record.created_at,
            gate_result=session.record.gate_result,
            gate_reason=session.record.gate_reason,
            session_manifest=session.page,
            content=session.bundle.content,
            said=[SaidItem.model_validate(one) for one in session.said],
            matters=[MatterItem.model_validate(one) for one in session.matters[:most]],
        )


class EventItem(Answer):
    """A request, and what has become of it."""

    event_id: str
    type: EventType
    created_at: datetime
    processed: bool
    terminal_reason: str | None
    parked_at: datetime | None
    attempts: int
    last_error: str | None

    @classmethod
    def of(cls, known: KnownEvent) -> "EventItem":
        """*known* as it is answered."""
        return cls(
            **known.event.model_dump(include={"event_id", "type", "created_at", "processed"}),
            terminal_reason=None if known.terminal_reason is None else str(known.terminal_reason),
            parked_at=known.parked_at,
            attempts=known.attempts,
            last_error=known.last_error,
        )


class RequestedAnswer(Answer):
    """A request that was taken."""

    event_id: str


class PeerItem(Answer):
    """A deployment in the registry; `url` is none for this one, `said` if it was never asked."""

    id: str
    url: str | None
    blueprint: str
    reads: list[str]
    stores: list[str]
    keys: list[str] = Field(description="The ids of the keys shared with it")
    said: SaidItem | None = None


class PeersAnswer(Answer):
    """Whom this deployment knows; `trouble` says why nobody, if so."""

    asked_at: datetime | None
    trouble: str | None
    items: list[PeerItem]

    @classmethod
    def of(cls, known: Known, session: Session | None) -> "PeersAnswer":
        """*known* with what each said in *session*."""
        said = {one.azolla_id: one for one in session.said} if session else {}
        listed = [*([known.own] if known.own else []), *known.peers]
        items = [PeerItem.model_validate(one) for one in listed]
        return cls(
            asked_at=session.context.asked_at if session and session.context else None,
            trouble=known.trouble,
            items=[
                one.model_copy(update={"said": SaidItem.model_validate(said[one.id])})
                if one.id in said
                else one
                for one in items
            ],
        )


class PauseItem(Answer):
    """Why work rests, and what to do about it."""

    pause_id: str
    objective_id: str
    azolla_id: str
    reason: PauseReason
    prioritized_actions: list[str]
    created_at: datetime


class CaptureItem(Answer):
    """A note of somebody."""

    capture_id: str
    azolla_id: str
    raw_content: str
    source_label: str
    status: CaptureStatus
    created_at: datetime
    updated_at: datetime


class ProcessedAnswer(Answer):
    """A capture that is dealt with."""

    capture_id: str
    status: CaptureStatus = CaptureStatus.PROCESSED


class BlockerItem(Answer):
    """What an objective waits for, or has waited for."""

    blocker_id: str
    kind: BlockerKind
    description: str
    resolved: bool


class ResolvedAnswer(Answer):
    """A blocker that is gone."""

    blocker_id: str
    resolved: bool = True


class ObjectiveItem(Answer):
    """Something to be reached, with its blockers."""

    objective_id: str
    azolla_id: str
    title: str
    acceptance_criteria: str
    objective_type: ObjectiveType
    status: ObjectiveStatus
    importance: int
    urgency: int
    blocked_reason: str | None
    blocked_on: list[BlockerItem]
    created_at: datetime
    updated_at: datetime
