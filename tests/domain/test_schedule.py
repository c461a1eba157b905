import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.domain.schedule import (
    Cron,
    Every,
    Never,
    Once,
    Schedule,
    cron,
    every,
    once,
    schedule_from_fields,
    schedule_to_fields,
)
from headway.domain.schedule_rules import _expression_problem
from headway.domain.text import shown
from headway.errors import ScheduleError

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)

WHOLE_SECONDS = st.integers(1, 3653 * 86400).map(lambda n: timedelta(seconds=n))
MOMENTS = st.datetimes(datetime(2000, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))
EXPRESSIONS = st.sampled_from(
    [
        *["* * * * *", "*/7 * * * *", "0 9 * * MON-FRI", "30 2 * * *", "0 0 29 2 *"],
        *["15 10 L * *", "* * * * * *", "*/10 30 1-3 * * *", "0 0 0 * * 5L", "0 12 1 * MON#2"],
    ]
)
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
SCHEDULES: st.SearchStrategy[Schedule] = st.one_of(
    st.builds(Every, WHOLE_SECONDS, st.booleans()),
    st.builds(Cron, EXPRESSIONS, ZONES),
    MOMENTS.map(Once),
)


def refusal(build: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(ScheduleError) as refused:
        build(*args, **kwargs)
    message = str(refused.value)
    assert "\n" not in message
    assert "for example" in message
    assert len(message) < 300
    return message


BAD_EXPRESSIONS = [
    *["* * * *", "* * * * * * *", "60 * * * *", "*/0 * * * *", "1-0 * * * *", "0 0 30 2 *"],
    *["0 0 31 2,4,6,9,11 *", "R * * * *", "H * * * *", "H/5 * * * *", "@every 0s", "@dayly"],
    *["0 0 */31 * MON#5", "0 0 15W * *", "0 0 1 * * ; ls", "\u0663 * * * *", "0 0 * *\n*"],
    *["0\x00 * * * *", "-1 * * * *", "", "     "],
    *["*" * 40_000, "1," * 20_000 + "1 * * * *", "0 " * 20_000],
]


@pytest.mark.story(48)
@pytest.mark.parametrize("expression", BAD_EXPRESSIONS, ids=lambda text: repr(text[:20]))
def test_bad_cron_is_refused_in_one_line_within_50_ms(expression: str) -> None:
    spent = []
    for _ in range(3):
        _expression_problem.cache_clear()
        start = time.process_time()
        assert refusal(cron, expression).startswith("cron expression ")
        spent.append(time.process_time() - start)
    assert min(spent) < 0.05


@pytest.mark.parametrize("expression", [None, 5, True, b"* * * * *", ["*"] * 5])
def test_cron_must_be_text(expression: Any) -> None:
    assert "must be text" in refusal(cron, expression)


def test_cron_that_falls_into_the_skipped_hour_every_year_is_refused() -> None:
    assert "never does" in refusal(cron, "* 2 * 3 7L", tz="Europe/Berlin")


def test_day_of_month_or_weekday_is_cronsims_dialect() -> None:
    assert cron("0 0 29 2 1#1").next_after(NOON) == datetime(2025, 2, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("tz", "hint"),
    [
        ("Europe/Berln", "did you mean 'Europe/Berlin'?"),
        ("europe/berlin", "did you mean 'Europe/Berlin'?"),
        ("New_York", "must be an IANA zone"),
        ("../../etc/passwd", "must be an IANA zone"),
        ("/etc/localtime", "must be an IANA zone"),
        ("localtime", "must be an IANA zone"),
        ("posix/Europe/Berlin", "must be an IANA zone"),
        ("Europe", "must be an IANA zone"),
        ("Europe/Berlin\x00", "must be an IANA zone"),
        ("\ud800", "must be an IANA zone"),
        ("", "must be an IANA zone"),
        ("x" * 100_000, "must be an IANA zone"),
        (None, "must be an IANA zone"),
        (1, "must be an IANA zone"),
    ],
)
def test_bad_zone_is_refused_with_the_nearest_name(tz: Any, hint: str) -> None:
    assert hint in refusal(cron, "0 9 * * *", tz=tz)


@pytest.mark.parametrize(
    ("amounts", "rule"),
    [
        ({}, "from 1 second"),
        ({"seconds": 0}, "from 1 second"),
        ({"seconds": -1}, "from 1 second"),
        ({"seconds": 1e-9}, "from 1 second"),
        ({"seconds": 1.5}, "whole seconds"),
        ({"seconds": float("nan")}, "finite"),
        ({"hours": float("inf")}, "finite"),
        ({"hours": 1e18}, "from 1 second"),
        ({"seconds": 10**5000}, "from 1 second"),
        ({"days": 3654}, "from 1 second"),
        ({"hours": True}, "must be a number"),
        ({"minutes": "5"}, "must be a number"),
        ({"interval": timedelta.max}, "from 1 second"),
        ({"interval": 300}, "must be a timedelta"),
        ({"interval": timedelta(hours=1), "minutes": 5}, "cannot be combined"),
        ({"minutes": 5, "fixed_rate": 1}, "must be True or False"),
        ({"minutes": 5, "fixed_rate": "yes"}, "must be True or False"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_bad_interval_is_refused(amounts: dict[str, Any], rule: str) -> None:
    assert rule in refusal(every, **amounts)


@pytest.mark.parametrize(
    ("at", "rule"),
    [
        (datetime(2025, 1, 1), "with a timezone"),
        (datetime(2025, 1, 1).date(), "with a timezone"),
        ("2025-01-01T00:00:00Z", "with a timezone"),
        (None, "with a timezone"),
        (datetime.min.replace(tzinfo=UTC), "between 1970 and 9998"),
        (datetime.max.replace(tzinfo=UTC), "between 1970 and 9998"),
    ],
)
def test_bad_once_is_refused(at: Any, rule: str) -> None:
    assert rule in refusal(once, at)


def test_a_naive_moment_is_refused() -> None:
    assert "must have a timezone" in refusal(every(hours=1).next_after, datetime(2025, 1, 1))


@pytest.mark.parametrize(
    ("schedule", "kind", "following", "words"),
    [
        (every(minutes=90), "interval", NOON + timedelta(minutes=90), "every 1 hour 30 minutes"),
        (
            every(minutes=5, fixed_rate=True),
            "interval",
            NOON + timedelta(minutes=5),
            "every 5 minutes, at a fixed rate",
        ),
        (every(days=2), "interval", NOON + timedelta(days=2), "every 2 days"),
        (cron("0  9 * *  *"), "cron", datetime(2025, 1, 2, 9, tzinfo=UTC), "At 09:00 every day"),
        (
            cron("0 9 * * *", "Europe/Berlin"),
            "cron",
            datetime(2025, 1, 2, 8, tzinfo=UTC),
            "At 09:00 every day (Europe/Berlin)",
        ),
        (cron("5 0 12 * * *"), "cron", NOON + timedelta(seconds=5), "At 12:00:05 every day"),
        (once(NOON), "once", None, "once at 2025-01-01 12:00:00 UTC"),
        (Never(), "none", None, "only when triggered"),
    ],
)
def test_kinds(schedule: Schedule, kind: str, following: datetime | None, words: str) -> None:
    assert schedule.kind == kind
    assert schedule.next_after(NOON) == following
    assert schedule.describe() == words


def test_values_are_normalised_and_comparable() -> None:
    assert cron("0\t9  * * *") == cron("0 9 * * *")
    assert len({every(hours=1), every(minutes=60), Every(timedelta(seconds=3600))}) == 1
    berlin = NOON.astimezone(cron("0 0 * * *", "Europe/Berlin")._zone)
    assert once(berlin) == once(NOON)
    assert once(berlin).at.tzinfo is UTC


def test_the_end_of_time_is_never_not_an_error() -> None:
    last = datetime.max.replace(tzinfo=UTC)
    first = datetime.min.replace(tzinfo=UTC)
    assert every(hours=1).next_after(last) is None
    for tz in ("UTC", "Europe/Berlin", "America/New_York"):
        assert cron("0 9 * * *", tz).next_after(last) is None
        assert cron("0 9 1 1 *", tz).latest(first, first) is None


@given(schedule=SCHEDULES, moment=MOMENTS)
def test_next_is_strictly_later_and_in_utc(schedule: Schedule, moment: datetime) -> None:
    following = schedule.next_after(moment)
    if following is not None:
        assert following > moment
        assert following.tzinfo is UTC
        assert schedule.latest(moment, following) == following


@given(interval=WHOLE_SECONDS, since=MOMENTS, count=st.integers(0, 30), more=st.floats(0, 0.99))
def test_latest_boundary_of_an_interval_agrees_with_walking(
    interval: timedelta, since: datetime, count: int, more: float
) -> None:
    schedule = Every(interval)
    until = since + count * interval + more * interval
    walked = None
    position = schedule.next_after(since)
    while position is not None and position <= until:
        walked, position = position, schedule.next_after(position)
    assert schedule.latest(since, until) == walked


@given(schedule=SCHEDULES | st.just(Never()))
def test_columns_round_trip(schedule: Schedule) -> None:
    assert schedule_from_fields(**schedule_to_fields(schedule)) == schedule


def test_a_fixed_rate_is_part_of_the_schedule() -> None:
    fixed = every(minutes=5, fixed_rate=True)
    assert fixed.fixed_rate
    assert fixed == every(timedelta(minutes=5), fixed_rate=True)
    assert fixed != every(minutes=5)
    assert schedule_to_fields(fixed)["fixed_rate"] is True
    assert schedule_to_fields(every(minutes=5))["fixed_rate"] is False


@pytest.mark.parametrize(
    "columns",
    [("hourly",), ("interval",), ("cron",), ("once",), ("interval", 0), ("cron", None, "* *")],
)
def test_columns_that_make_no_schedule_are_refused(columns: tuple[Any, ...]) -> None:
    refusal(schedule_from_fields, *columns)


CRON_EXAMPLE = 'for example cron("30 9 * * MON-FRI", tz="Europe/Berlin")'
EVERY_EXAMPLE = "for example every(minutes=5)"
ONCE_EXAMPLE = "for example once(datetime(2030, 1, 31, 9, 30, tzinfo=UTC))"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: cron("* *"), "cron expression '* *' must have 5 fields, or 6 with seconds first"),
        (lambda: cron("ä"), "cron expression 'ä' must be plain ASCII"),
        (
            lambda: cron("0 0 * * *\n"),
            r"cron expression '0 0 * * *\n' must be one line without control codes",
        ),
        (
            lambda: cron("0 0 30 2 *"),
            "cron expression '0 0 30 2 *' must have a day-of-month field that can be met",
        ),
        (
            lambda: cron("60 * * * *"),
            "cron expression '60 * * * *' must have a minute field that can be met",
        ),
    ],
)
def test_a_refused_cron_expression_says_which_rule_it_breaks(build: Any, message: str) -> None:
    assert refusal(build) == f"{message}, {CRON_EXAMPLE}"


def test_an_expression_has_at_most_256_characters() -> None:
    longest = f"{','.join(['1'] * 124)} * * * *"
    longest += " " * (256 - len(longest))
    assert cron(longest).expression == longest.strip()
    assert "must have at most 256 characters" in refusal(cron, longest + " ")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: every(), "interval datetime.timedelta(0) must be from 1 second to 10 years"),
        (
            lambda: every(minutes=5, fixed_rate=None),  # type: ignore[arg-type]
            "fixed_rate None must be True or False",
        ),
        (
            lambda: every(timedelta(hours=1), minutes=5),
            "interval datetime.timedelta(seconds=3600) cannot be combined with amounts",
        ),
        (lambda: every(days=1e18, hours=-1), "days 1e+18 must be from 1 second to 10 years"),
        (lambda: every(hours=-1e18, days=1), "hours -1e+18 must be from 1 second to 10 years"),
        (lambda: every(hours=float("nan")), "hours nan must be a finite number"),
        (
            lambda: every(timedelta(seconds=1.5)),
            "interval datetime.timedelta(seconds=1, microseconds=500000) must be whole seconds",
        ),
    ],
)
def test_a_refused_interval_says_which_rule_it_breaks(build: Any, message: str) -> None:
    assert refusal(build) == f"{message}, {EVERY_EXAMPLE}"


