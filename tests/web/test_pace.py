"""How often one sender may try: what is at once, what comes back with time, and for how many."""

from __future__ import annotations

import pytest

from headway.web.security import pace
from headway.web.security.pace import Pace


class Seconds:
    """A monotonic clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


def test_each_second_gives_back_its_share(seconds: Seconds) -> None:
    pace = Pace(at_once=2, per_second=0.5, clock=seconds)
    assert [pace.wait("ada", take=1) for _ in range(3)] == [0, 0, 2]
    seconds.now = 1.5
    assert pace.wait("ada", take=1) == 1, "half a second is rounded up"
    seconds.now = 2.0
    assert [pace.wait("ada", take=1) for _ in range(2)] == [0, 2]


def test_who_has_not_tried_for_long_has_no_more_at_once_than_others(seconds: Seconds) -> None:
    pace = Pace(at_once=2, per_second=1, clock=seconds)
    pace.wait("ada", take=1)
    seconds.now = 1000.0
    assert [pace.wait("ada", take=1) for _ in range(3)] == [0, 0, 1]


def test_asking_takes_nothing_and_trying_takes_one(seconds: Seconds) -> None:
    pace = Pace(at_once=2, per_second=1, clock=seconds)
    assert [pace.wait("ada") for _ in range(5)] == [0] * 5
    pace.take("ada")
    assert pace.wait("ada") == 0
    pace.take("ada")
    assert pace.wait("ada") == 1
    assert pace.wait("eve") == 0


def test_what_is_tried_beyond_the_limit_is_not_owed(seconds: Seconds) -> None:
    pace = Pace(at_once=2, per_second=1, clock=seconds)
    for _ in range(50):
        pace.take("ada")
    seconds.now = 1.0
    assert pace.wait("ada") == 0


def test_who_tried_longest_ago_is_forgotten_first(
    seconds: Seconds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "REMEMBERED", 2)
    kept = Pace(at_once=1, per_second=0.001, clock=seconds)
    kept.take("ada")
    kept.take("eve")
    kept.take("ada")
    kept.take("bob")
    assert kept.wait("ada") > 0
    assert kept.wait("bob") > 0
    assert kept.wait("eve") == 0
