"""Exclusions against an oracle that looks at every single minute of the wall clock."""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.domain.exclusion_json import exclusions_from_json, exclusions_to_json
from headway.domain.exclusion_kinds import Days, Exclusion, Holidays, Then, Window
from headway.domain.exclusions import (
    check_exclusions,
    exclude,
    excluded,
    excluded_since,
    free_from,
)
from headway.domain.text import shown
from headway.errors import ScheduleError

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
NIGHT = exclude.window("22:00", "06:00")

# The day before a turn of the clock: by an hour, half an hour, at midnight, back into yesterday.
TURNS = [
    ("Europe/Berlin", datetime(2025, 3, 29)),
    ("Europe/Berlin", datetime(2025, 10, 25)),
    ("America/New_York", datetime(2025, 11, 1)),
    ("Australia/Lord_Howe", datetime(2025, 10, 4)),
    ("Australia/Lord_Howe", datetime(2025, 4, 5)),
    ("America/Havana", datetime(2025, 3, 8)),
    ("America/Havana", datetime(2025, 11, 1)),
    ("Asia/Beirut", datetime(2025, 3, 29)),
    ("Asia/Beirut", datetime(2025, 10, 25)),
    ("America/St_Johns", datetime(2010, 11, 6)),
    ("Antarctica/Troll", datetime(2025, 10, 25)),
    ("Pacific/Apia", datetime(2011, 12, 29)),
]


@lru_cache
def meaning(one: Exclusion) -> Callable[[datetime], bool]:
    """What an exclusion means, said once more and differently."""
    fields = json.loads(exclusions_to_json([one]) or "")[0]
    if one.kind == "days":
        return lambda wall: f"{wall:%a}".lower() in fields["days"]
    if one.kind == "dates":
        return lambda wall: str(wall.date()) in fields["dates"]
    start, end = fields["start"], fields["end"]
    if one.kind == "between":
        return lambda wall: start <= str(wall.date()) <= end
    if start < end:
        return lambda wall: start <= f"{wall:%H:%M}" < end
    return lambda wall: not end <= f"{wall:%H:%M}" < start


def walk(start: datetime, end: datetime) -> Iterator[datetime]:
    while start < end:
        yield start
        start += MINUTE


def from_noon(day: datetime, tz: str) -> list[datetime]:
    """A day and a half of minutes around the turn that follows *day*."""
    start = day.replace(hour=12, tzinfo=ZoneInfo(tz)).astimezone(UTC)
    return list(walk(start, start + 1.5 * DAY))


def covered(exclusions: Sequence[Exclusion], moment: datetime, tz: str) -> bool:
    wall = moment.astimezone(ZoneInfo(tz)).replace(tzinfo=None)
    return any(meaning(one)(wall) for one in exclusions)


def around(day: datetime) -> list[Exclusion]:
    """One of each kind, with edges where clocks are turned."""
    one, two, three = (day.date() + n * DAY for n in range(3))
    return [
        exclude.days(one.isoweekday() % 7),
        exclude.days(two.isoweekday() % 7, then="defer"),
        exclude.dates(one, three),
        exclude.between(two, two),
        exclude.window("22:00", "06:00"),
        exclude.window("02:30", "04:00", then="defer"),
        exclude.window("01:00", "02:30"),
        exclude.window("23:15", "00:15"),
        exclude.window("00:00", "00:30"),
        exclude.window("01:45", "01:50"),
    ]


@pytest.mark.parametrize(("tz", "day"), TURNS)
def test_around_a_turn_of_the_clock_every_minute_agrees(tz: str, day: datetime) -> None:
    minutes = from_noon(day, tz)
    kinds = around(day)
    for exclusions in [[one] for one in kinds] + [kinds[4:6], kinds[2:4] + kinds[6:8]]:
        free: datetime | None = None
        for moment in reversed(minutes):
            flag = covered(exclusions, moment, tz)
            assert (excluded(exclusions, moment, tz) is not None) == flag
            free = free if flag else moment
            # At the end of the walk the oracle cannot see far enough.
            if free is not None and (flag or moment.minute % 15 == 0):
                assert free_from(exclusions, moment, tz) == free


@pytest.mark.parametrize(("tz", "day"), TURNS)
def test_what_is_excluded_began_when_the_oracle_says(tz: str, day: datetime) -> None:
    minutes = from_noon(day, tz)
    for one in around(day):
        began: datetime | None = None
        free_before = False
        for moment in minutes:
            if not covered([one], moment, tz):
                began, free_before = None, True
                continue
            began = began or moment
            if free_before and (moment == began or moment.minute % 5 == 0):
                assert excluded_since(one, moment, tz) == began