def test_the_ends_of_what_may_be_a_schedule() -> None:
    assert every(seconds=1).interval == timedelta(seconds=1)
    assert every(days=3653).interval == timedelta(days=3653)
    assert every(days=1, hours=1, minutes=1, seconds=1).interval == timedelta(seconds=90061)
    assert every(timedelta(hours=1), fixed_rate=True).fixed_rate
    assert once(datetime(1970, 1, 1, tzinfo=UTC)).at.year == 1970
    assert once(datetime(9998, 12, 31, 23, tzinfo=UTC)).at.year == 9998
    for at in (datetime(1969, 12, 31, 23, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)):
        message = refusal(once, at)
        assert message == f"at {shown(at)} must lie between 1970 and 9998, {ONCE_EXAMPLE}"


def test_once_is_due_at_its_moment_and_not_after_it() -> None:
    second = timedelta(seconds=1)
    single = once(NOON)
    assert single.next_after(NOON - second) == NOON
    assert single.next_after(NOON) is None
    assert single.latest(NOON - second, NOON) == NOON
    assert single.latest(NOON, NOON + second) is None
    assert single.latest(NOON - second, NOON - second / 2) is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "every 1 second"),
        (61, "every 1 minute 1 second"),
        (2 * 86400 + 2 * 3600 + 120 + 2, "every 2 days 2 hours 2 minutes 2 seconds"),
        (86400, "every 1 day"),
    ],
)
def test_an_interval_in_words(seconds: int, words: str) -> None:
    assert every(seconds=seconds).describe() == words


def test_the_columns_of_a_schedule() -> None:
    empty: dict[str, Any] = {
        "interval_seconds": None,
        "cron_expression": None,
        "time_zone": None,
        "once_at": None,
        "fixed_rate": False,
    }
    filled: list[tuple[Schedule, dict[str, Any]]] = [
        (every(minutes=5), {"schedule_kind": "interval", "interval_seconds": 300}),
        (
            cron("0 9 * * *", "Europe/Berlin"),
            {
                "schedule_kind": "cron",
                "cron_expression": "0 9 * * *",
                "time_zone": "Europe/Berlin",
            },
        ),
        (once(NOON), {"schedule_kind": "once", "once_at": NOON}),
        (Never(), {"schedule_kind": "none"}),
    ]
    for schedule, columns in filled:
        assert schedule_to_fields(schedule) == empty | columns
    assert schedule_from_fields("cron", cron_expression="0 9 * * *") == cron("0 9 * * *")
    assert schedule_from_fields("none", interval_seconds=300) == Never()
    assert refusal(schedule_from_fields, "hourly") == (
        "schedule kind 'hourly' must be interval, cron, once or none, each with its own column "
        "filled, for example 'interval' with interval_seconds=300"
    )
