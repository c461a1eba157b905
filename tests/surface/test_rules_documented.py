"""docs/reference/rules.md names only tests that exist, and one for each rule."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "rules.md"
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
NUMBERED = re.compile(r"^\| (\d+) \| (.+) \|$", re.M)
NAMED = sorted(set(TEST.findall(PAGE.read_text("utf-8"))))


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


@pytest.mark.parametrize(("path", "name"), NAMED, ids=[f"{path}::{name}" for path, name in NAMED])
def test_a_named_test_exists(path: str, name: str) -> None:
    assert (ROOT / path).is_file()
    assert name in names_in(path)


def test_every_rule_is_shown_or_says_why_not() -> None:
    rules = NUMBERED.findall(PAGE.read_text("utf-8"))
    assert [int(number) for number, _ in rules] == list(range(1, len(rules) + 1))
    bare = [number for number, text in rules if not TEST.search(text)]
    assert all(
        dict(rules)[number].rpartition("| ")[2].startswith("not shown yet: ") for number in bare
    )


def test_nothing_is_named_that_does_not_look_like_a_test() -> None:
    assert len(re.findall(r"tests/\S+::", PAGE.read_text("utf-8"))) == len(
        TEST.findall(PAGE.read_text("utf-8"))
    )