KINDS: st.SearchStrategy[Exclusion] = st.one_of(
    st.builds(
        Days,
        st.frozensets(st.integers(0, 6), min_size=1, max_size=3),
        then=st.sampled_from(Then),
    ),
    st.builds(
        lambda days, then: exclude.dates(*days, then=then),
        st.lists(st.dates(date(2025, 1, 1), date(2025, 1, 31)), min_size=1, max_size=5),
        st.sampled_from(Then),
    ),
    st.builds(
        lambda start, length, then: exclude.between(start, start + length * DAY, then=then),
        st.dates(date(2025, 1, 1), date(2025, 1, 31)),
        st.integers(0, 6),
        st.sampled_from(Then),
    ),
    st.builds(
        lambda start, length, then: Window(
            time(*divmod(start, 60)), time(*divmod((start + length) % 1440, 60)), then=then
        ),
        st.integers(0, 1439),
        st.integers(1, 600),
        st.sampled_from(Then),
    ),
)
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"])
MOMENTS = st.datetimes(datetime(2025, 1, 1), datetime(2025, 2, 1), timezones=st.just(UTC))


@given(st.lists(KINDS, max_size=3), MOMENTS, ZONES)
def test_free_from_agrees_with_walking(
    exclusions: list[Exclusion], moment: datetime, tz: str
) -> None:
    try:
        exclusions = list(check_exclusions(exclusions))
    except ScheduleError:
        return
    found = free_from(exclusions, moment, tz)
    assert found is not None
    assert excluded(exclusions, found, tz) is None
    if found == moment:
        assert not covered(exclusions, moment, tz)
        return
    # Exclusions end at whole minutes.
    assert found.second == found.microsecond == 0
    first = moment.replace(second=0, microsecond=0) + MINUTE
    assert covered(exclusions, moment, tz)
    assert all(covered(exclusions, minute, tz) for minute in walk(first, found))


@given(st.lists(KINDS, max_size=5))
def test_json_round_trip(exclusions: list[Exclusion]) -> None:
    text = exclusions_to_json(exclusions)
    assert set(exclusions_from_json(text)) == set(exclusions)
    assert exclusions_to_json(exclusions[::-1] * 2) == text
    assert (text is None) == (not exclusions)
    assert text is None or text.isascii()
    assert exclusions_to_json(exclusions_from_json(text)) == text


def test_json_is_readable_and_holds_only_the_fields_of_its_kind() -> None:
    exclusions = [
        NIGHT,
        exclude.weekends(then="defer"),
        exclude.dates(date(2030, 12, 24), date(2030, 12, 6)),
        exclude.between(date(2030, 12, 24), date(2031, 1, 1)),
        Holidays("DE", "BY"),
    ]
    assert exclusions_to_json(exclusions) == (
        '[{"country":"DE","kind":"holidays","subdivision":"BY","then":"skip"},'
        '{"dates":["2030-12-06","2030-12-24"],"kind":"dates","then":"skip"},'
        '{"days":["sun","sat"],"kind":"days","then":"defer"},'
        '{"end":"06:00","kind":"window","start":"22:00","then":"skip"},'
        '{"end":"2031-01-01","kind":"between","start":"2030-12-24","then":"skip"}]'
    )


@pytest.mark.parametrize(
    "text",
    [
        *["", "x", "{}", "1", "null", "[" * 100_000, "[1]", "[{}]", '[{"kind":"moon"}]'],
        *['[{"kind":["days"]}]', '[{"kind":"days"}]', '[{"kind":"days","days":"sat"}]'],
        *['[{"kind":"days","days":["sat"],"more":1}]', '[{"kind":"days","days":[]}]'],
        *['[{"kind":"days","days":["sat"],"then":"run"}]', '[{"kind":"dates","dates":[5]}]'],
        *['[{"kind":"dates","dates":["2030-02-30"]}]', '[{"kind":"window","start":"22:00"}]'],
        *['[{"kind":"window","start":"22:00","end":"22:00"}]'],
        *['[{"kind":"days","days":{"sat":1}}]', '[{"kind":"dates","dates":{"2030-12-24":1}}]'],
        *['[{"kind":"window","start":"22:00","end":"25:00"}]', '[{"kind":"holidays"}]'],
        *['[{"kind":"holidays","country":5}]', '[{"kind":"days","days":["sat"],"then":[]}]'],
        *['[{"kind":"between","start":"2030-01-02","end":"2030-01-01"}]'],
    ],
    ids=lambda text: text[:50],
)
def test_json_that_is_not_known_is_refused(text: str) -> None:
    refusal(lambda: exclusions_from_json(text))


