"""What may be a name, and what the error says about everything else."""

import unicodedata
from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.domain.names import NAME_LIMIT, checked_name
from headway.errors import DefinitionError


class Team(StrEnum):
    USERS = "users-team"


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "extract-users",
        "schema/table:partition=1",
        'it\'s "quoted" and `ticked`',
        "größe 日本語 عربى",
        "🚀",
        "👩🏽‍💻 ❤️‍🔥 👨‍👩‍👧",
        "a b\u00a0c",
        "x" * NAME_LIMIT,
    ],
)
def test_an_ordinary_name_is_returned_as_it_is(name: str) -> None:
    assert checked_name("group", name) == name


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("", "must not be empty"),
        (" a", "must not start or end with whitespace"),
        ("a\u00a0", "must not start or end with whitespace"),
        ("   ", "must not start or end with whitespace"),
        ("x" * (NAME_LIMIT + 1), "at most 255 characters, not 256"),
        ("a\x00b", "control characters such as newline, tab or NUL (U+0000 at position 2)"),
        ("a\nb", "control characters such as newline, tab or NUL (U+000A at position 2)"),
        ("a\n", "control characters"),
        ("a\x7f", "control characters"),
        ("a\x85b", "control characters"),
        ("a\u2028b", "line separators"),
        ("a\u2029b", "paragraph separators"),
        ("a\u200bb", "zero-width and text-direction marks (U+200B at position 2)"),
        ("ad\u200dmin", "zero-width"),
        ("a\u200d🔥", "zero-width"),
        ("🔥\u200d", "zero-width"),
        ("\u200d🔥", "zero-width"),
        ("a\ufeffb", "zero-width"),
        ("a\u00adb", "invisible characters"),
        ("\u202eabc", "text-direction marks (U+202E at position 1)"),
        ("a\u2066b", "text-direction marks"),
        ("a\u200fb", "text-direction marks"),
        ("a\ud800b", "lone surrogates (U+D800 at position 2)"),
        (None, "must be a string"),
        (7, "must be a string"),
        (b"bytes", "must be a string"),
    ],
)
def test_a_refused_name_is_answered_with_field_value_rule_and_example(
    value: object, rule: str
) -> None:
    with pytest.raises(DefinitionError) as caught:
        checked_name("external_id", value)
    message = str(caught.value)
    assert message.startswith("external_id = ")
    assert rule in message
    assert message.endswith("; for example 'extract-users'")
    assert message.isprintable()
    if isinstance(value, str) and len(value) < 50:
        assert repr(value) in message


def test_two_spellings_of_one_name_become_the_same_name() -> None:
    assert checked_name("group", "cafe\u0301") == checked_name("group", "caf\u00e9") == "caf\u00e9"


def test_the_member_of_an_enum_becomes_its_plain_text() -> None:
    name = checked_name("group", Team.USERS)
    assert type(name) is str
    assert name == "users-team"


@given(st.text(st.characters(exclude_categories=()), max_size=40))
def test_whatever_is_accepted_is_composed_printable_text_and_stays_accepted(text: str) -> None:
    try:
        name = checked_name("group", text)
    except DefinitionError as error:
        assert str(error).splitlines() == [str(error)]
    else:
        assert checked_name("group", name) == name == unicodedata.normalize("NFC", name)
        assert name.encode()
