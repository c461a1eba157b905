"""Processes that are measured: what they say, and that none is left behind."""

from __future__ import annotations

import os
import sys

import pytest

from benchmarks.comparison.processes import DriverFailed, driver, told_by

ECHO = """
import json, os, sys
print(json.dumps({"pid": os.getpid(), "options": json.loads(sys.argv[2])}), flush=True)
for line in sys.stdin:
    print(json.dumps({"heard": line.strip()}), flush=True)
print(json.dumps({"last": True}), flush=True)
"""
PYTHON = [sys.executable, "-c"]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_driver_hears_and_answers_until_nothing_more_is_wanted() -> None:
    with driver([*PYTHON, ECHO], "work", {"url": "somewhere"}) as running:
        said = running.hear()
        assert said["options"] == {"url": "somewhere"}
        running.send(7)
        assert running.hear() == {"heard": "7"}
        assert running.stop() == {"last": True}
    assert not is_alive(said["pid"])


def test_a_driver_does_not_outlive_an_interruption() -> None:
    with pytest.raises(KeyboardInterrupt), driver([*PYTHON, ECHO], "work", {}) as running:
        pid = running.hear()["pid"]
        raise KeyboardInterrupt
    assert not is_alive(pid)


def test_what_a_failed_driver_wrote_last_is_in_the_error() -> None:
    with pytest.raises(DriverFailed, match="no such table"):
        told_by([*PYTHON, "import sys; sys.exit('no such table')"], "work", {})
