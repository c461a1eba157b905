"""The words artifacts use for kinds, states and reasons, spelled as the protocol spells them."""

from enum import StrEnum


class EventType(StrEnum):
    """What an event announces."""

    TICKET_READY = "TICKET_READY"
    CAPTURE_READY = "CAPTURE_READY"
    MANIFEST_REQUESTED = "MANIFEST_REQUESTED"


class TerminalReason(StrEnum):
    """Why an event is processed; kept beside the event, which has no field for it."""

    SCHEDULED = "SCHEDULED"
    MISSING_TICKET = "MISSING_TICKET"
    NON_EXECUTABLE_STATUS = "NON_EXECUTABLE_STATUS"
    BLOCKED = "BLOCKED"
    NO_PENDING_CAPTURES = "NO_PENDING_CAPTURES"


class ResourceType(StrEnum):
    """What can be claimed."""

    EVENT = "EVENT"
    WORKORDER = "WORKORDER"


class DiazotrophType(StrEnum):
    """Who executes a workorder."""

    PATCH = "PATCH_DIAZOTROPH"
    TRIAGE = "TRIAGE_DIAZOTROPH"
    MANIFEST_BUILDER = "MANIFEST_BUILDER_DIAZOTROPH"


class WorkorderStatus(StrEnum):
    """Whether a workorder still has to be executed."""

    CREATED = "CREATED"
    EXECUTED = "EXECUTED"


class PauseReason(StrEnum):
    """Why work on an objective rests."""

    RUN_COMPLETE = "RUN_COMPLETE"
    GATE_FAILED = "GATE_FAILED"
    BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"


class CaptureStatus(StrEnum):
    """Whether somebody has dealt with a capture."""

    PENDING = "PENDING"
    PROCESSED = "PROCESSED"


class ObjectiveType(StrEnum):
    """A ticket ends, a standing objective does not."""

    TICKET = "TICKET"
    STANDING = "STANDING"


class ObjectiveStatus(StrEnum):
    """How far an objective has come."""

    NEW = "NEW"
    TODO = "TODO"
    IN_PROGRESS = "IN_PROGRESS"
    BLOCKED = "BLOCKED"
    DONE = "DONE"


class BlockerKind(StrEnum):
    """What an objective waits for."""

    USER_INPUT = "USER_INPUT"
    EXTERNAL_SYSTEM = "EXTERNAL_SYSTEM"
    DEPENDENCY_CHANGE = "DEPENDENCY_CHANGE"
    DESIGN_DECISION = "DESIGN_DECISION"
    ENVIRONMENT_ACCESS = "ENVIRONMENT_ACCESS"


class ArtifactType(StrEnum):
    """What another deployment may be asked for."""

    PAUSE_STATE = "pause_state"
    OBJECTIVE = "objective"
    BLOCKER_REF = "blocker_ref"


class ResponseStatus(StrEnum):
    """How a query ended."""

    OK = "OK"
    DENIED = "DENIED"
    TARGET_UNAVAILABLE = "TARGET_UNAVAILABLE"


class GateResult(StrEnum):
    """What the gate thinks of an output bundle."""

    PASS = "PASS"
    FAIL = "FAIL"