def refusal(build: Callable[[], object]) -> str:
    with pytest.raises(ScheduleError) as refused:
        build()
    message = str(refused.value)
    assert "\n" not in message
    assert "for example" in message
    assert len(message) < 300
    return message


ANY: Any = exclude
CHRISTMAS = date(2030, 12, 24)


@pytest.mark.parametrize(
    ("build", "rule"),
    [
        (lambda: exclude.days(), "at least one day"),
        (lambda: exclude.days(*range(7)), "would never run"),
        (lambda: exclude.days("funday"), "must be a weekday"),
        (lambda: exclude.days(7), "must be a weekday"),
        (lambda: ANY.days(["sat", "sun"]), "must be a weekday"),
        (lambda: ANY.weekends(then="later"), "must be 'skip' or 'defer'"),
        (lambda: ANY.weekends(then=None), "must be 'skip' or 'defer'"),
        (lambda: ANY.weekends(then=[]), "must be 'skip' or 'defer'"),
        (lambda: exclude.dates(), "must be 1 to 1000 dates"),
        (lambda: exclude.dates(*(CHRISTMAS + n * DAY for n in range(1001))), "1 to 1000"),
        (lambda: exclude.dates(datetime(2030, 12, 24)), "must be a date"),
        (lambda: ANY.dates([CHRISTMAS]), "must be a date"),
        (lambda: ANY.dates("2030-12-24"), "must be a date"),
        (lambda: exclude.dates(date.max), "between 1970 and 9998"),
        (lambda: exclude.between(CHRISTMAS, CHRISTMAS - DAY), "must not be before the start"),
        (lambda: exclude.between(CHRISTMAS, date(2041, 1, 1)), "at most 10 years"),
        (lambda: ANY.between(CHRISTMAS, None), "must be a date"),
        (lambda: exclude.between(date.min, CHRISTMAS), "between 1970 and 9998"),
        (lambda: exclude.window("22:00", "22:00"), "must differ"),
        (lambda: exclude.window("24:00", "06:00"), "must be a time of day"),
        (lambda: exclude.window("22", "06:00"), "must be a time of day"),
        (lambda: exclude.window("22:00", "6:00"), "must be a time of day"),
        (lambda: exclude.window("22:00", "\u0660\u0666:00"), "must be a time of day"),
        (lambda: ANY.window(22, 6), "must be a time of day"),
        (lambda: exclude.window(time(22, tzinfo=UTC), "06:00"), "must be a time of day"),
        (lambda: exclude.window(time(22, 0, 0, 1), "06:00"), "must be a time of day"),
        (lambda: check_exclusions([NIGHT, exclude.window("06:00", "22:00")]), "would never run"),
        (
            lambda: check_exclusions([exclude.weekends(), exclude.days(1, 2, 3, 4, 5)]),
            "would never run",
        ),
        (lambda: check_exclusions(NIGHT), "must be a list"),  # type: ignore[arg-type]
        (lambda: check_exclusions(["weekends"]), "must come from exclude"),  # type: ignore[list-item]
        (lambda: check_exclusions([NIGHT] * 51), "at most 50"),
    ],
)
def test_nonsense_is_refused_when_declared(build: Callable[[], object], rule: str) -> None:
    assert rule in refusal(build)


def test_windows_that_leave_a_minute_are_accepted() -> None:
    kept = check_exclusions([NIGHT, exclude.window("06:01", "22:00"), exclude.weekends()])
    assert len(kept) == 3
    friday = datetime(2025, 1, 3, 12, tzinfo=UTC)
    assert free_from(kept, friday, "UTC") == datetime(2025, 1, 6, 6, tzinfo=UTC)


def test_order_and_repetition_mean_nothing() -> None:
    one, two = exclude.weekends(), NIGHT
    assert check_exclusions([one, two, one]) == check_exclusions([two, one])


def test_skipping_wins_over_deferring() -> None:
    skip, defer = exclude.weekends(), exclude.window("22:00", "06:00", then="defer")
    saturday_night = datetime(2025, 1, 4, 23, tzinfo=UTC)
    assert excluded([defer, skip], saturday_night, "UTC") is skip
    assert excluded([defer], saturday_night, "UTC") is defer


