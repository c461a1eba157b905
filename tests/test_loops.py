"""A loop repeats, sleeps, wakes and survives; it ends only when it is told to."""

import threading
from collections.abc import Callable

import pytest

from headway import loops
from headway.loops import Loop, Rest
from headway.observe import Observer
from tests.builders import PATIENCE, Recorder

HOUR = 3600.0


class Passes:
    """Something to repeat: counts its passes and does what it is told in each."""

    def __init__(self, act: Callable[[int], float | Rest]) -> None:
        self._act = act
        self._done = threading.Semaphore(0)
        self.count = 0

    def __call__(self) -> float | Rest:
        self.count += 1
        try:
            return self._act(self.count)
        finally:
            self._done.release()

    def happened(self, count: int = 1) -> None:
        for _ in range(count):
            assert self._done.acquire(timeout=PATIENCE)

    def none_follows(self) -> bool:
        """Whether there is no pass for a moment, which is longer than a loop takes for one."""
        return not self._done.acquire(timeout=0.05)


def loop_over(act: Callable[[int], float | Rest]) -> tuple[Loop, Passes, Recorder]:
    observer = Observer()
    passes = Passes(act)
    return Loop("manager", passes, observer), passes, Recorder(observer)


def test_it_runs_at_once_then_pauses_as_long_as_it_is_told() -> None:
    loop, passes, _ = loop_over(lambda count: HOUR)
    loop.start()
    passes.happened()
    loop.stop()

    assert passes.count == 1


def test_a_pause_of_0_goes_on_at_once() -> None:
    loop, passes, _ = loop_over(lambda count: 0.0 if count < 100 else HOUR)
    loop.start()
    passes.happened(100)
    loop.stop()

    assert passes.count == 100


def test_a_short_pause_ends_by_itself() -> None:
    loop, passes, _ = loop_over(lambda count: 0.001)
    loop.start()
    passes.happened(5)
    loop.stop()


@pytest.mark.parametrize(
    "pause", [HOUR, pytest.param(Rest(earliest=HOUR, deaf=0.001), id="once it is deaf no more")]
)
def test_waking_ends_the_pause(pause: float | Rest) -> None:
    loop, passes, _ = loop_over(lambda count: pause)
    loop.start()
    for _ in range(3):
        passes.happened()
        loop.wake()
    passes.happened()
    loop.stop()

    assert passes.count == 4


def test_a_wake_up_during_a_pass_is_not_lost() -> None:
    loop, passes, _ = loop_over(lambda count: wake_once(count))

    def wake_once(count: int) -> float:
        if count == 1:
            loop.wake()
        return HOUR

    loop.start()
    passes.happened(2)
    loop.stop()


@pytest.mark.story(7)
def test_an_error_is_reported_and_tried_again() -> None:
    def fail_twice(count: int) -> float:
        if count <= 2:
            raise ConnectionError("the database is away")
        return HOUR

    loop, passes, seen = loop_over(fail_twice)
    loop.start()
    passes.happened(3)
    loop.stop()

    failures = seen.named("loop.failed", loop="manager")
    assert len(failures) == 2 and "the database is away" in failures[0].fields["error"]


def test_the_pause_after_errors_grows_up_to_a_limit_and_starts_anew_after_a_success() -> None:
    def fail_but(count: int) -> float:
        if count == 9:
            return HOUR
        raise ConnectionError

    loop, _, _ = loop_over(fail_but)

    pauses = [loop._pass() for _ in range(10)]

    assert pauses == [0.5, 1, 2, 4, 4, 4, 4, 4, HOUR, 0.5]


@pytest.mark.story(4)
def test_an_outage_of_any_length_is_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    """2**1024 is beyond any float: a loop must not end after some hours without a database."""
    monkeypatch.setattr(loops, "LONGEST_PAUSE", 0.0)

    def fail_long(count: int) -> float:
        if count <= 3000:
            raise ConnectionError
        return HOUR

    loop, passes, _ = loop_over(fail_long)
    loop.start()
    passes.happened(3001)
    loop.stop()


def test_a_stop_during_a_pass_waits_for_its_end() -> None:
    inside, leave = threading.Event(), threading.Event()

    def stay(count: int) -> float:
        inside.set()
        leave.wait(PATIENCE)
        return 0.0

    loop, passes, _ = loop_over(stay)
    loop.start()
    assert inside.wait(PATIENCE)
    loop.request_stop()
    leave.set()
    loop.stop()

    assert passes.count == 1


def test_stopping_one_that_never_started_is_fine() -> None:
    loop, passes, _ = loop_over(lambda count: HOUR)
    loop.stop()

    assert passes.count == 0


def test_an_offer_is_taken_once_the_loop_has_rested() -> None:
    loop, passes, _ = loop_over(lambda count: Rest(earliest=0.001 if count < 4 else HOUR))
    loop.start()
    for _ in range(3):
        passes.happened()
        loop.offer()
    passes.happened()
    loop.offer()
    assert passes.none_follows(), "too soon: it rests for an hour"
    loop.stop()

    assert passes.count == 4


def test_without_an_offer_it_sleeps_until_something_is_due() -> None:
    rests = {1: Rest(earliest=0.001, due=0.01), 2: Rest(earliest=HOUR, due=0.001)}
    loop, passes, _ = loop_over(lambda count: rests.get(count, Rest(earliest=0.001)))
    loop.start()
    passes.happened(3)
    loop.wake()
    passes.happened()
    loop.stop()

    assert passes.count == 4


def test_a_deaf_loop_hears_only_that_it_is_to_stop() -> None:
    loop, passes, _ = loop_over(lambda count: Rest(earliest=0.0, deaf=HOUR))
    loop.start()
    passes.happened()
    for _ in range(100):
        loop.wake()
        loop.offer()
    assert passes.none_follows()
    loop.stop()

    assert passes.count == 1


def test_an_offer_is_taken_once() -> None:
    loop, passes, _ = loop_over(lambda count: Rest(earliest=0.0))
    loop.start()
    passes.happened()
    loop.offer()
    passes.happened()
    assert passes.none_follows()
    loop.stop()


@pytest.mark.parametrize("call", [Loop.wake, Loop.offer])
def test_a_loop_that_begins_later_begins_sooner_when_there_is_something(
    call: Callable[[Loop], None],
) -> None:
    passes = Passes(lambda count: HOUR)
    loop = Loop("manager", passes, Observer(), after=HOUR)
    loop.start()
    assert passes.none_follows()
    call(loop)
    passes.happened()
    loop.stop()

    assert passes.count == 1


def test_a_loop_that_begins_later_begins_by_itself() -> None:
    passes = Passes(lambda count: HOUR)
    loop = Loop("manager", passes, Observer(), after=0.01)
    loop.start()
    passes.happened()
    loop.stop()
