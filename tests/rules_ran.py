"""Whether every test that the pages of rules and of stories name ran in this session and passed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.gate import Selection

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
PAGE = REFERENCE / "rules.md"
STORIES = REFERENCE / "stories.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py::\w+)`")


def named_tests(text: str) -> frozenset[str]:
    return frozenset(NAMED.findall(text))


class RulesRan:
    """After a run of every test, or of the gate, fails it for each named test that did not pass.

    A run of the gate answers for the named tests it collected; that every named test is collected
    by a run of all is shown by `tests/surface/test_selection.py`. A test that was skipped said why,
    and where nothing may be skipped it has failed for it.
    """

    def __init__(self, named: frozenset[str], selection: Selection) -> None:
        self._named = named
        self._waiting = set(named) if selection is Selection.ALL else set()
        self._collects = selection is Selection.GATE

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._collected([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: Sequence[str]) -> None:
        self._collected(ids)

    def _collected(self, ids: Sequence[str]) -> None:
        if self._collects and ids:
            self._collects = False  # each process of pytest-xdist collects the same
            self._waiting = set(self._named) & {one.partition("[")[0] for one in ids}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped or (report.when == "call" and report.passed):
            self._waiting.discard(report.nodeid.partition("[")[0])

    @property
    def missing(self) -> list[str]:
        return sorted(self._waiting)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.missing and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for one in self.missing:
            terminalreporter.write_line(f"RULE NOT SHOWN  {one} did not run and pass", red=True)
