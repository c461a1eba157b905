"""An hour of steady load leaves nothing behind: no rows, no memory, no connections, no files.

On a virtual clock; `python -m benchmarks.soak` is the same with real processes and real minutes.
"""

from __future__ import annotations

import doctest
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from benchmarks import _flatness
from benchmarks._flatness import grown
from headway.observe import Event
from headway.store.engine import Store
from tests.scenarios.soak import Soak

HOUR = 60
SHORT = 12

pytestmark = pytest.mark.timeout(600)  # of a machine that has much else to do


@pytest.fixture(autouse=True)
def no_records(caplog: pytest.LogCaptureFixture) -> None:
    """pytest keeps what is logged until the test ends, and a soak would find that out."""
    caplog.set_level(logging.CRITICAL + 1, logger="headway")


@pytest.fixture
def soak() -> Iterator[Callable[..., Soak]]:
    with ExitStack() as stack:

        def begin(url: str, **settings: Any) -> Soak:
            soak = Soak(url, **settings)
            stack.callback(soak.close)
            return soak

        yield begin


@pytest.mark.long
def test_an_hour_of_steady_load_leaves_everything_as_it_was(
    database_url: str, soak: Callable[..., Soak]
) -> None:
    hour = soak(database_url)
    hour.last(HOUR)

    assert grown(hour.samples) == []
    assert hour.happened["execution.completed"] > 20 * HOUR
    assert hour.happened["execution.failed"] > 3 * HOUR
    assert hour.happened["manifest.dead_lettered"] > HOUR / 2
    assert hour.happened["server.buried"] > HOUR / 2
    assert hour.samples[-1]["rows execution_history"] > 100, "what is not old yet"


def test_the_examples_of_the_judge_hold() -> None:
    assert doctest.testmod(_flatness).failed == 0


@pytest.mark.full
def test_rows_that_nobody_deletes_are_noticed(sqlite_url: str, soak: Callable[..., Soak]) -> None:
    forgetful = soak(sqlite_url)
    forgetful.last(SHORT, clean_up=False)

    assert "execution_history" in what_grew(forgetful)


@pytest.mark.full
def test_memory_and_connections_that_are_kept_are_noticed(
    postgres_url: str, soak: Callable[..., Soak]
) -> None:
    """By somebody who remembers all events, and connects anew with every dead letter."""
    leaky, remembered, opened = soak(postgres_url), [], ExitStack()

    def keep(event: Event) -> None:
        remembered.append(dict(event.fields))
        if event.name == "manifest.dead_lettered":
            other = Store(postgres_url)
            opened.callback(other.close)
            other.check()

    leaky.app.observer.subscribe(keep)
    with opened:
        leaky.last(SHORT)

    assert {"blocks", "connections", "files"} <= what_grew(leaky)
    assert "execution_history" not in what_grew(leaky)


def what_grew(soak: Soak) -> set[str]:
    """The words for it, without numbers."""
    return {line.partition(":")[0].removeprefix("rows ") for line in grown(soak.samples)}
