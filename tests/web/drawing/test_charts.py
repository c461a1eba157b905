"""Charts, bars and strips draw what they are given, within their bounds."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.web.drawing.bars import step_bar
from headway.web.drawing.occupancy import occupancy, occupancy_cells, occupancy_words, slots_text
from headway.web.drawing.strip import HEIGHT, Ran, history_strip
from headway.web.drawing.throughput import FLOOR, TOP, Tally, throughput_chart
from headway.web.drawing.ticks import number_ticks, time_axis, time_ticks
from tests.web.drawing.pictures import HOSTILE, classed, elements, harmless, parsed, size, texts

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
    chart = throughput_chart(tallies([(3, 1), (0, 0), (2, 0), (0, 4)]), MINUTE, "Runs")
    rows = [["".join(cell.itertext()) for cell in row] for row in elements(chart, "tr")]
    assert rows == [
        ["Begins", "Completed", "Failed"],
        ["2026-01-05 09:07 UTC", "3", "1"],
        ["2026-01-05 09:09 UTC", "2", "0"],
        ["2026-01-05 09:10 UTC", "0", "4"],
    ]


def test_a_bar_says_its_numbers_under_the_pointer() -> None:
    chart = throughput_chart(tallies([(1_200, 1)]), MINUTE, "Runs")
    [hover] = elements(chart, "title")
    assert hover.text == "05 Jan 09:07 UTC, 1 min: 1,200 completed, 1 failed"
    assert hover.get("data-instant") == "2026-01-05T09:07:00Z"


def test_a_chart_says_in_words_what_it_shows() -> None:
    chart = throughput_chart(tallies([(3, 1), (1, 0)]), MINUTE, "Runs")
    [plot] = classed(chart, "chart-plot")
    assert plot.get("aria-label") == "Runs: 4 runs completed, 1 failed"
    [caption] = elements(chart, "caption")
    assert caption.text == "Runs, in steps of 1 min: 4 runs completed, 1 failed"
    [axis] = classed(chart, "chart-axis")
    assert [one.text for one in axis] == ["0", "1", "2", "3", "4"]
    assert [size(one, "y") - 4 for one in axis] == [156, 119.5, 83, 46.5, 10]
    lines = [*classed(chart, "tick-floor"), *classed(chart, "tick-line")][:5]
    assert [size(one, "y1") for one in lines] == [size(one, "y2") for one in lines]
    assert [size(one, "y1") for one in lines] == [156, 119.5, 83, 46.5, 10]


def test_bars_stand_in_their_columns_which_share_the_width() -> None:
    chart = throughput_chart(tallies([(1, 0), (0, 0), (0, 2), (1, 1)]), MINUTE, "Runs")
    columns = [(size(one, "x"), size(one, "width")) for one in classed(chart, "chart-column")]
    assert columns == [(0, 25), (25, 25), (50, 25), (75, 25)]
    assert [size(one, "x") for one in classed(chart, "is-completed")] == [2.75, 77.75]
    assert [size(one, "x") for one in classed(chart, "is-failed")] == [52.75, 77.75]
    assert {size(one, "width") for one in classed(chart, "chart-bar")} == {19.5}


def test_the_axis_of_a_chart_reaches_from_its_first_bar_to_the_end_of_its_last() -> None:
    chart = throughput_chart(tallies([(1, 0)] * 60), MINUTE, "Runs")
    assert [one for one in texts(chart) if one.startswith(("09:", "10:"))] == [
        "09:10", "09:20", "09:30", "09:40", "09:50", "10:00",
    ]  # fmt: skip
    assert not list(elements(throughput_chart([], MINUTE, "Runs"), "title"))


@pytest.mark.parametrize(
    ("span", "shown"),
    [
        (timedelta(seconds=12), "09:07:00 09:07:02 09:07:04 09:07:06 09:07:08 09:07:10 09:07:12"),
        (timedelta(minutes=5), "09:07 09:08 09:09 09:10 09:11 09:12"),
        (timedelta(hours=6), "10:00 11:00 12:00 13:00 14:00 15:00"),
        (timedelta(days=3), "12:00 00:00 12:00 00:00 12:00 00:00"),
        (timedelta(days=5), "06 Jan 07 Jan 08 Jan 09 Jan 10 Jan"),
        (timedelta(days=7), "07 Jan 09 Jan 11 Jan"),
    ],
)
def test_an_axis_of_time_has_round_moments(span: timedelta, shown: str) -> None:
    ticks = time_ticks(NINE, NINE + span)
    assert " ".join(tick.text for tick in ticks) == shown
    assert [tick.fraction for tick in ticks] == [(tick.at - NINE) / span for tick in ticks]


def test_texts_at_the_ends_of_an_axis_stay_inside_it() -> None:
    ticks = time_ticks(NINE, NINE + timedelta(minutes=5))
    pieces = [parsed(one) for one in time_axis(ticks, 5, 10, 20)]
    lines, written = pieces[::2], pieces[1::2]
    assert [one.get("text-anchor") for one in written] == ["start", *["middle"] * 4, "end"]
    assert [size(one, "x") for one in written] == [0, 20, 40, 60, 80, 100]
    assert [(size(one, "x1"), size(one, "x2")) for one in lines] == [
        (at, at) for at in (0, 20, 40, 60, 80, 100)
    ]
    assert {(one.get("y1"), one.get("y2")) for one in lines} == {("5", "10")}
    assert {one.get("y") for one in written} == {"20"}
    assert written[1].get("data-instant") == "2026-01-05T09:08:00Z"
    assert {one.get("data-style") for one in written} == {"time"}


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


@pytest.mark.parametrize(
    ("active", "cap", "cells"),
    [
        (3, None, [("slot slot-open", 0, 100)]),
        (3, 2, [("slot slot-over", 0, 100)]),
        (1, 2, [("slot slot-taken", 0, 49.4), ("slot", 50.6, 49.4)]),
        (0, 40, [("slot", 0, 100)]),
        (5, 40, [("slot", 0, 100), ("slot slot-taken", 0, 12.5)]),
        (40, 40, [("slot", 0, 100), ("slot slot-full", 0, 100)]),
    ],
)
def test_a_bar_of_slots_has_a_cell_for_each_while_there_are_few(
    active: int, cap: int | None, cells: list[tuple[str, float, float]]
) -> None:
    bar = occupancy(active, cap, waiting=3)
    assert [
        (one.get("class"), size(one, "x"), size(one, "width")) for one in classed(bar, "slot")
    ] == cells
    label = parsed(bar).get("aria-label")
    assert label == occupancy_words(active, cap, 3) == elements(bar, "title")[0].text
    assert occupancy_words(active, cap) + ", 3 waiting" == label


def test_a_bar_of_slots_can_be_drawn_at_a_place() -> None:
    cells = classed(f"<g>{occupancy_cells(1, 2, place=(10, 5, 200))}</g>", "slot")
    assert [(size(one, "x"), size(one, "width")) for one in cells] == [(10, 98.8), (111.2, 98.8)]
    assert {one.get("y") for one in cells} == {"5"}


def test_slots_are_told_in_words_and_numbers() -> None:
    assert occupancy_words(1, 1) == "1 of 1 slot taken"
    assert occupancy_words(1_200, None) == "1,200 active, no cap"
    assert [slots_text(3, 4), slots_text(3, None)] == ["3/4", "3"]


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


def test_a_strip_tells_of_each_run_how_it_ended_and_leads_to_it() -> None:
    runs = [
        Ran("cancelled", 900.0),
        Ran("completed", 1.0),
        Ran("failed", 4.0, "late", "/executions/2"),
        Ran("in_progress"),
    ]
    strip = history_strip(runs[1:], places=4)
    assert [one.text for one in elements(strip, "title")] == [
        "completed · in 1.0 s", "failed · in 4.0 s · late", "running",
    ]  # fmt: skip
    [link] = elements(strip, "a")
    assert link.get("href") == "/executions/2" and "is-failed" in link[0].attrib["class"]
    assert [size(bar, "x") for bar in classed(strip, "run")] == [6, 12, 18]
    assert [size(bar, "height") for bar in classed(strip, "run")] == [14.5, 24, 5]
    [dot] = classed(strip, "strip-free")
    assert size(dot, "cx") == 2
    assert parsed(strip).get("aria-label") == "last 3 runs: 1 completed, 1 failed, 1 running"
    assert parsed(strip).get("role") == "group"
    newest = history_strip(runs[:3], places=2)
    assert [size(bar, "height") for bar in classed(newest, "run")] == [14.5, 24]


def test_a_strip_of_few_runs_says_so() -> None:
    one, none = history_strip([Ran("failed", 0.0)]), history_strip([])
    assert parsed(one).get("aria-label") == "one run: 1 failed"
    assert parsed(none).get("aria-label") == "no runs yet"
    assert parsed(one).get("role") == "img"
    [bar] = classed(one, "run")
    assert size(bar, "height") == HEIGHT


@pytest.mark.parametrize(
    ("begins", "seconds", "whole", "label", "place", "words"),
    [
        (1, 2, 4, "load", (25, 50), "load: 2.0 s, 1.0 s after the start"),
        (3, 2, 4, "", (60, 40), "2.0 s, 3.0 s after the start"),
        (4, 0, 4, "", (99.4, 0.6), "0 ms, 4.0 s after the start"),
    ],
)
def test_a_step_is_where_its_time_is(
    begins: float, seconds: float, whole: float, label: str, place: object, words: str
) -> None:
    made = step_bar(begins, seconds, whole, "failed", label)
    [bar] = classed(made, "run")
    assert (size(bar, "x"), size(bar, "width")) == place
    assert "is-failed" in bar.attrib["class"]
    assert parsed(made).get("aria-label") == elements(made, "title")[0].text == words
    assert len(classed(made, "step-track")) == 1


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
