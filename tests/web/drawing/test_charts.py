"""Charts, bars and strips draw what they are given, within their bounds."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.web.drawing.bars import step_bar
from headway.web.drawing.occupancy import occupancy, occupancy_words
from headway.web.drawing.strip import HEIGHT, Ran, history_strip
from headway.web.drawing.throughput import FLOOR, TOP, Tally, throughput_chart
from headway.web.drawing.ticks import number_ticks, time_ticks
from tests.web.drawing.pictures import HOSTILE, classed, elements, harmless, parsed, size

NINE = datetime(2026, 1, 5, 9, 7, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
COUNTS = st.integers(0, 5_000)


def tallies(counts: list[tuple[int, int]]) -> list[Tally]:
    return [Tally(NINE + MINUTE * at, *count) for at, count in enumerate(counts)]


@given(st.lists(st.tuples(COUNTS, COUNTS), max_size=60))
def test_every_bar_of_the_throughput_is_as_high_as_its_count(counts: list[tuple[int, int]]) -> None:
    chart = throughput_chart(tallies(counts), MINUTE, "Runs")
    assert harmless(chart)
    top = number_ticks(max((sum(count) for count in counts), default=0))[-1]
    bars = classed(chart, "chart-bar")
    assert len(bars) == sum((one > 0) + (two > 0) for one, two in counts)
    heights = sum(size(bar, "height") for bar in bars)
    assert heights == pytest.approx((FLOOR - TOP) * sum(map(sum, counts)) / top, abs=0.2)
    for bar in bars:
        assert size(bar, "y") >= TOP - 0.01
        assert size(bar, "y") + size(bar, "height") <= FLOOR + 0.01
        assert size(bar, "x") >= 0
        assert size(bar, "x") + size(bar, "width") <= 100.01


def test_what_failed_stands_on_what_completed() -> None:
    chart = throughput_chart(tallies([(3, 1)]), MINUTE, "Runs")
    [completed], [failed] = classed(chart, "is-completed"), classed(chart, "is-failed")
    assert size(completed, "y") + size(completed, "height") == FLOOR
    assert size(failed, "y") + size(failed, "height") == pytest.approx(
        size(completed, "y"), abs=0.01
    )


def test_the_throughput_is_also_a_table_of_what_happened() -> None:
    chart = throughput_chart(tallies([(3, 1), (0, 0), (2, 0)]), MINUTE, "Runs")
    rows = [["".join(cell.itertext()) for cell in row] for row in elements(chart, "tr")]
    assert rows == [
        ["Begins", "Completed", "Failed"],
        ["2026-01-05 09:07 UTC", "3", "1"],
        ["2026-01-05 09:09 UTC", "2", "0"],
    ]


def test_a_bar_says_its_numbers_under_the_pointer() -> None:
    chart = throughput_chart(tallies([(1_200, 1)]), MINUTE, "Runs")
    [hover] = elements(chart, "title")
    assert hover.text == "05 Jan 09:07 UTC, 1 min: 1,200 completed, 1 failed"
    assert hover.get("data-instant") == "2026-01-05T09:07:00Z"


@given(st.integers(0, 10**7))
def test_number_ticks_are_even_few_and_reach_the_highest(highest: int) -> None:
    ticks = number_ticks(highest)
    assert ticks[0] == 0
    assert ticks[-1] >= highest
    assert 2 <= len(ticks) <= 6
    assert len({after - before for before, after in pairwise(ticks)}) == 1


@given(st.integers(1, 400 * 86_400))
def test_time_ticks_are_even_and_within_the_span(seconds: int) -> None:
    ticks = time_ticks(NINE, NINE + timedelta(seconds=seconds))
    assert len(ticks) <= 7
    assert all(0 <= tick.fraction <= 1 for tick in ticks)
    gaps = {after.at - before.at for before, after in pairwise(ticks)}
    assert len(gaps) <= 1


@given(st.integers(0, 200), st.none() | st.integers(0, 200))
def test_an_occupancy_bar_shows_the_taken_share_and_stays_inside(
    active: int, cap: int | None
) -> None:
    bar = occupancy(active, cap)
    cells = classed(bar, "slot")
    assert cells
    for cell in cells:
        assert size(cell, "x") + size(cell, "width") <= 100.1
    taken = [*classed(bar, "slot-taken"), *classed(bar, "slot-full")]
    if cap is not None and 0 < cap <= 20 and active <= cap:
        assert len(taken) == active
        assert len(cells) == cap
    if cap is not None and active > cap:
        assert len(classed(bar, "slot-over")) == 1


def test_a_full_group_looks_full() -> None:
    assert len(classed(occupancy(3, 4), "slot-taken")) == 3
    assert len(classed(occupancy(4, 4), "slot-full")) == 4
    assert occupancy_words(4, 4, waiting=9) == "4 of 4 slots taken, 9 waiting"


RUNS = st.builds(
    Ran,
    st.sampled_from(["completed", "failed", "cancelled", "in_progress"]),
    st.none() | st.floats(0, 1e6),
    st.text(max_size=10),
    st.none() | st.just("/executions/1"),
)


@given(st.lists(RUNS, max_size=30))
def test_a_strip_shows_the_newest_runs_inside_its_box(runs: list[Ran]) -> None:
    strip = history_strip(runs, places=20)
    assert harmless(strip)
    bars = classed(strip, "run")
    assert len(bars) == min(len(runs), 20)
    assert len(classed(strip, "strip-free")) == 20 - len(bars)
    for bar in bars:
        assert 0 <= size(bar, "x") <= 120 - 4
        assert size(bar, "y") >= 0
        assert size(bar, "y") + size(bar, "height") == pytest.approx(HEIGHT, abs=0.01)


def test_the_longer_run_is_the_higher_bar() -> None:
    short, long = classed(history_strip([Ran("completed", 1), Ran("failed", 9)]), "run")
    assert size(short, "height") < size(long, "height")
    assert "is-failed" in long.attrib["class"]


@given(st.floats(0, 1e5), st.floats(0, 1e5), st.floats(0, 1e5))
def test_a_step_is_seen_and_stays_on_its_line(begins: float, seconds: float, whole: float) -> None:
    [bar] = classed(step_bar(begins, seconds, whole, "completed"), "run")
    assert size(bar, "width") > 0.5
    assert size(bar, "x") >= 0
    assert size(bar, "x") + size(bar, "width") <= 100.01


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_only_shown(text: str) -> None:
    for picture in (
        throughput_chart(tallies([(1, 1)]), MINUTE, "Runs"),
        history_strip([Ran(text, 1, text, f"/executions/{text}")]),
        step_bar(0, 1, 2, text, text),
    ):
        assert harmless(picture)
        assert "class" in parsed(picture).attrib