def test_the_wall_clock_of_the_zone_decides() -> None:
    night_in_tokyo = datetime(2025, 1, 1, 14, tzinfo=UTC)
    assert excluded([NIGHT], night_in_tokyo, "Asia/Tokyo")
    assert excluded([NIGHT], night_in_tokyo, "UTC") is None
    assert excluded([NIGHT], night_in_tokyo.astimezone(ZoneInfo("Asia/Tokyo")), "UTC") is None


def test_edges_of_a_window() -> None:
    edges = [(21, 59, 59, False), (22, 0, 0, True), (5, 59, 59, True), (6, 0, 0, False)]
    for hour, minute, second, expected in edges:
        moment = datetime(2025, 1, 1, hour, minute, second, tzinfo=UTC)
        assert bool(excluded([NIGHT], moment, "UTC")) is expected


def test_the_end_of_time_is_never_not_an_error() -> None:
    last = datetime(9999, 12, 31, 23, 30, tzinfo=UTC)
    assert free_from([NIGHT], last, "UTC") is None


@pytest.mark.parametrize(
    ("exclusion", "words"),
    [
        (exclude.weekends(), "on sun, sat"),
        (NIGHT, "between 22:00 and 06:00"),
        (exclude.window("22:00:30", time(6)), "between 22:00:30 and 06:00"),
        (exclude.dates(CHRISTMAS, CHRISTMAS + DAY), "on 2030-12-24 and 1 other date"),
        (
            exclude.dates(*(CHRISTMAS + n * DAY for n in range(3))),
            "on 2030-12-24 and 2 other dates",
        ),
        (Holidays("DE"), "on public holidays of DE"),
    ],
)
def test_words(exclusion: Exclusion, words: str) -> None:
    assert exclusion.describe() == words
    assert repr(exclude) == "exclude"


MANY = [CHRISTMAS + n * DAY for n in range(1001)]
DAYS_EXAMPLE = 'for example exclude.days("sat", "sun")'
DATES_EXAMPLE = "for example exclude.dates(date(2030, 12, 24))"
BETWEEN_EXAMPLE = "for example exclude.between(date(2030, 12, 24), date(2031, 1, 1))"
WINDOW_EXAMPLE = 'for example exclude.window("22:00", "06:00")'
LIST_EXAMPLE = 'for example [exclude.weekends(), exclude.window("22:00", "06:00")]'
JSON_EXAMPLE = 'for example [{"days":["sat"],"kind":"days","then":"skip"}]'


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: exclude.days(), f"days () must name at least one day, {DAYS_EXAMPLE}"),
        (
            lambda: exclude.days(*range(7)),
            f"days [0, 1, 2, 3, 4, 5, 6] would never run: all seven, {DAYS_EXAMPLE}",
        ),
        (
            lambda: exclude.days("funday"),
            f"day 'funday' must be a weekday by name, or 0 (Sunday) to 6, {DAYS_EXAMPLE}",
        ),
        (
            lambda: ANY.weekends(then="later"),
            "then 'later' must be 'skip' or 'defer', for example exclude.weekends(then=\"defer\")",
        ),
        (
            lambda: exclude.dates(*MANY),
            f"number of dates 1001 must be 1 to 1000 dates, {DATES_EXAMPLE}",
        ),
        (lambda: ANY.dates("now"), f"date 'now' must be a date, {DATES_EXAMPLE}"),
        (
            lambda: ANY.between(date(1969, 12, 31), CHRISTMAS),
            f"date datetime.date(1969, 12, 31) must lie between 1970 and 9998, {BETWEEN_EXAMPLE}",
        ),
        (
            lambda: exclude.between(CHRISTMAS, CHRISTMAS - DAY),
            "end datetime.date(2030, 12, 23) must not be before the start 2030-12-24, "
            f"{BETWEEN_EXAMPLE}",
        ),
        (
            lambda: exclude.between(CHRISTMAS, CHRISTMAS + 3654 * DAY),
            "end datetime.date(2040, 12, 25) must be at most 10 years after the start, "
            f"{BETWEEN_EXAMPLE}",
        ),
        (
            lambda: exclude.window("22:00", time(22)),
            "end '22:00' must differ from the start; the whole day would never run, "
            f"{WINDOW_EXAMPLE}",
        ),
        (
            lambda: exclude.window("22", "06:00"),
            f"start '22' must be a time of day as HH:MM or HH:MM:SS, {WINDOW_EXAMPLE}",
        ),
        (
            lambda: ANY.window("22:00", 6),
            f"end 6 must be a time of day as HH:MM or HH:MM:SS, {WINDOW_EXAMPLE}",
        ),
        (
            lambda: check_exclusions(5),  # type: ignore[arg-type]
            f"exclusions 5 must be a list, {LIST_EXAMPLE}",
        ),
        (
            lambda: check_exclusions(["now"]),  # type: ignore[list-item]
            f"exclusion 'now' must come from exclude, {LIST_EXAMPLE}",
        ),
        (
            lambda: check_exclusions([NIGHT] * 51),
            f"number of exclusions 51 must be at most 50, {LIST_EXAMPLE}",
        ),
        (
            lambda: check_exclusions([NIGHT, exclude.window("06:00", "22:00")]),
            "exclusions 'between 22:00 and 06:00; between 06:00 and 22:00' "
            f"would never run: no time is left, {LIST_EXAMPLE}",
        ),
        (
            lambda: exclusions_from_json("x"),
            f"exclusions 'x' must be a JSON list, {JSON_EXAMPLE}",
        ),
        (
            lambda: exclusions_from_json("{}"),
            f"exclusions '{{}}' must be a JSON list, {JSON_EXAMPLE}",
        ),
        (
            lambda: exclusions_from_json('[{"kind":"moon"}]'),
            "exclusion {'kind': 'moon'} must have a known kind: between, dates, days, holidays, "
            f"window, {JSON_EXAMPLE}",
        ),
        (
            lambda: exclusions_from_json('[{"kind":"dates","dates":"2030"}]'),
            "exclusion {'kind': 'dates', 'dates': '2030'} must have the fields of kind dates, and "
            f"no others, {JSON_EXAMPLE}",
        ),
        (
            lambda: Holidays("DE", "x" * 65),
            f"subdivision {shown('x' * 65)} must be a short code, "
            'for example exclude.holidays("DE", subdivision="BY")',
        ),
        (
            lambda: Holidays("DÉ"),
            "country 'DÉ' must be a short code, "
            'for example exclude.holidays("DE", subdivision="BY")',
        ),
    ],
)
def test_a_refusal_names_the_field_the_value_the_rule_and_an_example(
    build: Callable[[], object], message: str
) -> None:
    assert refusal(build) == message


