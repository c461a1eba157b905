from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.domain.due import AT_ONCE, MisfirePolicy, decide, due_at, is_due
from headway.domain.gates import GateName
from headway.domain.schedule import Never, Schedule, cron, every, once

FIRE, SKIP = MisfirePolicy.FIRE_ONCE_NOW, MisfirePolicy.DO_NOTHING
MINUTE = timedelta(minutes=1)
TEN = datetime(2025, 1, 1, 10, tzinfo=UTC)
FIVE_MINUTES = every(minutes=5)
HOURLY = cron("0 * * * *")


def at(hour: int, minute: int = 0, second: int = 0) -> datetime:
    return datetime(2025, 1, 1, hour, minute, second, tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "settled_until", "expected"),
    [
        (FIVE_MINUTES, None, AT_ONCE),
        (HOURLY, None, AT_ONCE),
        (once(TEN), None, TEN),
        (Never(), None, None),
        (FIVE_MINUTES, TEN, at(10, 5)),
        (HOURLY, TEN, at(11)),
        (HOURLY, at(9, 59, 59), TEN),
        (once(TEN), at(9), TEN),
        (once(TEN), TEN, None),
        (Never(), TEN, None),
    ],
)
def test_due_at(
    schedule: Schedule, settled_until: datetime | None, expected: datetime | None
) -> None:
    assert due_at(schedule, settled_until) == expected
    assert is_due(schedule, settled_until, at(10, 30)) == (
        expected is not None and expected <= at(10, 30)
    )


def test_a_run_just_before_the_hour_does_not_swallow_the_hour() -> None:
    # Settled is nominal: the manual run that ended at 10:00:10 left it at nine.
    assert decide(HOURLY, at(9), at(10, 0, 11), FIRE, MINUTE).scheduled_for == TEN


@pytest.mark.parametrize(
    ("schedule", "settled", "now", "policy", "due", "stands_for", "next_at"),
    [
        # The example of the rules: every 5 minutes, 60 s, last settled at 10:00.
        (FIVE_MINUTES, TEN, at(13, 2), SKIP, False, at(13), at(13, 5)),
        (FIVE_MINUTES, TEN, at(13, 0, 30), SKIP, True, at(13), at(13, 5)),
        (FIVE_MINUTES, TEN, at(13, 2), FIRE, True, at(13), at(13, 5)),
        # Around the due time and the threshold.
        (FIVE_MINUTES, TEN, at(10, 4, 59), SKIP, False, None, at(10, 5)),
        (FIVE_MINUTES, TEN, at(10, 5), SKIP, True, at(10, 5), at(10, 10)),
        (FIVE_MINUTES, TEN, at(10, 6), SKIP, True, at(10, 5), at(10, 10)),
        (FIVE_MINUTES, TEN, at(10, 6, 1), SKIP, False, at(10, 5), at(10, 10)),
        (FIVE_MINUTES, TEN, at(10, 6, 1), FIRE, True, at(10, 5), at(10, 10)),
        (HOURLY, TEN, at(13, 2), SKIP, False, at(13), at(14)),
        (HOURLY, TEN, at(13, 0, 30), SKIP, True, at(13), at(14)),
        (HOURLY, TEN, at(13, 2), FIRE, True, at(13), at(14)),
        (HOURLY, TEN, at(10, 59), FIRE, False, None, at(11)),
        # First runs fire at once and stand for now.
        (FIVE_MINUTES, None, at(13, 2), SKIP, True, at(13, 2), at(13, 7)),
        (HOURLY, None, at(13, 2), SKIP, True, at(13, 2), at(14)),
        # Once knows no misfire.
        (once(TEN), None, at(23), SKIP, True, TEN, None),
        (once(TEN), None, at(9), SKIP, False, None, TEN),
        (once(TEN), TEN, at(23), SKIP, False, None, None),
        (once(at(12)), TEN, at(23), SKIP, True, at(12), None),
        (Never(), None, at(23), FIRE, False, None, None),
    ],
)
def test_decisions(
    schedule: Schedule,
    settled: datetime | None,
    now: datetime,
    policy: MisfirePolicy,
    due: bool,
    stands_for: datetime | None,
    next_at: datetime | None,
) -> None:
    decision = decide(schedule, settled, now, policy, MINUTE)
    assert (decision.due, decision.scheduled_for, decision.next_at) == (due, stands_for, next_at)
    assert decision.reason


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (at(10, 6), "due since 2025-01-01 10:05:00 UTC"),
        (at(10, 6, 1), "overdue by 0:01:01, fires once now"),
    ],
)
def test_as_late_as_the_threshold_is_not_overdue(now: datetime, reason: str) -> None:
    assert decide(FIVE_MINUTES, TEN, now, FIRE, MINUTE).reason == reason


