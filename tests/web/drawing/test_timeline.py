"""The timeline: runs on one line never overlap, and every run is where its time is."""

from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.web.drawing.lanes import lanes
from headway.web.drawing.timeline import MOST_LANES, Row, Stretch, timeline
from tests.web.drawing.pictures import HOSTILE, classed, elements, harmless, parsed, size, texts

NINE = datetime(2026, 1, 5, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)


def run(begin: float, end: float | None, state: str = "completed", name: str = "load") -> Stretch:
    moments = [None if one is None else NINE + HOUR * one for one in (begin, end)]
    assert moments[0] is not None
    return Stretch(name, state, moments[0], moments[1], "/executions/1")


def picture(*runs: Stretch, now: float = 1.0) -> str:
    return timeline([Row("users", "/groups/users", runs)], NINE, NINE + HOUR, NINE + HOUR * now)


SPANS = st.tuples(st.integers(0, 50), st.integers(0, 20)).map(lambda one: (one[0], sum(one)))


@given(st.lists(SPANS, max_size=40), st.sampled_from([0, 2]))
def test_spans_on_one_line_do_not_overlap(spans: list[tuple[int, int]], gap: int) -> None:
    lines = lanes(spans, gap)
    for (one, line), (other, other_line) in combinations(zip(spans, lines, strict=True), 2):
        if line == other_line:
            assert one[1] + gap <= other[0] or other[1] + gap <= one[0]


@given(st.lists(SPANS.filter(lambda one: one[0] < one[1]), min_size=1, max_size=40))
def test_there_are_no_more_lines_than_spans_at_once(spans: list[tuple[int, int]]) -> None:
    at_once = max(sum(a <= at < b for a, b in spans) for at in range(80))
    assert max(lanes(spans)) + 1 == at_once


def test_a_bar_is_where_its_time_is() -> None:
    [bar] = classed(picture(run(0.25, 0.75)), "stretch")
    assert (size(bar, "x"), size(bar, "width")) == (25, 50)


def test_what_still_runs_reaches_to_now() -> None:
    [bar] = classed(picture(run(0.5, None, "in_progress"), now=0.75), "stretch")
    assert (size(bar, "x"), size(bar, "width")) == (50, 25)
    assert "so far" in "".join(texts(picture(run(0.5, None))))


@given(st.lists(st.tuples(st.floats(-1, 2), st.none() | st.floats(0, 2)), max_size=30))
def test_every_bar_is_seen_inside_the_picture(spans: list[tuple[float, float | None]]) -> None:
    runs = [run(begin, None if took is None else begin + took) for begin, took in spans]
    made = picture(*runs)
    height = size(parsed(made), "height")
    for bar in classed(made, "stretch"):
        assert 0 <= size(bar, "x") <= 100 - size(bar, "width") + 0.01
        assert size(bar, "width") >= 0.19
        assert size(bar, "y") + size(bar, "height") <= height


def test_more_runs_at_once_than_there_is_room_for_are_counted() -> None:
    made = picture(*(run(0, 1) for _ in range(MOST_LANES + 3)))
    assert len(classed(made, "stretch")) == MOST_LANES
    assert f"{MOST_LANES + 3} runs, 3 of them not shown" in list(texts(made))


def test_a_run_says_what_it_was_and_how_long_it_took() -> None:
    runs = [run(0, 0.5), run(0.5, 0.51, "handed_back", "sort"), run(0.6, None, "in_progress")]
    made = picture(*runs, now=0.75)
    words = ["load: completed, 30 min", "sort: handed back, 36.0 s", "load: running, 9 min so far"]
    links = [one for one in elements(made, "a") if one.get("aria-label")]
    assert [one.get("aria-label") for one in links] == words
    assert {one.get("href") for one in links} == {"/executions/1"}
    titles = elements(made, "title")
    assert [one.get("data-words") for one in titles] == words
    assert [one.get("data-instant") for one in titles] == [
        "2026-01-05T09:00:00Z", "2026-01-05T09:30:00Z", "2026-01-05T09:36:00Z",
    ]  # fmt: skip
    assert titles[0].text == "05 Jan 09:00 UTC, load: completed, 30 min"
    assert ["is-handed_back" in one.attrib["class"] for one in classed(made, "stretch")] == [
        False, True, False,
    ]  # fmt: skip
    assert [one.text for one in classed(made, "stretch-name")] == ["load", "load"], "if wide enough"


def test_a_group_is_named_with_a_link_and_how_much_ran() -> None:
    rows = [Row("users", "/groups/users", [run(0, 1), run(0, 1)]), Row("rest", None, [run(0, 1)])]
    made = timeline(rows, NINE, NINE + HOUR, NINE)
    assert [one.text for one in classed(made, "row-name")] == ["users", "rest"]
    assert [one.text for one in classed(made, "row-count")] == ["2 runs", "1 run"]
    links = [one for one in elements(made, "a") if not one.get("aria-label")]
    assert [one.get("href") for one in links] == ["/groups/users"]
    assert parsed(made).get("aria-label") == "2 groups, 3 runs"
    ends = [size(one, "y1") for one in classed(made, "row-line")]
    first = classed(made, "stretch")[1]
    assert ends == [28, size(first, "y") + 18 + 8]
    assert size(parsed(made), "height") == ends[1] + 26 + 18 + 8


def test_a_line_marks_the_present_if_it_is_in_the_picture() -> None:
    [line] = classed(picture(run(0, 1), now=0.25), "now-line")
    assert (line.get("x1"), line.get("x2")) == ("25%", "25%")
    assert size(line, "y2") == size(parsed(picture(run(0, 1))), "height")
    assert len(classed(picture(run(0, 1), now=0), "now-line")) == 1
    assert len(classed(picture(run(0, 1), now=1), "now-line")) == 1
    assert classed(picture(run(0, 1), now=-0.1), "now-line") == []
    assert classed(picture(run(0, 1), now=1.1), "now-line") == []


def test_the_axis_shows_the_time_of_the_whole_picture() -> None:
    made = picture(run(0, 1))
    shown = [one.text for one in classed(made, "tick-text")]
    assert shown == ["09:00", "09:10", "09:20", "09:30", "09:40", "09:50", "10:00"]
    assert {one.get("y2") for one in classed(made, "tick-line")} == {parsed(made).get("height")}


def test_what_ran_beyond_the_ends_is_cut_off() -> None:
    bars = classed(picture(run(-0.5, 0.5), run(0.5, 1.5)), "stretch")
    assert [(size(one, "x"), size(one, "width")) for one in bars] == [(0, 50), (50, 50)]


def test_groups_lie_below_one_another() -> None:
    rows = [Row(name, None, [run(0, 1, name=name)]) for name in ("a", "b")]
    made = timeline(rows, NINE, NINE + HOUR, NINE)
    first, second = classed(made, "stretch")
    assert size(first, "y") + size(first, "height") < size(second, "y")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_stay_names(text: str) -> None:
    row = Row(text, f"/groups/{text}", [run(0, 1, text, text)])
    assert harmless(timeline([row], NINE, NINE + HOUR, NINE))
