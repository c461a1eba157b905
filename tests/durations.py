"""The time each test function takes in a run, as a file: `pytest --all --durations-into FILE`."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest


class Durations:
    """Adds up the seconds of each test function: fixtures, body, and all of its parameters."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._times: defaultdict[str, int] = defaultdict(int)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        function = report.nodeid.partition("[")[0]
        self._seconds[function] += report.duration
        self._times[function] += report.when == "call"

    def pytest_sessionfinish(self) -> None:
        document = {
            "processors": os.cpu_count(),
            "seconds": round(sum(self._seconds.values()), 1),
            "functions": {
                function: {"seconds": round(seconds, 2), "times": self._times[function]}
                for function, seconds in sorted(self._seconds.items())
            },
        }
        self._file.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