def test_the_ends_of_what_is_taken() -> None:
    assert len(exclude.dates(*MANY[:1000]).dates) == 1000
    assert exclude.between(CHRISTMAS, CHRISTMAS).covers(datetime(2030, 12, 24, 23))
    assert exclude.between(CHRISTMAS, CHRISTMAS + 3653 * DAY)
    assert exclude.dates(date(1970, 1, 1), date(9998, 12, 31))
    assert exclude.days(*range(6)).days == frozenset(range(6))
    assert len(check_exclusions([NIGHT] * 50)) == 1
    assert Holidays("x" * 64, "y" * 64).describe() == f"on public holidays of {'x' * 64}-{'y' * 64}"
    assert exclude.window(time(22, 0, 30), "06:00:01") == Window(time(22, 0, 30), time(6, 0, 1))
    assert exclude.days(" Monday ", "TUE", 0).days == frozenset({0, 1, 2})


@pytest.mark.parametrize(
    "made",
    [
        exclude.weekends(then="defer"),
        exclude.days("mon", then="defer"),
        exclude.dates(CHRISTMAS, then="defer"),
        exclude.between(CHRISTMAS, CHRISTMAS, then="defer"),
        exclude.window("22:00", "06:00", then="defer"),
    ],
)
def test_each_kind_may_defer(made: Exclusion) -> None:
    assert made.then is Then.DEFER
    text = exclusions_to_json([made])
    assert exclusions_from_json(text) == (made,)
    assert exclusions_from_json((text or "").replace(',"then":"defer"', ""))[0].then is Then.SKIP


def test_days_of_the_week_add_up() -> None:
    """Six days of one and the seventh of another leave no time; deferring changes nothing."""
    six, sunday = exclude.days(*range(1, 7)), exclude.days("sun", then="defer")
    assert "no time is left" in refusal(lambda: check_exclusions([six, sunday]))
    assert check_exclusions([six]) == (six,)


def test_what_becomes_of_an_occurrence_is_checked_without_the_builder_too() -> None:
    later: Any = "later"
    made: Any = "defer"
    assert Window(time(22), time(6), then=made).then is Then.DEFER
    assert "must be 'skip' or 'defer'" in refusal(lambda: Days(frozenset({6}), then=later))
