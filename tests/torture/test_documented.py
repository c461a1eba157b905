"""The guide names every invariant and every mutation there is."""

from __future__ import annotations

import re
from pathlib import Path

from headway.torture.invariants import INVARIANTS
from headway.torture.mutations import MUTATIONS

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "chaos.md").read_text(encoding="utf-8")


def test_the_guide_names_what_must_hold_and_what_can_be_broken() -> None:
    named = {name for row in GUIDE.splitlines() if row[:1] == "|" for name in named_in(row)}
    assert named == {check.__name__ for check in INVARIANTS} | MUTATIONS.keys()


def named_in(row: str) -> list[str]:
    return re.findall(r"`([a-z_]+)`", row)
