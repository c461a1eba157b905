"""Whether every test that the pages of rules and of stories name ran in this session and passed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
PAGE = REFERENCE / "rules.md"
STORIES = REFERENCE / "stories.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py::\w+)`")


def named_tests(text: str) -> frozenset[str]:
    return frozenset(NAMED.findall(text))


class RulesRan:
    """Notes what ran; after a run of the whole suite, fails it for each named test that did not.

    A test that was skipped said why, and where nothing may be skipped it has failed for it.
    """

    def __init__(self, named: frozenset[str], whole: bool) -> None:
        self._waiting = set(named) if whole else set()

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


def is_whole(config: pytest.Config) -> bool:
    """Whether nobody has picked some of the tests."""
    picked = config.option.keyword or config.option.markexpr or config.option.collectonly
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not picked
