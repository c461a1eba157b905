from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.domain.retry import RetryPolicy, jittered, retry_delay
from headway.domain.text import shown
from headway.errors import DefinitionError


@pytest.mark.parametrize(
    ("failures", "minutes"),
    [(0, 0), (1, 5), (2, 10), (3, 20), (4, 40), (5, 60), (6, 60), (100, 60), (10**6, 60)],
)
def test_defaults_double_from_five_minutes_up_to_an_hour(failures: int, minutes: int) -> None:
    assert retry_delay(failures, RetryPolicy()) == timedelta(minutes=minutes)


@pytest.mark.parametrize("failures", [1, 2, 10**6])
def test_multiplier_one_keeps_the_delay_constant(failures: int) -> None:
    policy = RetryPolicy(timedelta(minutes=5), 1.0, timedelta(hours=1))
    assert retry_delay(failures, policy) == timedelta(minutes=5)


def test_no_delay_stays_no_delay() -> None:
    assert retry_delay(7, RetryPolicy(timedelta(0), 2.0, timedelta(0))) == timedelta(0)


def test_delay_above_the_ceiling_is_the_ceiling() -> None:
    policy = RetryPolicy(timedelta(hours=2), 2.0, timedelta(hours=1))
    assert retry_delay(1, policy) == timedelta(hours=1)


@given(
    failures=st.integers(1, 10**6),
    delay=st.timedeltas(timedelta(0), timedelta(days=3650)),
    ceiling=st.timedeltas(timedelta(0), timedelta(days=3650)),
    multiplier=st.floats(1, 100),
)
def test_grows_with_failures_and_never_passes_the_ceiling(
    failures: int, delay: timedelta, ceiling: timedelta, multiplier: float
) -> None:
    policy = RetryPolicy(delay, multiplier, ceiling)
    now, later = retry_delay(failures, policy), retry_delay(failures + 1, policy)
    assert timedelta(0) <= now <= later <= ceiling


@pytest.mark.parametrize(
    "bad",
    [
        {"multiplier": 0.5},
        {"multiplier": float("nan")},
        {"multiplier": float("inf")},
        {"multiplier": True},
        {"multiplier": "2"},
        {"delay": timedelta(seconds=-1)},
        {"delay": 300},
        {"max_delay": None},
        {"max_delay": timedelta(seconds=-1)},
        {"jitter": -0.1},
        {"jitter": True},
        {"jitter": "0.2"},
    ],
)
def test_nonsense_is_refused_in_one_line(bad: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError, match=next(iter(bad))) as refused:
        RetryPolicy(**bad)
    assert "\n" not in str(refused.value)
    example = "for example RetryPolicy(delay=timedelta(minutes=5), multiplier=2.0)"
    [(field, value)] = bad.items()
    assert str(refused.value).startswith(f"retry {field} {shown(value)} must be a ")
    assert str(refused.value).endswith(f", {example}")


def test_what_a_policy_may_be_at_most_and_at_least() -> None:
    RetryPolicy(timedelta(0), 1, timedelta(0), 0)
    RetryPolicy(timedelta.max, 1e300, timedelta.max, 1)
    rules = {
        "delay": (timedelta(-1), "must be a timedelta of at least 0 seconds"),
        "max_delay": (5, "must be a timedelta of at least 0 seconds"),
        "multiplier": (0, "must be a number of at least 1"),
        "jitter": (1.01, "must be a number from 0 to 1"),
    }
    for field, (value, rule) in rules.items():
        bad: dict[str, Any] = {field: value}
        with pytest.raises(DefinitionError, match=rule):
            RetryPolicy(**bad)


def test_a_jitter_never_changes_between_versions() -> None:
    """What a failed run waits is asked again and again, and must stay the same."""
    policy, hour = RetryPolicy(jitter=0.5), timedelta(hours=1)
    waits = [jittered(hour, policy, key, failures) for key in ("a", "b") for failures in (1, 2)]
    assert [wait.total_seconds() for wait in waits] == [4059.0, 5306.0, 4380.0, 5362.0]
    assert jittered(hour, RetryPolicy(), "a", 1) == hour
    assert jittered(timedelta(0), policy, "a", 1) == timedelta(0)
    assert jittered(hour, policy, "\ud800", 1) >= hour
