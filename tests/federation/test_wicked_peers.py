"""A process that asks peers which hang, trickle, redirect or flood ends all the same."""

from __future__ import annotations

import json
import os
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
from tests.surface.command_line import start

# The peer has 5 seconds; the rest is for a slow machine to start Python.
BOUND = 20.0

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


@pytest.mark.parametrize("deed", WICKED, ids=lambda deed: deed.__name__)
def test_a_process_that_asks_a_wicked_peer_ends_in_time_and_memory(
    tmp_path: Path, deed: Deed
) -> None:
    write_app(tmp_path, f"sqlite:///{tmp_path / 'other.db'}")
    with peer_that(deed) as peer:
        write_registry(tmp_path, READER, urls={OWN: peer.url}, keys={OWN: [KEY]})
        begun = time.monotonic()
        process = start(tmp_path, "azolla", "query", "hello:hw", OWN, "pause_state", "--json")
        assert process.stdout is not None
        assert process.stderr is not None
        out, errors = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stdout.close()
        process.stderr.close()
    assert process.returncode == 1
    assert json.loads(out)["response"]["status"] == "TARGET_UNAVAILABLE"
    assert json.loads(out)["response"]["results"] == []
    assert errors.count("\n") == 1
    assert seconds_since(begun) < BOUND
    assert usage.ru_maxrss < MOST_MEMORY
    assert peer.visits[0].sent < 64 * 1024 * 1024
