"""Ids that follow from what caused them: whoever repeats a step writes the same row again.

>>> workorder_of("e1") == workorder_of("e1") != workorder_of("e2")
True
"""

from datetime import datetime
from uuid import UUID, uuid5

_HEADWAY = UUID("6f1f6c1e-6d0c-4a57-9d64-6a3f3a0c6f0b")

PAGE, LETTER, RUN = "page", "letter", "run"


def derived(kind: str, *causes: object) -> str:
    """The id of the *kind* of thing that *causes* lead to."""
    return f"{kind}-{uuid5(_HEADWAY, chr(31).join(map(str, (kind, *causes))))}"


def event_of(key: str) -> str:
    """The event a run with this idempotency key emits."""
    return derived("event", key)


def query_of(event_id: str, claim_version: int, target: str, artifact_type: str) -> str:
    """A question asked for an event; whoever takes the event over asks again."""
    return derived("query", event_id, claim_version, target, artifact_type)


def response_to(query_id: str) -> str:
    """The answer to a question."""
    return derived("response", query_id)


def snapshot_of(event_id: str) -> str:
    """The snapshot made for an event."""
    return derived("snapshot", event_id)


def workorder_of(event_id: str) -> str:
    """The only workorder of an event."""
    return derived("workorder", event_id)


def output_of(work_order_id: str) -> str:
    """The only output bundle of a workorder."""
    return derived("output", work_order_id)


def run_of(work_order_id: str) -> str:
    """The only run record of a workorder."""
    return derived("run", work_order_id)


def session_of(work_order_id: str) -> str:
    """The session manifest a workorder leads to."""
    return derived("session", work_order_id)


def pause_after(work_order_id: str) -> str:
    """The pause state the gate leaves; its kind lets the next page leave it out."""
    return derived(PAGE, work_order_id)


def pause_for_deadline(objective_id: str, updated_at: datetime) -> str:
    """The pause state of an overdue objective: one as long as nobody touches it."""
    return derived("pause", "deadline", objective_id, updated_at.isoformat())


def pause_of_letter(dead_letter_id: int) -> str:
    """The pause state of a dead letter, by whose number it is known to be resolved or not."""
    return f"{LETTER}-{dead_letter_id}"


def pause_of_execution(execution_id: int) -> str:
    """The pause state of a run that timed out or asked for one."""
    return f"{RUN}-{execution_id}"
