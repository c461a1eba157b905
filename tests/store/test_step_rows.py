"""The steps of a run as they are stored with it."""

from __future__ import annotations

import json
from datetime import timedelta
from types import SimpleNamespace

import pytest

from headway.domain.execution import StepRun
from headway.store.step_rows import steps_from_json, steps_of, steps_to_json
from tests.store.factories import NOON

STEPS = (
    StepRun('say "hi" \\ ü', NOON, 0.25),
    StepRun("load", NOON + timedelta(microseconds=1), 1e-07),
    StepRun("open", NOON, None),
)


def test_steps_come_back_as_they_went_in() -> None:
    text = steps_to_json(STEPS)
    assert steps_from_json(text) == STEPS
    assert [one["name"] for one in json.loads(text)] == [one.name for one in STEPS]


@pytest.mark.parametrize(
    "text",
    ["{", "7", "[7]", "[{}]", '[{"name":"a","started_at":"soon","seconds":1}]', "[" * 100_000],
)
def test_what_somebody_has_edited_has_no_steps(text: str) -> None:
    assert steps_from_json(text) == ()


@pytest.mark.parametrize(
    ("steps", "running", "since", "shown"),
    [
        (None, None, None, []),
        (None, "load", NOON, ["load"]),
        (None, "load", None, []),
        ("[]", "load", NOON, []),
        (STEPS[:1], "load", NOON, [STEPS[0].name, "load"]),
        (STEPS[:2], "load", NOON, [STEPS[0].name, "load"]),
    ],
)
def test_the_step_on_record_as_running_comes_last_unless_it_has_ended(
    steps: object, running: str | None, since: object, shown: list[str]
) -> None:
    text = steps_to_json(steps) if isinstance(steps, tuple) else steps
    row = SimpleNamespace(steps=text, running_step=running, step_started_at=since)
    found = steps_of(row)
    assert [one.name for one in found] == shown
    if running is not None and text is None and since is not None:
        assert found == (StepRun("load", NOON),)