@pytest.mark.parametrize(
    ("schedule", "settled", "now", "reason"),
    [
        (FIVE_MINUTES, None, at(13), "first run"),
        (once(TEN), None, at(13), "due since 2025-01-01 10:00:00 UTC"),
        (once(TEN), None, at(9), "not due before 2025-01-01 10:00:00 UTC"),
        (Never(), None, at(9), "has no further occurrence by time"),
        (FIVE_MINUTES, TEN, at(10, 10), "overdue by 0:05:00, fires once now"),
    ],
)
def test_the_reason_of_a_decision(
    schedule: Schedule, settled: datetime | None, now: datetime, reason: str
) -> None:
    found = decide(schedule, settled, now, FIRE, MINUTE)
    assert (found.reason, found.skipped_until, found.gate) == (reason, None, GateName.DUE)


def test_what_was_missed_is_skipped() -> None:
    found = decide(FIVE_MINUTES, TEN, at(13, 2), SKIP, MINUTE)
    missed = "missed 2025-01-01 13:00:00 UTC by more than the misfire threshold of 0:01:00"
    assert (found.reason, found.skipped_until) == (missed, at(13))
    assert found.gate is GateName.NOT_MISSED
    late = decide(FIVE_MINUTES, TEN, at(13, 1), SKIP, MINUTE)
    assert late.reason == "due since 2025-01-01 13:00:00 UTC, earlier ones were missed"
    assert (late.skipped_until, late.gate) == (None, GateName.DUE)


def test_ten_years_of_missed_seconds_are_not_walked() -> None:
    every_second = cron("* * * * * *", "Europe/Berlin")
    decision = decide(every_second, datetime(2015, 1, 1, tzinfo=UTC), TEN, SKIP, MINUTE)
    assert decision.due
    assert decision.scheduled_for == TEN


INTERVALS = st.integers(1, 7200).map(lambda n: every(seconds=n))
EXPRESSIONS = ["*/5 * * * *", "0 * * * *", "30 2 * * *", "17 */3 * * *", "*/20 * * * * *"]
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]
CRONS = st.builds(cron, st.sampled_from(EXPRESSIONS), st.sampled_from(ZONES))
SCHEDULES: st.SearchStrategy[Schedule] = st.one_of(INTERVALS, CRONS)
MOMENTS = st.datetimes(datetime(2024, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC))
GAPS = st.integers(0, 6 * 3600).map(lambda n: timedelta(seconds=n))
THRESHOLDS = st.integers(0, 1800).map(lambda n: timedelta(seconds=n))


def walked(schedule: Schedule, since: datetime, until: datetime) -> list[datetime]:
    found = []
    position = schedule.next_after(since)
    while position is not None and position <= until:
        found.append(position)
        position = schedule.next_after(position)
    return found


@given(SCHEDULES, MOMENTS, GAPS, GAPS, THRESHOLDS)
def test_fire_once_now_stays_due_once_it_is(
    schedule: Schedule, settled: datetime, gap: timedelta, more: timedelta, threshold: timedelta
) -> None:
    first = decide(schedule, settled, settled + gap, FIRE, threshold)
    later = decide(schedule, settled, settled + gap + more, FIRE, threshold)
    assert later.due or not first.due
    assert first.due == is_due(schedule, settled, settled + gap)


@given(SCHEDULES, MOMENTS, GAPS, THRESHOLDS)
def test_do_nothing_agrees_with_walking_every_occurrence(
    schedule: Schedule, settled: datetime, gap: timedelta, threshold: timedelta
) -> None:
    now = settled + gap
    passed = walked(schedule, settled, now)
    decision = decide(schedule, settled, now, SKIP, threshold)
    assert decision.due == any(now - occurrence <= threshold for occurrence in passed)
    assert decision.scheduled_for == (passed[-1] if passed else None)
    assert decision.next_at is not None
    assert decision.next_at > now


@given(SCHEDULES, MOMENTS, GAPS, GAPS, THRESHOLDS, st.sampled_from(MisfirePolicy))
def test_settling_a_decision_settles_the_past_and_nothing_else(
    schedule: Schedule,
    settled: datetime,
    gap: timedelta,
    more: timedelta,
    threshold: timedelta,
    policy: MisfirePolicy,
) -> None:
    now = settled + gap
    decision = decide(schedule, settled, now, policy, threshold)
    after = decision.scheduled_for or settled
    assert not is_due(schedule, after, now)
    assert due_at(schedule, after) == decision.next_at
    if not decision.due:
        # Whether a skip is written down or not, the future is the same.
        forgotten = decide(schedule, settled, now + more, SKIP, threshold)
        recorded = decide(schedule, after, now + more, SKIP, threshold)
        assert forgotten.due == recorded.due
        assert forgotten.next_at == recorded.next_at
