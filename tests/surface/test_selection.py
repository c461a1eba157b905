"""Every test function is run by the gate or by a run of everything, and so is each named one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.gate import COLLECTED, Selection, selection_of
from tests.surface.named_tests import ROOT, TEST, functions_in

LISTED = re.compile(r"^(tests/[^:\[]+\.py::\w+)", re.M)
DOCUMENTS = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
CI = (ROOT / ".ci" / "run", ROOT / ".ci" / "full", ROOT / "Makefile")
PATHS = re.compile(r"tests/[\w/{},.]+")


@pytest.fixture
def everything(request: pytest.FixtureRequest) -> frozenset[str]:
    """The test functions of a run of everything, by this run if it has collected them all."""
    known = request.config.stash[COLLECTED]
    return collected("--all") if selection_of(request.config) is Selection.PICKED else known[0]


@pytest.fixture
def gate(request: pytest.FixtureRequest) -> frozenset[str]:
    """The test functions of the gate."""
    known = request.config.stash[COLLECTED]
    return collected() if selection_of(request.config) is Selection.PICKED else known[1]


@cache
def collected(*options: str) -> frozenset[str]:
    """The test functions that pytest collects in a process of its own."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    return frozenset(LISTED.findall(done.stdout))


def written() -> Iterator[str]:
    """The test functions that stand in the files of tests/."""
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        path = file.relative_to(ROOT).as_posix()
        yield from (f"{path}::{name}" for name in functions_in(path))


def test_a_run_of_everything_collects_every_test_function(everything: frozenset[str]) -> None:
    assert set(written()) - everything == set()


def test_the_gate_is_a_part_of_everything(gate: frozenset[str], everything: frozenset[str]) -> None:
    assert gate < everything
    assert len(gate) > len(everything) / 2


@pytest.mark.full
def test_a_process_of_its_own_collects_the_same(
    gate: frozenset[str], everything: frozenset[str]
) -> None:
    assert (collected(), collected("--all")) == (gate, everything)


def test_every_named_test_runs_in_the_gate_or_in_a_run_of_everything(
    everything: frozenset[str],
) -> None:
    named = {
        "::".join(test) for page in DOCUMENTS for test in TEST.findall(page.read_text("utf-8"))
    }
    assert named, "no page names a test"
    assert named - everything == set()


def test_the_gate_runs_one_file_of_each_folder(
    gate: frozenset[str], everything: frozenset[str]
) -> None:
    """No folder of tests is left to the run of everything alone."""
    folders = {Path(one).parts[1] for one in everything}
    assert folders - {Path(one).parts[1] for one in gate} == set()


def test_the_durations_of_a_run_are_written(tmp_path: Path) -> None:
    file = tmp_path / "durations.json"
    test = "tests/domain/test_text.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    command += ["--durations-into", str(file)]
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, env=own)
    assert done.returncode == 0
    functions = json.loads(file.read_text("utf-8"))["functions"]
    assert set(functions) == {f"{test}::{name}" for name in functions_in(test)}
    assert all(one["seconds"] >= 0 and one["times"] >= 1 for one in functions.values())


def test_ci_names_only_tests_that_exist() -> None:
    for script in CI:
        for path in PATHS.findall(script.read_text("utf-8")):
            for one in braces(path.rstrip(".")):
                assert (ROOT / one).exists(), f"{script.name}: {one}"


def braces(path: str) -> list[str]:
    """The paths a shell makes of ``a/{b,c}.py``."""
    match = re.search(r"\{([^{}]*)\}", path)
    if match is None:
        return [path]
    return [path.replace(match[0], choice, 1) for choice in match[1].split(",")]
