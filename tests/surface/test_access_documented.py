"""docs/guides/access.md and the code name the same actions and scopes."""

from __future__ import annotations

import re
from pathlib import Path

from headway.domain.access import GIVEN
from headway.domain.actions import Action
from tests.operations import OPERATIONS

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "access.md").read_text("utf-8")
WITHOUT_AN_OPERATION = {"token.create", "token.revoke", "session.login", "session.logout", "denied"}


def test_every_action_is_listed_once() -> None:
    listed = re.findall(r"^\| `([a-z_.]+)` \|[^|]*\| (?:`[a-z]+`|none) \|$", PAGE, re.M)
    assert sorted(listed) == sorted(Action)


def test_every_scope_is_explained() -> None:
    explained = re.findall(r"^\| `([a-z]+)` \| [^|]*\|$", PAGE.partition("## Tokens")[0], re.M)
    assert explained == list(GIVEN)


def test_every_action_of_an_operator_is_tried() -> None:
    assert {one.action for one in OPERATIONS.values()} == set(Action) - WITHOUT_AN_OPERATION
