"""Elements are well formed and whatever they show is only text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from headway.web.drawing.markup import columns_of, element, linked, number, shortened, title
from headway.web.drawing.words import compact, lasted
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


@given(st.floats(-1e6, 1e6))
def test_a_coordinate_is_as_exact_as_eyes_are(value: float) -> None:
    assert abs(float(number(value)) - value) <= 0.0005 + 1e-9


@given(st.floats(0, 1e9))
def test_a_span_always_has_a_unit(seconds: float) -> None:
    assert lasted(seconds).split()[-1] in {"ms", "s", "min", "h", "d"}


@given(st.integers(0, 10**8))
def test_a_compact_number_is_short(count: int) -> None:
    assert len(compact(count)) <= 4
