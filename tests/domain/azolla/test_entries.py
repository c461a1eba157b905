"""What people and peers enter, field by field: taken as it is meant, or refused in one line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from headway.domain.azolla.artifacts import (
    ArtifactType,
    CaptureBuffer,
    Event,
    EventType,
    Objective,
    ObjectiveStatus,
    ObjectiveType,
    PauseReason,
    PauseState,
)
from headway.domain.azolla.entries import (
    checked_count,
    checked_degree,
    checked_text,
    checked_word,
    standing,
)
from headway.domain.azolla.filters import filter_of
from headway.domain.azolla.words import DiazotrophType
from headway.errors import DefinitionError

NOON = datetime(2030, 1, 7, 12, tzinfo=UTC)


def refusal(check: Any, *values: Any) -> str:
    with pytest.raises(DefinitionError) as refused:
        check(*values)
    message = str(refused.value)
    assert "\n" not in message
    return message


def test_the_standing_objective_of_a_deployment() -> None:
    assert standing("a" * 201, "the warehouse", NOON) == Objective(
        objective_id="standing",
        azolla_id="a" * 200,
        title="the warehouse",
        acceptance_criteria="",
        objective_type=ObjectiveType.STANDING,
        status=ObjectiveStatus.IN_PROGRESS,
        importance=0,
        urgency=0,
        blocked_reason=None,
        blocked_on=(),
        metadata={},
        created_at=NOON,
        updated_at=NOON,
    )


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (" two words\n", " two words\n"),
        ("x" * 300, "x" * 300),
        ("\x1b" * 300, r"\x1b" * 300),
    ],
)
def test_a_text_is_kept_so_that_it_can_be_shown(text: str, kept: str) -> None:
    assert checked_text("title", text, 300, "clean up") == kept


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (None, "must be a text that says something; for example 'clean up'"),
        (" \n", "must be a text that says something; for example 'clean up'"),
        (
            "x" * 20_001,
            "must have at most 20,000 characters, not 20,001; for example 'clean up'",
        ),
        ("a\x00", "must not contain NUL (U+0000 at position 2); for example 'clean up'"),
    ],
)
def test_a_text_that_is_none_is_refused(value: Any, rule: str) -> None:
    message = refusal(checked_text, "title", value, 20_000, "clean up")
    assert message.startswith("title = ") and message.endswith(f": {rule}")


@pytest.mark.parametrize("value", [0, 4])
def test_a_degree_is_taken(value: int) -> None:
    assert checked_degree("urgency", value) == value


@pytest.mark.parametrize("value", [-1, 5, True, 2.0, "3", None])
def test_what_is_no_degree_is_refused(value: Any) -> None:
    rule = "must be a whole number from 0 to 4; for example 3"
    assert refusal(checked_degree, "urgency", value) == f"urgency = {value!r}: {rule}"


@pytest.mark.parametrize("value", [1, 1000])
def test_a_count_is_taken(value: int) -> None:
    assert checked_count("limit", value, 1000) == value


@pytest.mark.parametrize("value", [0, 1001, True, 2.0, "3", None])
def test_what_is_no_count_is_refused(value: Any) -> None:
    rule = "must be a whole number from 1 to 1000; for example 20"
    assert refusal(checked_count, "limit", value, 1000) == f"limit = {value!r}: {rule}"


@pytest.mark.parametrize("value", ["in-progress", "In_Progress", ObjectiveStatus.IN_PROGRESS])
def test_a_word_is_taken_however_it_is_written(value: Any) -> None:
    assert checked_word("status", value, ObjectiveStatus) is ObjectiveStatus.IN_PROGRESS


@pytest.mark.parametrize("value", ["open", "", 3, None])
def test_a_word_that_is_none_of_them_is_refused(value: Any) -> None:
    rule = "must be RUN_COMPLETE, GATE_FAILED or BUDGET_EXHAUSTED; for example 'RUN_COMPLETE'"
    assert refusal(checked_word, "reason", value, PauseReason) == f"reason = {value!r}: {rule}"


# --- what peers may ask for


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        (
            ArtifactType.PAUSE_STATE,
            {},
            {
                "limit": 200,
                "objective_id": None,
                "reason": None,
                "created_after": None,
                "unsettled": False,
            },
        ),
        (
            ArtifactType.PAUSE_STATE,
            {
                "limit": 1000,
                "objective_id": "o1",
                "reason": ["GATE_FAILED", "RUN_COMPLETE"],
                "created_after": "2030-01-07T12:00:00Z",
                "unsettled": True,
            },
            {
                "limit": 1000,
                "objective_id": ("o1",),
                "reason": (PauseReason.GATE_FAILED, PauseReason.RUN_COMPLETE),
                "created_after": NOON,
                "unsettled": True,
            },
        ),
        (
            ArtifactType.OBJECTIVE,
            {
                "limit": 1,
                "status": ["TODO"],
                "objective_type": "TICKET",
                "min_urgency": 4,
                "min_importance": 0,
                "updated_after": "2030-01-07T13:00:00+01:00",
            },
            {
                "limit": 1,
                "objective_id": None,
                "status": (ObjectiveStatus.TODO,),
                "objective_type": (ObjectiveType.TICKET,),
                "min_urgency": 4,
                "min_importance": 0,
                "updated_after": NOON,
            },
        ),
        (
            ArtifactType.BLOCKER_REF,
            {"blocker_id": ["b"] * 100, "kind": "USER_INPUT", "resolved": False},
            {
                "limit": 200,
                "blocker_id": ("b",) * 100,
                "kind": ("USER_INPUT",),
                "resolved": False,
            },
        ),
    ],
)
def test_a_filter_is_read(
    kind: ArtifactType, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert filter_of(kind, given).model_dump() == expected


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (ArtifactType.PAUSE_STATE, {"limit": 0}),
        (ArtifactType.PAUSE_STATE, {"limit": 1001}),
        (ArtifactType.PAUSE_STATE, {"limit": "5"}),
        (ArtifactType.PAUSE_STATE, {"limit": True}),
        (ArtifactType.PAUSE_STATE, {"unsettled": 1}),
        (ArtifactType.PAUSE_STATE, {"reason": []}),
        (ArtifactType.PAUSE_STATE, {"reason": "LATE"}),
        (ArtifactType.PAUSE_STATE, {"objective_id": {"not": "o1"}}),
        (ArtifactType.PAUSE_STATE, {"objective_id": ["x"] * 101}),
        (ArtifactType.PAUSE_STATE, {"objective_id": ""}),
        (ArtifactType.PAUSE_STATE, {"created_after": "2030-01-07T12:00:00"}),
        (ArtifactType.OBJECTIVE, {"min_urgency": 5}),
        (ArtifactType.OBJECTIVE, {"min_urgency": "3"}),
        (ArtifactType.OBJECTIVE, {"min_importance": -1}),
        (ArtifactType.OBJECTIVE, {"min_importance": True}),
        (ArtifactType.BLOCKER_REF, {"resolved": "no"}),
    ],
)
def test_what_a_filter_may_not_say(kind: ArtifactType, given: dict[str, Any]) -> None:
    [key] = given
    message = refusal(filter_of, kind, given)
    assert message.startswith(f"filter.{key} = ")
    assert message.endswith("; see docs/reference/membrane.md")


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        (
            ArtifactType.OBJECTIVE,
            "limit, objective_id, status, objective_type, min_urgency, min_importance, "
            "updated_after",
        ),
        (ArtifactType.BLOCKER_REF, "limit, blocker_id, kind, resolved"),
    ],
)
def test_an_unknown_key_is_answered_with_those_there_are(kind: ArtifactType, keys: str) -> None:
    low = refusal(filter_of, kind, {"limit": 0})
    rule = "Input should be greater than or equal to 1"
    assert low == f"filter.limit = 0: {rule}; see docs/reference/membrane.md"
    message = refusal(filter_of, kind, {"colour": "red" * 100})
    shown = repr("red" * 100)[:80]
    assert message == f"filter.colour = {shown}: is no key for {kind}; use one of {keys}"


# --- artifacts


def test_artifacts_are_strict_and_frozen() -> None:
    event = Event(
        event_id="e1",
        type=EventType.TICKET_READY,
        resource_id="r",
        azolla_id="here",
        created_at=NOON,
    )
    assert not event.processed
    with pytest.raises(ValidationError):
        event.processed = True
    fields = event.model_dump()
    for changes in ({"more": 1}, {"event_id": ""}, {"event_id": "x" * 201}, {"type": "LATE"}):
        with pytest.raises(ValidationError):
            Event.model_validate(fields | changes)
    with pytest.raises(ValidationError):
        Event.model_validate(fields | {"created_at": NOON.replace(tzinfo=None)})


@pytest.mark.parametrize("actions", [(), ("a", "b", "c", "d"), ("a", "")])
def test_a_pause_state_names_one_to_three_actions(actions: tuple[str, ...]) -> None:
    fields: dict[str, Any] = {
        "objective_id": "o1",
        "azolla_id": "here",
        "reason": PauseReason.GATE_FAILED,
        "created_at": NOON,
    }
    assert PauseState(prioritized_actions=("a", "b", "c"), **fields)
    with pytest.raises(ValidationError):
        PauseState(prioritized_actions=actions, **fields)


def test_a_capture_waits_at_first() -> None:
    capture = CaptureBuffer(
        capture_id="c1",
        azolla_id="here",
        raw_content="look at it",
        source_label="ada",
        created_at=NOON,
        updated_at=NOON,
    )
    assert capture.status == "PENDING"


def test_words_are_spelled_as_the_protocol_spells_them() -> None:
    assert [str(one) for one in DiazotrophType] == [
        "PATCH_DIAZOTROPH",
        "TRIAGE_DIAZOTROPH",
        "MANIFEST_BUILDER_DIAZOTROPH",
    ]
