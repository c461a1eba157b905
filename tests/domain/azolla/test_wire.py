"""JSON between deployments: what is read, and what is refused without harm."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.domain.azolla.wire import DEEPEST, Unreadable, read_json, write_json

plain = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | plain,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(plain, inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_what_is_written_is_read_again(value: Any) -> None:
    assert read_json(write_json(value)) == value


@given(st.binary(max_size=100))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    try:
        value = read_json(body)
    except Unreadable:
        return
    assert value == json.loads(body)


@pytest.mark.parametrize(
    "body",
    [
        *[b"", b"{", b"\xff", b"NaN", b"[Infinity]", b"-Infinity", b"1e999", b'{"a":1,"a":1}'],
        *[b'"\\u0000"', b'"\\ud800"', b'{"\\u0000":1}', b"9" * 10_000],
        *[b"[" * 100_000, b'{"a":' * 10_000, b"[" * 33 + b"]" * 33],
    ],
    ids=lambda body: repr(body[:12]),
)
def test_what_means_nothing_or_breaks_readers_is_refused(body: bytes) -> None:
    with pytest.raises(Unreadable):
        read_json(body)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"{", "no JSON: JSONDecodeError"),
        (b"\xff", "no JSON: UnicodeDecodeError"),
        (b"[-Infinity]", "-Infinity is no value"),
        (b"[1e999]", "a number is too large"),
        (b'{"a":{"b":1,"b":2}}', "a key stands twice in one object"),
        (b'["\\u0000"]', "a text holds NUL"),
        (b'{"\\ud800":1}', "a text holds a lone surrogate"),
        (b"[" * 33 + b"]" * 33, "nested deeper than 32"),
        (b'{"a":' * 32 + b"1" + b"}" * 32, "nested deeper than 32"),
        (b"[" * 100_000, "nested too deeply"),
    ],
    ids=lambda one: repr(one[:12]),
)
def test_a_refusal_says_why(body: bytes, why: str) -> None:
    with pytest.raises(Unreadable) as refused:
        read_json(body)
    assert str(refused.value) == why


def test_nesting_is_read_as_deep_as_is_allowed() -> None:
    assert read_json(b"[" * (DEEPEST - 1) + b"]" * (DEEPEST - 1))
    assert read_json(b"[" * DEEPEST + b"]" * DEEPEST)


def test_nan_is_never_written() -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_json(float("nan"))
