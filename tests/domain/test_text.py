import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.domain.text import (
    MESSAGE_LIMIT,
    TRACEBACK_LIMIT,
    clause,
    describe_exception,
    encodable,
    for_terminal,
    printable,
    shown,
    storage_rule,
)

ANY_TEXT = st.text(st.characters(min_codepoint=0, max_codepoint=0x10FFFF, categories=None))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("plain", "plain"),
        ("line\n\ttab", "line\n\ttab"),
        ("nul\x00", r"nul\x00"),
        ("bell\x07\r\x7f\x85", r"bell\x07\x0d\x7f\x85"),
        ("lone \ud800 surrogate \udfff", r"lone \ud800 surrogate \udfff"),
        ("Grüße 😀", "Grüße 😀"),
    ],
)
def test_what_no_database_takes_is_shown_escaped(text: str, expected: str) -> None:
    assert printable(text, 1000) == expected


def test_long_text_keeps_head_and_tail_and_counts_the_rest() -> None:
    text = "a" * 500 + "b" * 500
    cut = printable(text, 100)
    head, marker, tail = cut.partition(" [... ")
    assert len(cut) <= 100
    assert head == "a" * len(head)
    end = tail.rpartition("] ")[2]
    assert end == "b" * len(end)
    assert len(head) - len(end) in (0, 1)
    kept = len(head) + len(end)
    assert f"{marker}{1000 - kept} characters cut ...] " in cut


def test_escapes_count_towards_the_limit_and_are_never_split() -> None:
    cut = printable("\x00" * 1000, 100)
    head, _, rest = cut.partition(" [... ")
    tail = rest.rpartition("] ")[2]
    assert len(cut) <= 100
    assert head == r"\x00" * (len(head) // 4)
    assert tail == r"\x00" * (len(tail) // 4)
    assert f"[... {1000 - len(head) // 4 - len(tail) // 4} characters" in cut


@given(text=ANY_TEXT, limit=st.integers(0, 80))
def test_any_text_becomes_storable_and_bounded(text: str, limit: int) -> None:
    safe = printable(text, limit)
    assert len(safe) <= limit
    safe.encode()
    assert all(c in "\n\t" or c >= " " for c in safe)
    assert printable(safe, limit) == safe


@pytest.mark.parametrize("piece", ["x", "\x00", "\ud800x"])
def test_ten_megabytes_are_fast(piece: str) -> None:
    text = piece * (10_000_000 // len(piece))
    start = time.process_time()
    assert len(printable(text, TRACEBACK_LIMIT)) <= TRACEBACK_LIMIT
    assert time.process_time() - start < 0.5


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a\nb", r"'a\nb'"),
        (Hostile(), "<unprintable Hostile>"),
        pytest.param(10**5000, "<unprintable int>", id="huge"),
        ("\u202eevil\u200b", r"'\u202eevil\u200b'"),
    ],
)
def test_shown_is_one_safe_line(value: object, text: str) -> None:
    assert shown(value) == text


class Tabbed:
    def __repr__(self) -> str:
        return "a\tb\nc"


def test_what_a_repr_has_of_tabs_and_lines_is_escaped() -> None:
    assert shown(Tabbed()) == r"a\tb\nc"


@pytest.mark.parametrize(
    ("limit", "cut"),
    [
        (50, "x" * 50),
        (31, "x [... 48 characters cut ...] x"),
        (32, "xx [... 47 characters cut ...] x"),
        (30, "x" * 30),
        (1, "x"),
        (0, ""),
    ],
)
def test_where_no_marker_fits_the_head_stays(limit: int, cut: str) -> None:
    assert printable("x" * 50, limit) == cut


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", None),
        ("ascii\n\x07", None),
        ("東京\x07", None),
        ("a\x00", "must not contain NUL (U+0000 at position 2)"),
        ("東\udfff\x00", "must not contain lone surrogates (U+DFFF at position 2)"),
    ],
)
def test_what_can_be_stored_everywhere(text: str, rule: str | None) -> None:
    assert storage_rule(text) == rule
    assert (encodable(text) == text) is (rule is None)
    assert storage_rule(encodable(text)) is None


def test_marks_of_direction_are_kept_in_storage_and_escaped_on_terminals() -> None:
    marks = "\u061c\u200e\u200f\u202a\u202e\u2066\u2069"
    assert printable(marks, 100) == marks
    assert for_terminal(f"{marks}\n\t\x9f", 100) == (
        "\\u061c\\u200e\\u200f\\u202a\\u202e\\u2066\\u2069\n\t\\x9f"
    )


def test_a_sentence_loses_its_full_stop() -> None:
    assert [clause(one) for one in ("so.", "so", "so..", "so!")] == ["so", "so", "so..", "so!"]


def test_messages_are_redacted_before_they_are_cut() -> None:
    secret = "geheim" * 3000
    error = _raised(ValueError(f"{secret} is wrong"))
    name, message, trace = describe_exception(error, lambda text: text.replace(secret, "***"))
    assert (name, message) == ("ValueError", "*** is wrong")
    assert "geheim" not in trace
    assert trace.endswith("ValueError: *** is wrong\n")


class NoTrace(ValueError):
    """Its traceback cannot be formatted, because what it says of its cause is nonsense."""

    def __str__(self) -> str:
        return "no trace"

    @property
    def __suppress_context__(self) -> bool:  # type: ignore[override]
        raise RuntimeError("no context")


def test_a_traceback_that_cannot_be_formatted_is_told_in_short() -> None:
    trace = describe_exception(_raised(NoTrace()))[2]
    assert "in _raised" in trace
    assert trace.endswith("no trace")


def test_shown_shortens() -> None:
    assert len(shown("x" * 40_000)) <= 60


class MuteError(ValueError):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class LeavingError(ValueError):
    def __str__(self) -> str:
        raise SystemExit(3)


@pytest.mark.parametrize("kind", [MuteError, LeavingError])
def test_an_exception_that_cannot_speak_is_still_described(kind: type[Exception]) -> None:
    name, message, trace = describe_exception(_raised(kind("x")))
    assert name.endswith(f"test_text.{kind.__name__}")
    assert message == f"<unprintable {kind.__name__}>"
    assert "in _raised" in trace


def test_an_argument_that_cannot_speak_is_still_described() -> None:
    assert describe_exception(ValueError(Hostile()))[1] == "<unprintable ValueError>"


def test_causes_are_part_of_the_traceback() -> None:
    try:
        try:
            raise KeyError("inner")
        except KeyError as inner:
            raise ValueError("outer") from inner
    except ValueError as error:
        name, message, trace = describe_exception(error)
    assert (name, message) == ("ValueError", "outer")
    assert "KeyError: 'inner'" in trace
    assert "direct cause" in trace
    assert trace.rstrip().endswith("ValueError: outer")


def test_huge_messages_are_bounded_everywhere() -> None:
    name, message, trace = describe_exception(_raised(ValueError("a\x00" + "b" * 10_000_000)))
    assert name == "ValueError"
    assert len(message) <= MESSAGE_LIMIT
    assert len(trace) <= TRACEBACK_LIMIT
    assert "\x00" not in message + trace


def _raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:
        return caught
