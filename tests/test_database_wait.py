"""Waiting for a database that is away while a process starts: for how long, and what is told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from headway.observe import Event, Observer
from headway.patience import DatabaseWait, StoppedWaiting
from tests.builders import Recorder

REFUSED = OSError("connection to server at localhost failed: Connection refused")
STARTING = OSError("FATAL:  the database system is starting up")
ADDRESS = "postgresql://db/shop"


class Start:
    """A start that waits for its database, in a time of its own."""

    def __init__(self, unreached: float = 60.0) -> None:
        self.now = 0.0
        self.tried_at: list[float] = []
        self.slept: list[float] = []
        self.stop_at: float | None = None
        observer = Observer()
        self.events = Recorder(observer)
        self.wait = DatabaseWait(
            ADDRESS,
            observer,
            timedelta(seconds=unreached),
            is_stopping=lambda: self.stop_at is not None and self.now >= self.stop_at,
            clock=lambda: self.now,
            sleep=self._sleep,
        )

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += max(seconds, 0.001)  # else a rounding error would make it stand still

    def work(self, away_until: float, error: Exception = REFUSED) -> str:
        def attempt() -> str:
            self.tried_at.append(self.now)
            if self.now < away_until:
                raise error
            return "done"

        return self.wait(attempt)

    def told(self) -> list[Event]:
        return self.events.named("database.waiting")


def test_work_is_repeated_after_ever_longer_pauses_until_it_succeeds() -> None:
    start = Start()
    assert start.work(away_until=7.0) == "done"
    assert start.tried_at == pytest.approx([0.0, 0.1, 0.3, 0.7, 1.5, 3.1, 5.1, 7.1], abs=0.03)
    assert max(start.slept) == pytest.approx(0.1), "a stop is noticed at once"


def test_work_that_succeeds_at_once_waits_for_nothing() -> None:
    start = Start()
    assert start.work(away_until=0.0) == "done"
    assert (start.slept, start.events.events) == ([], [])


def test_a_server_that_was_never_reached_is_waited_for_so_long() -> None:
    start = Start(unreached=10.0)
    with pytest.raises(OSError, match="Connection refused"):
        start.work(away_until=1000.0)
    assert 10.0 <= start.now < 13.0


def answered(start: Start) -> None:
    """It is there."""
    start.work(away_until=0.0)


def starting(start: Start) -> None:
    """It has said that it starts."""
    start.work(away_until=1.0, error=STARTING)


@pytest.mark.parametrize("before", [answered, starting])
def test_a_server_that_has_answered_before_is_waited_for_without_limit(
    before: Callable[[Start], None],
) -> None:
    start = Start(unreached=10.0)
    before(start)
    assert start.work(away_until=start.now + 1000.0) == "done"


def test_a_server_that_says_that_it_starts_is_waited_for_without_limit() -> None:
    assert Start(unreached=10.0).work(away_until=1000.0, error=STARTING) == "done"


def test_each_piece_of_work_may_take_the_whole_patience() -> None:
    start = Start(unreached=10.0)
    with pytest.raises(OSError, match="refused"):
        start.work(away_until=1000.0)
    began = start.now
    assert start.work(away_until=began + 9.0) == "done"


def test_what_waiting_does_not_mend_is_raised_at_once() -> None:
    start = Start()
    with pytest.raises(OSError, match="no such role"):
        start.work(away_until=1.0, error=OSError("no such role"))
    assert (start.tried_at, start.events.events) == ([0.0], [])


def test_what_it_waits_for_is_told_once_a_minute() -> None:
    start = Start(unreached=1000.0)
    start.work(away_until=130.0)
    expected = {"database": ADDRESS, "reason": "Connection refused"}
    assert [one.fields for one in start.told()] == [expected] * 3


def test_a_stop_ends_the_wait() -> None:
    start = Start()
    start.stop_at = 4.0
    with pytest.raises(StoppedWaiting, match="stopped while waiting for the database"):
        start.work(away_until=1000.0)
    assert start.now == pytest.approx(4.0, abs=0.2)
