"""Misfires, first runs, jitter and exclusions together, against oracles that walk everything."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.domain.due import Due, MisfirePolicy, as_text, decide
from headway.domain.exclusion_kinds import Exclusion, Then
from headway.domain.exclusions import exclude, excluded, free_from
from headway.domain.gates import GateName
from headway.domain.jitter import jitter
from headway.domain.schedule import Every, Never, Once, Schedule, cron, every, once
from headway.domain.timing import FirstRun, Timing, decide_timing, settled_by_success
from headway.errors import ScheduleError

FIRE, NOTHING, CATCH_UP = MisfirePolicy
WAIT = FirstRun.AT_FIRST_OCCURRENCE
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
# A Wednesday.
TEN = datetime(2025, 1, 1, 10, tzinfo=UTC)
HOURLY = cron.hourly()
NIGHT = exclude.window("22:00", "06:00")
LATE_NIGHT = exclude.window("22:00", "06:00", then="defer")


def at(hour: int, minute: int = 0, second: int = 0, day: int = 1) -> datetime:
    return datetime(2025, 1, day, hour, minute, second, tzinfo=UTC)


def decided(
    timing: Timing, settled: datetime | None, now: datetime, declared: datetime = TEN
) -> Due:
    return decide_timing(timing, "load-1", settled, declared, now)


# --- with default options: the same answers as before

INTERVALS = st.builds(
    Every, st.integers(1, 7200).map(lambda n: n * timedelta(seconds=1)), st.booleans()
)
EXPRESSIONS = ["*/5 * * * *", "0 * * * *", "30 2 * * *", "17 */3 * * *", "*/20 * * * * *"]
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]
CRONS = st.builds(cron, st.sampled_from(EXPRESSIONS), st.sampled_from(ZONES))
MOMENTS = st.datetimes(datetime(2024, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC))
REPEATED: st.SearchStrategy[Schedule] = st.one_of(INTERVALS, CRONS)
SCHEDULES = st.one_of(REPEATED, MOMENTS.map(Once), st.just(Never()))
GAPS = st.integers(0, 6 * 3600).map(lambda n: timedelta(seconds=n))
THRESHOLDS = st.integers(0, 1800).map(lambda n: timedelta(seconds=n))


@settings(max_examples=300)
@given(SCHEDULES, st.none() | MOMENTS, MOMENTS, GAPS, st.sampled_from([FIRE, NOTHING]), THRESHOLDS)
def test_with_default_options_nothing_changes(
    schedule: Schedule,
    settled: datetime | None,
    declared: datetime,
    gap: timedelta,
    policy: MisfirePolicy,
    threshold: timedelta,
) -> None:
    now = (settled or declared) + gap
    found = decided(Timing(schedule, policy, threshold), settled, now, declared)
    assert found._replace(coalesced=0) == decide(schedule, settled, now, policy, threshold)


@pytest.mark.parametrize(
    ("now", "due", "reason"),
    [
        (at(13, 2), False, "missed 2025-01-01 13:00:00 UTC by more than"),
        (at(13, 0, 30), True, "due since 2025-01-01 13:00:00 UTC, earlier ones were missed"),
    ],
)
def test_the_example_of_the_rules(now: datetime, due: bool, reason: str) -> None:
    found = decided(Timing(every(minutes=5), NOTHING, MINUTE), TEN, now)
    assert (found.due, found.scheduled_for, found.next_at) == (due, at(13), at(13, 5))
    assert found.reason.startswith(reason)
    assert found.skipped_until == (None if due else at(13))
    assert found.coalesced == (35 if due else 0)


# --- the first run


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (every(hours=3), at(13)),
        (every(hours=3, fixed_rate=True), at(13)),
        (cron.daily(), at(0, day=2)),
        (HOURLY, at(11)),
        (once(at(12)), at(12)),
    ],
)
def test_at_the_first_occurrence_counts_from_the_declaration(
    schedule: Schedule, expected: datetime
) -> None:
    timing = Timing(schedule, first_run=WAIT)
    before = decided(timing, None, expected - MINUTE)
    assert (before.due, before.next_at) == (False, expected)
    assert decided(timing, None, expected).scheduled_for == expected
    assert decided(timing, None, expected).due


def test_at_once_is_spread_by_the_variance() -> None:
    timing = Timing(HOURLY, variance=30 * MINUTE)
    starts = set()
    for number in range(100):
        key = f"load-{number}"
        first = decide_timing(timing, key, None, TEN, TEN)
        start = TEN + jitter(key, TEN, 30 * MINUTE)
        assert first.due is (start == TEN)
        if not first.due:
            assert first.next_at == start > TEN
            assert first.reason == f"first run not due before {as_text(start)}"
        run = decide_timing(timing, key, None, TEN, start)
        assert (run.due, run.scheduled_for, run.reason) == (True, start, "first run")
        starts.add(start)
    assert len(starts) > 80


@pytest.mark.parametrize("failed_for", [TEN, TEN + MINUTE])
def test_a_first_run_that_failed_is_retried_for_the_same_time(failed_for: datetime) -> None:
    """Also where it was due in the very moment of its declaration."""
    timing = Timing(HOURLY)
    run = decide_timing(
        timing, "load", None, TEN, TEN + 10 * MINUTE, retrying=True, failed_for=failed_for
    )
    assert (run.due, run.scheduled_for) == (True, failed_for)


def test_a_failure_before_a_new_declaration_is_not_what_the_first_run_stands_for() -> None:
    now = TEN + 10 * MINUTE
    run = decide_timing(Timing(HOURLY), "load", None, TEN, now, failed_for=TEN - MINUTE)
    assert (run.due, run.scheduled_for) == (True, now)


def test_at_once_keeps_out_of_exclusions() -> None:
    skipping, deferring = (
        Timing(HOURLY, exclusions=(NIGHT,)),
        Timing(HOURLY, exclusions=(LATE_NIGHT,)),
    )
    # Declared at night: skipped, so the schedule's own first run is the first.
    assert decided(skipping, None, at(23), at(23)).next_at == at(6, day=2)
    assert decided(skipping, None, at(6, day=2), at(23)).scheduled_for == at(6, day=2)
    assert decided(deferring, None, at(23), at(23)).next_at == at(6, day=2)
    assert decided(deferring, None, at(6, 5, day=2), at(23)).reason == "first run"
    # Declared before, looked at during the night: held, not lost.
    for timing in (skipping, deferring):
        held = decided(timing, None, at(23), at(21))
        assert (held.due, held.next_at) == (False, at(6, day=2))
        assert held.reason == "due, but nothing runs between 22:00 and 06:00"
        assert decided(timing, None, at(6, day=2), at(21)).due


# --- variance


@given(REPEATED, MOMENTS, GAPS, st.integers(0, 4 * 3600), st.text(max_size=5))
def test_due_is_the_nominal_time_plus_jitter_however_often_one_looks(
    schedule: Schedule, settled: datetime, gap: timedelta, seconds: int, key: str
) -> None:
    timing = Timing(schedule, variance=timedelta(seconds=seconds))
    nominal = schedule.next_after(settled)
    assert nominal is not None
    start = nominal + jitter(key, nominal, timing.variance)
    for now in (settled + gap, start - timedelta.resolution, start):
        found = decide_timing(timing, key, settled, settled, now)
        assert found.due == (now >= start)
        if not found.due:
            assert found.next_at == start
        else:
            assert found.scheduled_for is not None
            assert nominal <= found.scheduled_for <= now


@given(REPEATED, MOMENTS, GAPS, GAPS, st.integers(0, 3600), THRESHOLDS)
def test_fire_once_now_stays_due_once_it_is(
    schedule: Schedule,
    settled: datetime,
    gap: timedelta,
    more: timedelta,
    seconds: int,
    limit: timedelta,
) -> None:
    timing = Timing(schedule, FIRE, limit, variance=timedelta(seconds=seconds))
    first = decided(timing, settled, settled + gap)
    assert decided(timing, settled, settled + gap + more).due or not first.due


def test_a_variance_far_beyond_the_interval_is_bounded_work() -> None:
    timing = Timing(every(seconds=1), NOTHING, variance=366 * DAY)
    found = decided(timing, TEN, TEN + 800 * DAY)
    assert found.due
    assert found.scheduled_for is not None
    assert found.next_at is not None
    assert found.next_at > TEN + 800 * DAY


# --- exclusions


def test_skipped_occurrences_are_passed_over() -> None:
    timing = Timing(HOURLY, exclusions=(NIGHT,))
    night = decided(timing, at(21), at(3, 30, day=2))
    assert (night.due, night.scheduled_for, night.next_at) == (False, None, at(6, day=2))
    assert night.skipped_until == at(3, day=2)
    # The weakness of the reference: everything skipped would run the moment the window ends.
    three_hours = Timing(cron("30 */3 * * *"), exclusions=(NIGHT,))
    morning = decided(three_hours, at(21, 30), at(6, day=2))
    assert (morning.due, morning.next_at) == (False, at(6, 30, day=2))
    assert morning.skipped_until == at(3, 30, day=2)


def test_deferred_occurrences_run_once_when_the_exclusion_ends() -> None:
    timing = Timing(cron("30 * * * *"), exclusions=(LATE_NIGHT,))
    night = decided(timing, at(21, 30), at(3, day=2))
    assert (night.due, night.scheduled_for, night.next_at) == (False, None, at(6, day=2))
    assert night.skipped_until is None
    for policy in MisfirePolicy:
        morning = decided(replace(timing, misfire_policy=policy), at(21, 30), at(6, 0, 30, day=2))
        assert (morning.due, morning.scheduled_for) == (True, at(5, 30, day=2))
        assert morning.coalesced == 7
        assert morning.next_at == at(6, 30, day=2)


def test_what_is_deferred_into_another_exclusion_waits_for_both() -> None:
    friday_night = datetime(2025, 1, 3, 23, tzinfo=UTC)
    timing = Timing(cron.daily(23), exclusions=(LATE_NIGHT, exclude.weekends()))
    monday_morning = datetime(2025, 1, 6, 6, tzinfo=UTC)
    assert decided(timing, friday_night - HOUR, friday_night).next_at == monday_morning


def test_an_overdue_run_is_held_while_an_exclusion_lasts() -> None:
    for exclusion in (NIGHT, LATE_NIGHT):
        timing = Timing(cron.daily(21), exclusions=(exclusion,))
        assert decided(timing, at(20), at(21, 30)).due
        held = decided(timing, at(20), at(23))
        assert (held.due, held.next_at, held.skipped_until) == (False, at(6, day=2), None)
        assert decided(timing, at(20), at(6, day=2)).scheduled_for == at(21)
        missed = decided(replace(timing, misfire_policy=NOTHING), at(20), at(6, day=2))
        assert (missed.due, missed.skipped_until) == (False, at(21))


def test_an_interval_keeps_its_grid_across_an_exclusion() -> None:
    for minutes, first in ((60, at(6, day=2)), (50, at(6, 20, day=2)), (7, at(6, 3, day=2))):
        timing = Timing(every(minutes=minutes), exclusions=(NIGHT,))
        assert decided(timing, at(22) - MINUTE * minutes, at(21, 59)).next_at == first


def test_an_interval_whose_points_all_lie_in_an_exclusion_is_deferred() -> None:
    timing = Timing(every(days=1), exclusions=(NIGHT,))
    found = decided(timing, at(23), at(12, day=2))
    assert (found.due, found.next_at) == (False, at(6, day=3))
    late = decided(timing, at(23), at(12, day=9))
    assert (late.due, late.scheduled_for, late.next_at) == (True, at(23, day=8), at(6, day=10))


def test_jitter_never_leads_into_an_exclusion() -> None:
    timing = Timing(cron.daily(21, 55), variance=HOUR, exclusions=(NIGHT,))
    starts = {decide_timing(timing, f"load-{n}", TEN, TEN, TEN).next_at for n in range(200)}
    assert all(start is not None and at(21, 55) <= start < at(22) for start in starts)
    assert len(starts) > 50


def test_the_zone_is_the_schedules_own_unless_given() -> None:
    tokyo = cron.daily(5, tz="Asia/Tokyo")
    with pytest.raises(ScheduleError, match="would never run"):
        Timing(tokyo, exclusions=(NIGHT,))
    assert Timing(tokyo, exclusions=(NIGHT,), tz="UTC").zone_name == "UTC"
    assert Timing(tokyo).zone_name == "Asia/Tokyo"
    assert Timing(every(hours=1)).zone_name == "UTC"


EXCLUSIONS = st.lists(
    st.sampled_from(
        [
            NIGHT,
            LATE_NIGHT,
            exclude.weekends(),
            exclude.weekends(then="defer"),
            exclude.window("01:00", "03:10"),
            exclude.window("12:00", "12:05", then="defer"),
            exclude.dates(date(2025, 3, 30), date(2025, 10, 26), date(2025, 3, 29)),
            exclude.between(date(2025, 3, 27), date(2025, 3, 31), then="defer"),
        ]
    ),
    max_size=3,
)
# Around the two turns of the clock in Berlin.
NEAR_TURNS = st.builds(
    lambda day, minutes: day.replace(tzinfo=UTC) + minutes * MINUTE,
    st.sampled_from([datetime(2025, 3, 28), datetime(2025, 10, 24), datetime(2025, 6, 6)]),
    st.integers(0, 3 * 1440),
)
COARSE: st.SearchStrategy[Schedule] = st.one_of(
    st.builds(Every, st.integers(20, 600).map(lambda n: n * MINUTE), st.booleans()),
    st.builds(
        cron,
        st.sampled_from(
            ["*/20 * * * *", "0 * * * *", "30 2 * * *", "17 */3 * * *", "0 7,23 * * *"]
        ),
        st.sampled_from(["UTC", "Europe/Berlin"]),
    ),
)
SPANS = st.integers(0, 3 * 1440).map(lambda n: n * MINUTE)


def made(schedule: Schedule, exclusions: list[Exclusion], **options: Any) -> Timing | None:
    try:
        return Timing(schedule, exclusions=tuple(exclusions), tz="Europe/Berlin", **options)
    except ScheduleError:
        return None


def walked(timing: Timing, settled: datetime, now: datetime) -> list[tuple[datetime, datetime]]:
    """Every occurrence up to *now* that is not skipped, and when it is due, minute by minute."""
    found = []
    start = settled
    nominal = timing.schedule.next_after(settled)
    while nominal is not None and nominal <= now:
        within = excluded(timing.exclusions, nominal, "Europe/Berlin")
        if within is None or within.then is Then.DEFER:
            # Up to an earlier start nothing is free.
            start = max(start, nominal)
            while excluded(timing.exclusions, start, "Europe/Berlin"):
                start += MINUTE
            found.append((nominal, start))
        nominal = timing.schedule.next_after(nominal)
    return found


def mostly_skipped(timing: Timing, settled: datetime) -> bool:
    return timing.occurrences("").after(settled) != timing.occurrences("")


@settings(max_examples=300)
@given(COARSE, EXCLUSIONS, NEAR_TURNS, SPANS, st.sampled_from([FIRE, NOTHING]), THRESHOLDS)
def test_decisions_agree_with_walking_every_minute(
    schedule: Schedule,
    exclusions: list[Exclusion],
    settled: datetime,
    span: timedelta,
    policy: MisfirePolicy,
    threshold: timedelta,
) -> None:
    now = settled + span
    timing = made(schedule, exclusions, misfire_policy=policy, misfire_threshold=threshold)
    if timing is None or mostly_skipped(timing, settled):
        return
    passed = [one for one in walked(timing, settled, now) if one[1] <= now]
    recent = [start for _, start in passed if now - start <= threshold]
    held = excluded(timing.exclusions, now, "Europe/Berlin") is not None
    found = decided(timing, settled, now)
    assert found.due == (bool(recent if policy is NOTHING else passed) and not held)
    if passed and not held:
        assert found.scheduled_for == passed[-1][0]
        if found.due:
            assert found.coalesced == len(passed) - 1 or found.coalesced >= 24 < len(passed)
    else:
        assert found.scheduled_for is None


@settings(max_examples=300)
@given(COARSE, EXCLUSIONS, NEAR_TURNS, SPANS, st.integers(0, 7200), st.sampled_from(MisfirePolicy))
def test_the_next_is_strictly_later_and_never_inside_an_exclusion(
    schedule: Schedule,
    exclusions: list[Exclusion],
    settled: datetime,
    span: timedelta,
    seconds: int,
    policy: MisfirePolicy,
) -> None:
    now = settled + span
    timing = made(schedule, exclusions, misfire_policy=policy, variance=timedelta(seconds=seconds))
    if timing is None:
        return
    found = decided(timing, settled, now)
    assert found.next_at is not None
    assert excluded(timing.exclusions, found.next_at, "Europe/Berlin") is None
    assert policy is CATCH_UP or found.next_at > now
    if found.due:
        assert excluded(timing.exclusions, now, "Europe/Berlin") is None
        assert found.scheduled_for is not None
        assert settled < found.scheduled_for <= now
    if found.skipped_until is not None:
        # Writing down what nobody will run changes no later decision.
        assert settled < found.skipped_until <= now
        after = decided(timing, found.skipped_until, now)
        if found.due:
            assert (after.due, after.scheduled_for) == (True, found.scheduled_for)
        else:
            assert (after.due, after.next_at) == (False, found.next_at)


# --- catching up


@settings(max_examples=200)
@given(COARSE, EXCLUSIONS, NEAR_TURNS, SPANS, st.integers(1, 20))
def test_catching_up_runs_exactly_what_was_missed_oldest_first(
    schedule: Schedule, exclusions: list[Exclusion], settled: datetime, span: timedelta, limit: int
) -> None:
    now = settled + span
    timing = made(schedule, exclusions, misfire_policy=CATCH_UP, catch_up_limit=limit)
    if timing is None or mostly_skipped(timing, settled):
        return
    if excluded(timing.exclusions, now, "Europe/Berlin"):
        assert not decided(timing, settled, now).due
        return
    # What is deferred to the same moment is one run, standing for the newest.
    by_start = {start: nominal for nominal, start in walked(timing, settled, now) if start <= now}
    expected = list(by_start.values())[-limit:]
    ran: list[datetime] = []
    position: datetime | None = settled
    while (found := decided(timing, position, now)).due:
        assert found.scheduled_for is not None
        ran.append(found.scheduled_for)
        position = settled_by_success(timing, "load-1", position, found.scheduled_for, now)
        assert position == found.scheduled_for
    assert ran == expected


def test_catching_up_leaves_out_what_is_beyond_the_limit() -> None:
    timing = Timing(HOURLY, CATCH_UP, catch_up_limit=3)
    found = decided(timing, at(10), at(20, 30))
    assert (found.due, found.scheduled_for, found.skipped_until) == (True, at(18), at(17))
    assert found.next_at == at(19)
    assert found.reason == "due since 2025-01-01 18:00:00 UTC, 3 to catch up"


def test_catching_up_counts_what_a_run_stands_for_and_not_what_is_left_out() -> None:
    limited = Timing(HOURLY, CATCH_UP, catch_up_limit=3)
    assert decided(limited, at(10), at(20, 30)).coalesced == 0
    deferred = Timing(HOURLY, CATCH_UP, catch_up_limit=3, exclusions=(LATE_NIGHT,))
    found = decided(deferred, at(10), at(8, 30, day=2))
    assert (found.scheduled_for, found.skipped_until) == (at(6, day=2), at(21))
    assert found.coalesced == 8, "those of the night, from 22:00 to 05:00"


def test_ten_years_of_missed_seconds_are_not_walked() -> None:
    every_second = cron("* * * * * *", "Europe/Berlin")
    long = exclude.between(date(2016, 1, 1), date(2024, 12, 30))
    for policy in MisfirePolicy:
        timing = Timing(every_second, policy, exclusions=(long, NIGHT))
        found = decided(timing, datetime(2015, 1, 1, tzinfo=UTC), TEN)
        assert found.due
        assert found.scheduled_for == TEN - timedelta(seconds=99 if policy is CATCH_UP else 0)


# --- what a success settles


@pytest.mark.parametrize(
    ("schedule", "policy", "scheduled_for", "expected"),
    [
        # Five minutes after it ended; or on the grid of when it was due.
        (every(minutes=5), FIRE, at(10, 5), at(10, 17)),
        (every(minutes=5, fixed_rate=True), FIRE, at(10, 5), at(10, 15)),
        (every(minutes=5, fixed_rate=True), FIRE, at(10, 16), at(10, 16)),
        (cron("*/5 * * * *"), FIRE, at(10, 5), at(10, 15)),
        (HOURLY, NOTHING, at(10), at(10)),
        (once(at(10, 5)), FIRE, at(10, 5), at(10, 5)),
        (every(minutes=5), CATCH_UP, at(10, 5), at(10, 5)),
        (cron("*/5 * * * *"), CATCH_UP, at(10, 5), at(10, 5)),
        # Manual runs move only what counts from the last success.
        (every(minutes=5), FIRE, None, at(10, 17)),
        (every(minutes=5, fixed_rate=True), FIRE, None, TEN),
        (every(minutes=5), CATCH_UP, None, TEN),
        (cron("*/5 * * * *"), FIRE, None, TEN),
    ],
)
def test_a_success_settles(
    schedule: Schedule, policy: MisfirePolicy, scheduled_for: datetime | None, expected: datetime
) -> None:
    timing = Timing(schedule, policy)
    assert settled_by_success(timing, "load-1", TEN, scheduled_for, at(10, 17)) == expected


def test_a_success_does_not_settle_what_has_not_come_due() -> None:
    deferring = Timing(HOURLY, exclusions=(LATE_NIGHT,))
    assert settled_by_success(deferring, "load-1", at(20), at(21), at(23, 30)) == at(21)
    spread = Timing(HOURLY, variance=50 * MINUTE)
    assert jitter("load-1", at(11), spread.variance) > 10 * MINUTE
    assert settled_by_success(spread, "load-1", at(9), at(10), at(11, 10)) == at(10)
    assert settled_by_success(spread, "load-1", at(9), at(10), at(11, 50)) == at(11)


@given(INTERVALS, MOMENTS, st.lists(st.integers(1, 7200), max_size=8))
def test_a_fixed_rate_never_leaves_its_grid(
    schedule: Every, start: datetime, durations: list[int]
) -> None:
    timing = Timing(replace(schedule, fixed_rate=True))
    settled = start
    for seconds in durations:
        due = decided(timing, settled, settled + schedule.interval)
        assert due.due
        assert due.scheduled_for is not None
        now = settled + schedule.interval + timedelta(seconds=seconds)
        after = settled_by_success(timing, "load-1", settled, due.scheduled_for, now)
        assert after is not None
        assert (after - start) % schedule.interval == timedelta(0)
        assert after <= now < after + schedule.interval
        settled = after


# --- refusals

ANY: Any = Timing


@pytest.mark.parametrize(
    ("build", "rule"),
    [
        (lambda: ANY("hourly"), "must be a schedule"),
        (lambda: ANY(HOURLY, "fire_now"), "must be one of fire_once_now, do_nothing, catch_up"),
        (lambda: ANY(HOURLY, None), "must be one of"),
        (lambda: ANY(HOURLY, first_run="later"), "must be one of at_once, at_first_occurrence"),
        (lambda: ANY(HOURLY, misfire_threshold=60), "must be a timedelta"),
        (lambda: Timing(HOURLY, misfire_threshold=-MINUTE), "must be a timedelta from 0"),
        (lambda: Timing(HOURLY, variance=-MINUTE), "must be a timedelta from 0"),
        (lambda: Timing(HOURLY, variance=367 * DAY), "from 0 to 366 days"),
        (lambda: Timing(HOURLY, variance=timedelta(seconds=1.5)), "must be whole seconds"),
        (lambda: Timing(HOURLY, catch_up_limit=0), "from 1 to 10000"),
        (lambda: Timing(HOURLY, catch_up_limit=True), "from 1 to 10000"),
        (lambda: Timing(HOURLY, tz="Europe/Berln"), "did you mean 'Europe/Berlin'?"),
        (lambda: Timing(once(TEN), variance=MINUTE), "this one runs once"),
        (lambda: Timing(Never(), variance=MINUTE), "this one runs only when triggered"),
        (lambda: Timing(Never(), exclusions=(NIGHT,)), "runs only when triggered"),
        (lambda: Timing(cron.daily(23), exclusions=(NIGHT,)), "would never run"),
        (lambda: Timing(once(at(23)), exclusions=(NIGHT,)), "would never run"),
        (lambda: ANY(HOURLY, exclusions=NIGHT), "must be a list"),
        (lambda: ANY(HOURLY, exclusions=5), "must be a list"),
        (
            lambda: Timing(HOURLY, exclusions=(NIGHT, exclude.window("06:00", "22:00"))),
            "would never run",
        ),
    ],
)
def test_contradictions_are_refused_when_declared(build: Callable[[], object], rule: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        build()
    text = str(refused.value)
    assert rule in text
    assert "for example" in text
    assert "\n" not in text
    assert len(text) < 300


def test_deferring_makes_it_possible() -> None:
    assert decided(Timing(cron.daily(23), exclusions=(LATE_NIGHT,)), TEN, TEN).next_at == at(
        6, day=2
    )
    late = Timing(once(at(23)), exclusions=(LATE_NIGHT,))
    assert decided(late, None, TEN).next_at == at(6, day=2)
    assert decided(late, None, at(7, day=2)).scheduled_for == at(23)
    assert free_from((LATE_NIGHT,), at(23), "UTC") == at(6, day=2)


def test_names_are_taken_for_choices() -> None:
    named = ANY(HOURLY, misfire_policy="catch_up", first_run="at_first_occurrence")
    assert named == Timing(HOURLY, CATCH_UP, first_run=WAIT)
    assert Timing(HOURLY, exclusions=(NIGHT, exclude.weekends())) == Timing(
        HOURLY, exclusions=(exclude.weekends(), NIGHT)
    )


@given(st.integers(0, 3600), st.integers(0, 7200), st.integers(0, 7200))
def test_a_look_is_never_later_than_what_is_due(settled: int, look: int, later: int) -> None:
    """Whenever one looks, nothing becomes due before the next look, spread and deferred or not."""
    start = datetime(2030, 1, 7, 12, tzinfo=UTC)
    window = exclude.window("12:30", "13:00", then="defer")
    timing = Timing(every(minutes=5), variance=timedelta(minutes=3), exclusions=(window,))
    since = start + timedelta(seconds=settled)
    first = decide_timing(timing, "load", since, start, since + timedelta(seconds=look))
    if first.due or first.next_at is None:
        return
    moment = since + timedelta(seconds=look + later)
    if decide_timing(timing, "load", since, start, moment).due:
        assert first.next_at <= moment


def test_a_success_never_takes_back_what_is_settled() -> None:
    """Somebody has skipped the run of noon already, at half past eleven."""
    hourly = Timing(every(hours=1))
    assert settled_by_success(hourly, "load-1", at(12), None, at(11, 30)) == at(12)
    assert settled_by_success(hourly, "load-1", at(12), at(11), at(12, 1)) == at(12, 1)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: ANY("hourly"),
            "schedule 'hourly' must be a schedule, for example every(minutes=5)",
        ),
        (
            lambda: ANY(HOURLY, "do_nothin"),
            "misfire policy 'do_nothin' must be one of fire_once_now, do_nothing, catch_up, "
            "for example 'do_nothing'",
        ),
        (
            lambda: ANY(HOURLY, first_run=5),
            "first run 5 must be one of at_once, at_first_occurrence, for example 'at_once'",
        ),
        (
            lambda: ANY(HOURLY, misfire_threshold=60),
            "misfire threshold 60 must be a timedelta from 0 to 3653 days, "
            "for example timedelta(seconds=60)",
        ),
        (
            lambda: Timing(HOURLY, variance=timedelta(seconds=1.5)),
            "variance datetime.timedelta(seconds=1, microseconds=500000) must be whole seconds, "
            "for example timedelta(seconds=60)",
        ),
        (
            lambda: Timing(HOURLY, catch_up_limit=10_001),
            "catch-up limit 10001 must be a whole number from 1 to 10000, "
            "for example catch_up_limit=100",
        ),
        (
            lambda: Timing(once(TEN), variance=MINUTE),
            "variance datetime.timedelta(seconds=60) must be left out: it spreads repeated runs, "
            "and this one runs once, for example every(minutes=5)",
        ),
        (
            lambda: Timing(Never(), exclusions=(NIGHT,)),
            "exclusions 'between 22:00 and 06:00' must be left out: this one runs only when "
            "triggered, for example every(minutes=5)",
        ),
        (
            lambda: Timing(cron.daily(23), exclusions=(NIGHT, LATE_NIGHT)),
            "schedule 'At 23:00 every day' would never run, as it lies in what is excluded: "
            "'between 22:00 and 06:00', for example exclude.weekends(then=\"defer\")",
        ),
        (
            lambda: Timing(HOURLY, tz="Nowhere"),
            "time zone 'Nowhere' must be an IANA zone name, for example 'Europe/Berlin'",
        ),
    ],
)
def test_a_refusal_says_which_rule_is_broken(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        build()
    assert str(refused.value) == message


def test_the_ends_of_what_options_may_be() -> None:
    widest = Timing(HOURLY, misfire_threshold=3653 * DAY, variance=366 * DAY, catch_up_limit=10_000)
    least = Timing(HOURLY, misfire_threshold=timedelta(0), variance=timedelta(0), catch_up_limit=1)
    assert widest.catch_up_limit - least.catch_up_limit == 9999
    for threshold in (3653 * DAY + timedelta(seconds=1), timedelta(seconds=-1)):
        with pytest.raises(ScheduleError, match="from 0 to 3653 days"):
            Timing(HOURLY, misfire_threshold=threshold)


def test_what_will_never_run_again_says_so() -> None:
    over = decided(Timing(once(TEN)), TEN, at(12))
    assert over == Due(False, None, None, "has no further occurrence by time")
    never = decided(Timing(Never()), None, at(12))
    assert never == Due(False, None, None, "has no further occurrence by time")


def test_a_decision_is_whole() -> None:
    """Which gate it is about, what is skipped for good, and how many runs it stands for."""
    late = Timing(HOURLY, NOTHING, exclusions=(NIGHT,))
    assert decided(late, at(9), at(10)) == Due(
        True, TEN, at(11), "due since 2025-01-01 10:00:00 UTC"
    )
    assert decided(late, at(9), at(10, 30)) == Due(
        False,
        TEN,
        at(11),
        "missed 2025-01-01 10:00:00 UTC by more than the misfire threshold of 0:01:00",
        skipped_until=TEN,
        gate=GateName.NOT_MISSED,
    )
    assert decided(late, at(20), at(23)) == Due(
        False,
        None,
        at(6, day=2),
        "due, but nothing runs between 22:00 and 06:00",
        gate=GateName.NOT_EXCLUDED,
    )
    assert decided(late, at(21), at(23)) == Due(
        False,
        None,
        at(6, day=2),
        "not due before 2025-01-02 06:00:00 UTC",
        skipped_until=at(23),
    )


def test_a_failed_run_is_retried_for_what_it_stood_for() -> None:
    now, failed_for = at(12, 30), at(11)
    strict = Timing(every(hours=1), NOTHING)
    plain = decide_timing(strict, "load", TEN, TEN, now)
    retried = decide_timing(strict, "load", TEN, TEN, now, retrying=True, failed_for=failed_for)
    assert (plain.due, plain.scheduled_for) == (False, at(12))
    assert (retried.due, retried.scheduled_for) == (True, failed_for)
    assert retried.reason == "due since 2025-01-01 11:00:00 UTC"
    # What is settled meanwhile is no longer retried; what the clock tells has come since.
    settled = decide_timing(strict, "load", TEN, TEN, now, retrying=True, failed_for=TEN)
    hourly = Timing(HOURLY, NOTHING)
    newer = decide_timing(hourly, "load", TEN, TEN, now, retrying=True, failed_for=failed_for)
    assert settled.scheduled_for == newer.scheduled_for == at(12)
    assert settled.due and newer.due


def test_a_retried_run_keeps_out_of_exclusions_and_waits_for_its_variance() -> None:
    timing = Timing(HOURLY, exclusions=(NIGHT,))
    held = decide_timing(timing, "load", at(20), TEN, at(23), retrying=True, failed_for=at(21))
    assert (held.due, held.next_at) == (False, at(6, day=2))


def test_one_that_runs_once_was_never_missed() -> None:
    single = Timing(once(TEN), NOTHING)
    assert decided(single, None, at(23)).due
    assert decided(single, None, at(23)).scheduled_for == TEN


@pytest.mark.parametrize("overlapping", [False, True])
def test_overlapping_others_a_success_settles_its_own_occurrence_alone(overlapping: bool) -> None:
    timing = Timing(HOURLY)
    settled = settled_by_success(
        timing, "load-1", at(9), at(10), at(12, 30), overlapping=overlapping
    )
    assert settled == (at(10) if overlapping else at(12))
    interval = settled_by_success(
        Timing(every(hours=1)), "load-1", at(9), at(10), at(12, 30), overlapping=overlapping
    )
    assert interval == at(12, 30)


def test_a_late_success_of_what_is_settled_takes_nothing_back() -> None:
    assert settled_by_success(Timing(HOURLY, CATCH_UP), "load-1", at(12), at(10), at(13)) == at(12)
    assert settled_by_success(Timing(HOURLY), "load-1", None, at(10), at(10, 30)) == at(10)
    assert settled_by_success(Timing(HOURLY), "load-1", None, None, at(10, 30)) is None
    assert settled_by_success(Timing(every(hours=1)), "load-1", None, None, at(10, 30)) == at(
        10, 30
    )


def test_catching_up_waits_for_the_variance_of_the_oldest() -> None:
    timing = Timing(HOURLY, CATCH_UP, variance=50 * MINUTE)
    start = at(11) + jitter("load-1", at(11), 50 * MINUTE)
    assert start > at(11, 10)
    early, due = decided(timing, TEN, at(11, 5)), decided(timing, TEN, start)
    assert (early.due, early.next_at) == (False, start)
    assert early.reason == f"not due before {as_text(start)}"
    assert due == Due(
        True,
        at(11),
        at(12) + jitter("load-1", at(12), 50 * MINUTE),
        f"due since {as_text(start)}",
    )


def test_as_much_as_the_limit_is_caught_up_with_whole() -> None:
    found = decided(Timing(HOURLY, CATCH_UP, catch_up_limit=3), TEN, at(13, 30))
    assert (found.scheduled_for, found.skipped_until) == (at(11), None)
    assert found.reason == "due since 2025-01-01 11:00:00 UTC, 3 to catch up"
    last = decided(Timing(HOURLY, CATCH_UP, catch_up_limit=3), at(12), at(13, 30))
    assert last.reason == "due since 2025-01-01 13:00:00 UTC"
