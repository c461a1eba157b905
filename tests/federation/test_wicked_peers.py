"""A process that asks peers which hang, trickle, redirect or flood ends all the same."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.federation.running import MOST_MEMORY, write_app
from tests.federation.sites import KEY, OWN, READER, write_registry
from tests.federation.wicked import (
    Deed,
    answers_another_request,
    hangs,
    peer_that,
    redirects,
    seconds_since,
    sends_a_gigabyte,
    sends_wrong_json,
    signs_with_another_key,
    trickles_headers,
    trickles_the_body,
)
from tests.surface.command_line import environment

# As `python -m headway`, and then what memory it had at most. Its parent cannot know: what that one
# is told of a child (ru_maxrss) begins with the parent's own size.
TELLING_ITS_PEAK = """
import atexit, re, runpy, sys
from pathlib import Path

def tell():
    status = Path("/proc/self/status").read_text()
    Path("peak").write_text(re.search(r"VmHWM:\\s+(\\d+) kB", status).group(1))

atexit.register(tell)
runpy.run_module("headway", run_name="__main__", alter_sys=True)
"""
# The peer has 5 seconds of the ten minutes it would take; the rest is for a slow machine.
BOUND = 90.0

WICKED = (
    hangs,
    trickles_headers,
    trickles_the_body,
    redirects,
    sends_a_gigabyte,
    sends_wrong_json,
    signs_with_another_key,
    answers_another_request,
)


@pytest.mark.full
@pytest.mark.parametrize("deed", WICKED, ids=lambda deed: deed.__name__)
def test_a_process_that_asks_a_wicked_peer_ends_in_time_and_memory(
    tmp_path: Path, deed: Deed
) -> None:
    write_app(tmp_path, f"sqlite:///{tmp_path / 'other.db'}")
    with peer_that(deed) as peer:
        write_registry(tmp_path, READER, urls={OWN: peer.url}, keys={OWN: [KEY]})
        begun = time.monotonic()
        command = ["azolla", "query", "hello:hw", OWN, "pause_state", "--json"]
        process = subprocess.run(
            [sys.executable, "-c", TELLING_ITS_PEAK, *command],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        out, errors = process.stdout, process.stderr
    assert process.returncode == 1
    assert json.loads(out)["response"]["status"] == "TARGET_UNAVAILABLE"
    assert json.loads(out)["response"]["results"] == []
    assert errors.count("\n") == 1
    assert seconds_since(begun) < BOUND
    assert int((tmp_path / "peak").read_text()) < MOST_MEMORY
    assert peer.visits[0].sent < 64 * 1024 * 1024
