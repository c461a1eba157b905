"""The fields that docs/reference/cli.md promises are those that commands print."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from headway.domain import views
from headway.domain.execution import Execution, Failure
from headway.domain.preview import ComingRun

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
PRINTED = {
    "A manifest": views.ManifestOverview,
    "A manifest in detail": views.ManifestDetail,
    "Its `definition`": views.ManifestDefinition,
    "A parent or child": views.EdgeView,
    "One of `next_runs`": ComingRun,
    "A group": views.GroupOverview,
    "A group in detail": views.GroupDetail,
    "An execution": views.ExecutionOverview,
    "An execution in detail": views.ExecutionDetail,
    "Its `execution`": Execution,
    "The `failure` there": Failure,
    "A step": views.StepRun,
    "An entry": views.EntryOverview,
    "A dead letter": views.DeadLetterOverview,
    "A dead letter in detail": views.DeadLetterDetail,
    "A server": views.ServerOverview,
    "An audit record": views.AuditRecord,
}


def documented() -> dict[str, list[str]]:
    section = PAGE.read_text("utf-8").partition("## JSON\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (`.+`) \|$", section, re.M)
    return {what: re.findall(r"`(\w+)`", named) for what, named in rows}


def test_everything_printed_is_documented_and_nothing_else() -> None:
    assert set(documented()) == set(PRINTED)


@pytest.mark.parametrize(("what", "kind"), PRINTED.items(), ids=PRINTED)
def test_every_field_is_documented(what: str, kind: Any) -> None:
    names = [one.name for one in fields(kind)] if is_dataclass(kind) else list(kind._fields)

    assert documented()[what] == names
