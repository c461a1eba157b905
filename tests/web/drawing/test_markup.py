"""Elements are well formed and whatever they show is only text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from headway.web.drawing.markup import (
    columns_of,
    element,
    linked,
    number,
    percent,
    shortened,
    title,
)
from headway.web.drawing.words import compact, counted, lasted, state_class, state_word
from tests.web.drawing.pictures import HOSTILE, harmless, parsed

TEXT = st.text(alphabet=st.characters(), max_size=60)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    picture = element("svg", title(text), element("rect", aria_label=shortened(text, 30)))
    assert harmless(picture)
    assert picture.encode("utf-8")


def test_children_that_are_markup_are_not_escaped_again() -> None:
    assert element("g", Markup("<rect/>"), "<rect/>") == "<g><rect/>&lt;rect/&gt;</g>"


def test_an_address_cannot_leave_its_attribute() -> None:
    link = linked(element("rect"), '/groups/"><script>')
    assert parsed(link).get("href") == '/groups/"><script>'


@given(TEXT, st.integers(4, 40))
def test_a_shortened_name_fits_and_is_on_one_line(text: str, columns: int) -> None:
    short = shortened(text, columns)
    assert columns_of(short) <= columns
    assert "\n" not in short
    parsed(element("text", short))


def test_a_name_that_fits_is_not_touched() -> None:
    assert shortened("load-users", 10) == "load-users"


def test_both_ends_of_a_long_name_are_kept() -> None:
    short = shortened("warehouse-customers-0017", 12)
    assert short.startswith("wareh")
    assert short.endswith("0017")


def test_wide_characters_take_two_columns() -> None:
    assert columns_of("負荷-1") == 6
    assert shortened("負荷負荷負荷", 8) == "負…負荷"
    assert shortened("two\nlines\tand", 20) == "two lines and"


def test_attributes_are_written_as_svg_wants_them() -> None:
    made = element("rect", class_="bar", stroke_width=2, x=-0.0001, y=1.23456, rx=None, width=3.0)
    assert made == '<rect class="bar" stroke-width="2" x="0" y="1.235" width="3"/>'
    assert percent(1 / 3) == "33.333%"
    assert linked(element("rect"), None) == "<rect/>"


def test_long_titles_are_cut() -> None:
    assert len(title("x" * 1_000)) < 450


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ("handed_back", "handed back"),
        ("in_progress", "running"),
        ("queued", "waiting"),
        ("dead_letter", "dead letter"),
        ("completed", "completed"),
    ],
)
def test_a_state_has_a_word_and_a_class(state: str, word: str) -> None:
    assert (state_word(state), state_class(state)) == (word, f"is-{state}")


def test_a_state_that_is_not_known_looks_idle_and_is_named() -> None:
    assert (state_word("not_known"), state_class("not_known")) == ("not known", "is-idle")


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.9994, "999 ms"),
        (0.9996, "1.0 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min"),
        (3_599, "59 min 59 s"),
        (3_600, "1 h"),
        (86_399, "23 h 59 min"),
        (86_400, "1 d"),
        (-3, "0 ms"),
    ],
)
def test_a_span_is_told_in_its_two_largest_units(seconds: float, told: str) -> None:
    assert lasted(seconds) == told


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (999, "999"),
        (1_000, "1k"),
        (9_949, "9.9k"),
        (9_951, "10k"),
        (999_499, "999k"),
        (999_500, "1M"),
        (12_300_000, "12M"),
    ],
)
def test_a_number_is_told_in_few_characters(count: int, told: str) -> None:
    assert compact(count) == told


def test_a_number_stands_with_its_noun() -> None:
    assert [counted(n, "entry", "entries") for n in (0, 1, 2)] == [
        "0 entries", "1 entry", "2 entries",
    ]  # fmt: skip


@given(st.floats(-1e6, 1e6))
def test_a_coordinate_is_as_exact_as_eyes_are(value: float) -> None:
    assert abs(float(number(value)) - value) <= 0.0005 + 1e-9


@given(st.floats(0, 1e9))
def test_a_span_always_has_a_unit(seconds: float) -> None:
    assert lasted(seconds).split()[-1] in {"ms", "s", "min", "h", "d"}


@given(st.integers(0, 10**8))
def test_a_compact_number_is_short(count: int) -> None:
    assert len(compact(count)) <= 4
