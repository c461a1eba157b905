"""The timeline: runs on one line never overlap, and every run is where its time is."""

from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.web.drawing.lanes import lanes
from headway.web.drawing.timeline import MOST_LANES, Row, Stretch, timeline
from tests.web.drawing.pictures import HOSTILE, classed, harmless, parsed, size, texts

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


def test_groups_lie_below_one_another() -> None:
    rows = [Row(name, None, [run(0, 1, name=name)]) for name in ("a", "b")]
    made = timeline(rows, NINE, NINE + HOUR, NINE)
    first, second = classed(made, "stretch")
    assert size(first, "y") + size(first, "height") < size(second, "y")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_stay_names(text: str) -> None:
    row = Row(text, f"/groups/{text}", [run(0, 1, text, text)])
    assert harmless(timeline([row], NINE, NINE + HOUR, NINE))
