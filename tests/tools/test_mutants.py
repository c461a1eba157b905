"""The list of planted faults fits the source, and the tool that plants them judges rightly."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tools.mutants import (
    LIST,
    ROOT,
    Fault,
    Verdict,
    end_programs_below,
    judge_all,
    main,
    picked,
    read_faults,
    why_not_plantable,
)

SAMPLE = read_faults(file="tools/mutants_sample.toml")
FAULTS = [*read_faults(), *SAMPLE]
SOUND = "def double(number: int) -> int:\n    return number + number\n"
TESTS = """
import subprocess, sys
from headway.doubling import double

def test_of_nothing():
    assert double(0) == 0

def test_of_three():
    code = "from headway.doubling import double; print(double(3))"
    assert subprocess.check_output([sys.executable, "-c", code]) == b"6\\n"
"""
SEEN = Fault("tripled", "src/headway/doubling.py", "number + number", "number * 3", ("tests",))


@pytest.mark.parametrize("fault", FAULTS, ids=[one.name for one in FAULTS])
def test_a_fault_of_the_list_applies_to_the_source(fault: Fault) -> None:
    assert why_not_plantable(fault) is None


@pytest.mark.parametrize("fault", FAULTS, ids=[one.name for one in FAULTS])
def test_the_tests_of_a_fault_exist(fault: Fault) -> None:
    assert [one for one in fault.tests if not (ROOT / one).exists()] == []
    assert fault.seen_by, "a fault is in the list together with the test that sees it"
    file, _, test = fault.seen_by.partition("::")
    assert re.search(rf"^def {re.escape(test)}\(", (ROOT / file).read_text("utf-8"), re.MULTILINE)


def test_no_two_faults_have_the_same_name() -> None:
    assert len({one.name for one in FAULTS}) == len(FAULTS)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A package of one module, and its tests."""
    root = tmp_path / "checkout"
    for file, text in (
        ("src/headway/__init__.py", ""),
        ("src/headway/doubling.py", SOUND),
        ("tests/test_doubling.py", TESTS),
        ("pyproject.toml", "[tool.pytest.ini_options]\n"),
    ):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)
    return root


def test_the_tool_tells_which_test_sees_a_fault_and_which_fault_none_sees(checkout: Path) -> None:
    unseen = replace(SEEN, name="the other way round", new="2 * number")
    gone = replace(SEEN, name="gone", old="number - number")
    nowhere = replace(SEEN, name="without a test", seen_by="tests/test_doubling.py::test_of_four")

    judged = list(judge_all([SEEN, unseen, gone, nowhere], checkout, workers=2))

    assert [one.verdict for one in judged] == [
        Verdict.SEEN,
        Verdict.NOT_SEEN,
        Verdict.DOES_NOT_APPLY,
        Verdict.NO_TESTS,
    ]
    assert judged[0].detail == "tests/test_doubling.py::test_of_three", "in a process of its own"
    assert judged[2].detail == "its old text occurs 0 times in src/headway/doubling.py"
    assert (checkout / SEEN.file).read_text() == SOUND, "nothing is planted in the checkout itself"


def test_tests_that_do_not_end_are_given_up(checkout: Path) -> None:
    endless = replace(SEEN, new="number + double(number) if __import__('time').sleep(60) else 0")
    [judged] = judge_all([endless], checkout, workers=1, seconds=3.0)
    assert judged.verdict is Verdict.OUT_OF_TIME


def test_programs_that_a_killed_run_leaves_behind_are_ended(tmp_path: Path) -> None:
    python = tmp_path / "environment" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    waiting = ["-c", "input()"]
    with (
        subprocess.Popen([python, *waiting], stdin=subprocess.PIPE) as left,
        subprocess.Popen([sys.executable, *waiting], stdin=subprocess.PIPE) as other,
    ):
        end_programs_below(tmp_path / "environment")
        assert left.wait() == -signal.SIGKILL
        other.communicate(b"\n")
    assert other.returncode == 0


@pytest.mark.parametrize(
    ("new", "status", "summary"),
    [("number * 3", 0, "1 of 1 faults seen"), ("2 * number", 1, "0 of 1 faults seen")],
)
def test_the_command_fails_if_a_fault_is_not_seen(
    checkout: Path, capsys: pytest.CaptureFixture[str], new: str, status: int, summary: str
) -> None:
    (checkout / LIST).parent.mkdir()
    (checkout / LIST).write_text(
        f"[[fault]]\nname = 'one'\nfile = '{SEEN.file}'\nold = '{SEEN.old}'\nnew = '{new}'\n"
        "tests = ['tests/test_doubling.py']\n"
    )
    assert main([], checkout) == status
    assert capsys.readouterr().out.splitlines()[-1] == summary


def test_a_test_that_fails_without_any_fault_is_told_first(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "tests" / "test_doubling.py").write_text("def test_of_three():\n    assert False\n")
    (checkout / LIST).parent.mkdir()
    (checkout / LIST).write_text(
        f"[[fault]]\nname = 'one'\nfile = '{SEEN.file}'\nold = '{SEEN.old}'\nnew = '0'\n"
        "tests = []\nseen_by = 'tests/test_doubling.py::test_of_three'\n"
    )
    assert main([], checkout) == 2
    assert "test_of_three fails without any fault" in capsys.readouterr().err


def test_faults_of_another_list_are_planted(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "sample.toml").write_text(
        f"[[fault]]\nname = 'of the sample'\nfile = '{SEEN.file}'\nold = '{SEEN.old}'\n"
        "new = 'number * 3'\ntests = ['tests/test_doubling.py']\n"
    )
    assert main(["--faults", "sample.toml"], checkout) == 0
    assert capsys.readouterr().out.startswith("of the sample: seen by tests/test_doubling.py")


def test_a_long_list_is_gone_on_with(capsys: pytest.CaptureFixture[str]) -> None:
    known = [fault.name for fault in read_faults()]
    assert main(["--list", "--skip", "3"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [name for name in known if any(one.startswith(f"{name}  ") for one in listed)] == known[
        3:
    ]


def test_faults_are_picked_by_name_and_by_room() -> None:
    other = replace(SEEN, name="halved", file="src/headway/store/halving.py")
    assert picked([SEEN, other], ["alv"], []) == [other]
    assert picked([SEEN, other], [], ["store"]) == [other]
    assert picked([SEEN, other], ["trip"], ["store"]) == []
