"""docs/reference/rules.md names only tests that exist and run, and one for each rule."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from tests.gate import Selection
from tests.rules_ran import PAGE, RulesRan
from tests.surface.named_tests import ROOT, TEST, functions_in

NUMBERED = re.compile(r"^\| (\d+) \| (.+) \|$", re.M)
NAMED = sorted(set(TEST.findall(PAGE.read_text("utf-8"))))


@pytest.mark.parametrize(("path", "name"), NAMED, ids=[f"{path}::{name}" for path, name in NAMED])
def test_a_named_test_exists(path: str, name: str) -> None:
    assert (ROOT / path).is_file()
    assert name in functions_in(path)


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


def report(name: str, outcome: Literal["passed", "failed", "skipped"]) -> pytest.TestReport:
    return pytest.TestReport(name, (name, 1, name), {}, outcome, None, "call")


def test_a_named_test_that_did_not_run_and_pass_fails_the_whole_run() -> None:
    named = frozenset({"tests/a.py::test_one", "tests/a.py::test_two", "tests/a.py::test_three"})
    checker = RulesRan(named, Selection.ALL)
    checker.pytest_runtest_logreport(report("tests/a.py::test_one[sqlite]", "passed"))
    checker.pytest_runtest_logreport(report("tests/a.py::test_two[sqlite]", "failed"))
    assert checker.missing == ["tests/a.py::test_three", "tests/a.py::test_two"]
    assert RulesRan(named, Selection.PICKED).missing == []


def test_the_gate_answers_for_the_named_tests_it_collects() -> None:
    named = frozenset({"tests/a.py::test_one", "tests/a.py::test_two"})
    checker = RulesRan(named, Selection.GATE)
    for _process in range(2):
        checker.pytest_xdist_node_collection_finished(
            None, ["tests/a.py::test_one[sqlite]", "tests/a.py::test_three"]
        )
    assert checker.missing == ["tests/a.py::test_one"]
    checker.pytest_runtest_logreport(report("tests/a.py::test_one[sqlite]", "passed"))
    assert checker.missing == []


CONFTEST = """
from gate import Selection, selection_of
from rules_ran import RulesRan
def pytest_addoption(parser):
    parser.addoption("--all", action="store_true")
def pytest_configure(config):
    named = frozenset({'tests/test_a.py::test_one', 'tests/test_a.py::test_gone'})
    config.pluginmanager.register(RulesRan(named, selection_of(config)))
"""


def test_the_whole_run_is_checked(tmp_path: Path) -> None:
    """A real run of a suite whose rules name one test that is there and one that is not."""
    suite = tmp_path / "tests"
    suite.mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tests\npythonpath = .\n")
    (suite / "test_a.py").write_text("def test_one(): pass\n")
    (suite / "conftest.py").write_text(CONFTEST)
    for module in ("rules_ran.py", "gate.py"):
        text = (ROOT / "tests" / module).read_text("utf-8").replace("from tests.gate", "from gate")
        (tmp_path / module).write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    whole = subprocess.run([*command, "--all"], cwd=tmp_path, capture_output=True, text=True)
    assert whole.returncode == 1
    assert "RULE NOT SHOWN  tests/test_a.py::test_gone" in whole.stdout
    picked = subprocess.run([*command, "-k", "one"], cwd=tmp_path, capture_output=True, text=True)
    assert picked.returncode == 0
