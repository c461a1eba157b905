"""docs/reference/stories.md lists all fifty stories, and the tests it names carry their numbers."""

from __future__ import annotations

import ast
import re

import pytest

from tests.rules_ran import STORIES
from tests.surface.named_tests import ROOT, TEST, functions_in, marks_of

PAGE = STORIES.read_text("utf-8")
NUMBERED = re.compile(r"^\| (\d+) \| (.+) \| (.+) \|$", re.M)
SHOWN_BY = {int(number): text for number, _, text in NUMBERED.findall(PAGE)}
NAMED = sorted(
    (number, path, name) for number, text in SHOWN_BY.items() for path, name in TEST.findall(text)
)
AT_LEAST = 40


def numbers_of(test: ast.FunctionDef) -> set[int]:
    """The stories a test says it shows."""
    told = [ast.literal_eval(one) for mark in marks_of(test, "story") for one in mark.args]
    assert all(type(number) is int for number in told), test.name
    return set(told)


@pytest.mark.parametrize(("number", "path", "name"), NAMED)
def test_a_named_test_exists_and_carries_the_number(number: int, path: str, name: str) -> None:
    assert (ROOT / path).is_file()
    assert name in functions_in(path)
    assert number in numbers_of(functions_in(path)[name])


def test_every_number_a_test_carries_is_on_the_page() -> None:
    carried = {
        (number, str(path.relative_to(ROOT)), name)
        for path in (ROOT / "tests").rglob("test_*.py")
        for name, test in functions_in(str(path.relative_to(ROOT))).items()
        for number in numbers_of(test)
    }
    assert carried == set(NAMED)


def test_all_fifty_are_listed_and_each_is_shown_or_says_why_not() -> None:
    assert list(SHOWN_BY) == list(range(1, 51))
    bare = [text for text in SHOWN_BY.values() if not TEST.search(text)]
    assert all(text.startswith("not shown: ") for text in bare)


def test_at_least_forty_are_shown() -> None:
    assert len({number for number, _, _ in NAMED}) >= AT_LEAST


def test_nothing_is_named_that_does_not_look_like_a_test() -> None:
    assert len(re.findall(r"tests/\S+::", PAGE)) == len(TEST.findall(PAGE))
