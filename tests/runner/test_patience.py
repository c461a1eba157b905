"""A run that needs an answer of a database that is away: how long it waits, and what ends that."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from headway.errors import JobCancelled
from headway.observe import Observer
from headway.runner import patience as module
from headway.runner.cancellation import Cancellation, StopReason
from headway.runner.patience import Patience, Undecided
from tests.builders import Recorder

AWAY = OperationalError("SELECT 1", {}, Exception("gone"))
WAYS = ["in a thread", "in the loop"]


class Waiting:
    """A run that waits, in a time of its own, for an attempt that fails so many times."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.tried_at: list[float] = []
        self.handle = Cancellation()
        self.observer = Observer()
        self.events = Recorder(self.observer)
        self.during: Callable[[], None] = lambda: None
        monkeypatch.setattr(module, "time", self)
        monkeypatch.setattr("asyncio.sleep", self._sleep)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.during()
        self.now += max(seconds, 0.001)

    async def _sleep(self, seconds: float) -> None:
        self.sleep(seconds)

    def answer(
        self, way: str, failing: int, error: Exception = AWAY, **options: Any
    ) -> list[float]:
        """When it tried, in seconds since the first attempt."""
        began = self.now
        patience = Patience(self.handle, self.observer, **options)

        def attempt() -> int:
            self.tried_at.append(self.now - began)
            if len(self.tried_at) <= failing:
                raise error
            return 7

        async def attempt_later() -> int:
            return attempt()

        if way == "in a thread":
            assert patience.call(attempt) == 7
        else:
            assert run(patience.wait_for(attempt_later)) == 7
        return self.tried_at


def run(waiting: Any) -> Any:
    """Without an event loop: nothing here really waits."""
    assert inspect.iscoroutine(waiting)
    try:
        waiting.send(None)
    except StopIteration as finished:
        return finished.value
    raise AssertionError("it waits for something")


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Waiting]:
    with monkeypatch.context() as patched:
        yield Waiting(patched)


@pytest.mark.parametrize("way", WAYS)
def test_it_tries_again_after_ever_longer_pauses_until_there_is_an_answer(
    waiting: Waiting, way: str
) -> None:
    tried_at = waiting.answer(way, failing=6)
    assert tried_at == pytest.approx([0.0, 0.2, 0.6, 1.4, 3.0, 6.2, 10.2], abs=0.1)
    told = [one.fields for one in waiting.events.named("loop.failed")]
    assert told == [{"loop": "worker", "error": "OperationalError: gone"}] * 6


@pytest.mark.parametrize("way", WAYS)
def test_what_is_not_decided_yet_is_waited_for_as_well(waiting: Waiting, way: str) -> None:
    assert len(waiting.answer(way, failing=2, error=Undecided("not yet"))) == 3


@pytest.mark.parametrize("way", WAYS)
def test_any_other_error_is_raised_at_once(waiting: Waiting, way: str) -> None:
    with pytest.raises(ValueError, match="no rows"):
        waiting.answer(way, failing=1, error=ValueError("no rows"))
    assert (waiting.tried_at, waiting.events.events) == ([0.0], [])


@pytest.mark.parametrize("way", WAYS)
def test_a_run_that_is_asked_to_stop_waits_no_longer(waiting: Waiting, way: str) -> None:
    waiting.during = lambda: waiting.handle.request(StopReason.TIMEOUT)
    with pytest.raises(JobCancelled, match="stopped while the database was away") as stopped:
        waiting.answer(way, failing=9)
    assert stopped.value.__cause__ is AWAY
    assert waiting.handle.reason is StopReason.TIMEOUT
    assert waiting.now < 100.2, "within the pause"


@pytest.mark.parametrize("way", WAYS)
def test_a_process_that_stops_has_the_run_handed_back(waiting: Waiting, way: str) -> None:
    with pytest.raises(JobCancelled):
        waiting.answer(way, failing=9, gives_up=lambda: waiting.now > 101.0)
    assert waiting.handle.reason is StopReason.SHUTDOWN
    assert waiting.now < 101.2


@pytest.mark.parametrize("way", WAYS)
def test_where_nobody_can_ask_it_to_stop_it_waits_no_longer_than_it_may(
    waiting: Waiting, way: str
) -> None:
    with pytest.raises(OperationalError) as raised:
        waiting.answer(way, failing=99, longest=3.0)
    assert raised.value is AWAY
    assert waiting.tried_at == pytest.approx([0.0, 0.2, 0.6, 1.4, 3.0], abs=0.1)
