"""Known secrets are found in texts however they are quoted, and short ones leave texts readable."""

import html
import json
import re
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.domain.masking import MASK
from headway.domain.redaction import SHORTEST, Redaction

SECRETS = [
    "geheim",
    "pass word",
    "a'b\"c",
    "back\\slash",
    "zwei\nzeilen",
    "grün€",
    "\x1b[31m",
    "%41bc",
]

QUOTED: dict[str, Callable[[str], str]] = {
    "plain": str,
    "repr": repr,
    "bytes": lambda text: repr(text.encode()),
    "json": json.dumps,
    "json, not ascii": lambda text: json.dumps(text, ensure_ascii=False),
    "url": lambda text: quote(text, safe=""),
    "form": quote_plus,
    "url, other digits": lambda text: re.sub(
        "%[0-9A-F]{2}", lambda found: found[0].lower(), quote(text, safe="")
    ),
    "repr of an error": lambda text: repr(ValueError(f"refused {text}")),
    "repr of repr": lambda text: repr(repr(text)),
    "json in json": lambda text: json.dumps(json.dumps(text)),
    "on one line": lambda text: " ".join(text.split()),
    "in a group": lambda text: text.replace("\n", "\n  | "),
}


@pytest.mark.parametrize("how", QUOTED)
@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_found_however_it_is_quoted(secret: str, how: str) -> None:
    said = QUOTED[how](secret)
    told = Redaction([secret]).text(f"could not log in with <{said}>, attempt 2")
    assert MASK in told
    assert told.startswith("could not log in with <") and told.endswith(">, attempt 2")
    assert said not in told


@given(st.text(min_size=SHORTEST).filter(lambda one: len(one.strip()) >= SHORTEST))
def test_any_long_enough_value_is_found_as_it_is_and_in_its_repr(secret: str) -> None:
    redaction = Redaction([secret])
    hidden = secret.strip()
    if hidden.strip("*"):
        assert hidden not in redaction.text(f"<{secret}>").replace(MASK, "")
        assert repr(hidden)[1:-1] not in redaction.text(f"<{secret!r}>").replace(MASK, "")


@pytest.mark.parametrize("short", ["1", "42", "abc", ""])
def test_a_short_value_is_replaced_only_as_a_whole_quoted_value(short: str) -> None:
    text = "File 'x.py', line 1421, in abcdef: attempt 1 of 42, abc 'abcd' ''"
    assert Redaction([short]).text(text) == text
    if short:
        told = Redaction([short]).text(
            f"pin {short!r}; [type=x, input_value={short}, input_type=y]"
        )
        assert told == f"pin '{MASK}'; [type=x, input_value={MASK}, input_type=y]"


@pytest.mark.parametrize("nothing", [None, True, False, "", "  "])
def test_what_says_nothing_is_never_replaced(nothing: object) -> None:
    redaction = Redaction([nothing])
    assert not redaction
    assert redaction.text("None True False ''") == "None True False ''"


def test_an_end_that_was_cut_off_is_found() -> None:
    token = "tok-" + "0123456789" * 10
    cut = f"input_value='{token[:25]}...{token[-24:]}', input_type=str"
    assert Redaction([token]).text(cut) == f"input_value='{MASK}...{MASK}', input_type=str"


def test_a_text_without_the_secret_keeps_its_dots() -> None:
    text = "loading users... done... [... 7 characters cut ...] geh..."
    assert Redaction(["another secret"]).text(text) == text


def test_each_line_of_a_long_secret_counts() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nab\n-----END KEY-----\n"
    assert Redaction([key]).text("bad line MIIEvQIBADANBgkq: ab") == f"bad line {MASK}: ab"
    assert Redaction(["one\n  8 of it.  \n7 of it"]).text("8 of it. 7 of it") == f"{MASK} 7 of it"


def test_numbers_and_bytes_count_as_their_text() -> None:
    assert Redaction([471100, b"geheim"]).text("471100 geheim") == f"{MASK} {MASK}"


def test_a_longer_secret_goes_before_one_that_it_contains() -> None:
    assert Redaction(["geheim", "geheimnis"]).text("geheimnis") == MASK


def test_a_value_like_the_mask_stays() -> None:
    assert Redaction(["****"]).text("a **** b") == "a **** b"
    assert html.escape(MASK) == MASK


def test_a_single_line_does_not_lose_what_is_around_it() -> None:
    assert Redaction([" geheim \n"]).text("geheim") == MASK
    assert Redaction([b"\xffgeheim"]).text("\ufffdgeheim") == MASK
    assert Redaction(["ge\ud800heim"]).text("ge\ud800heim") == MASK


def test_secrets_of_two_sources_are_hidden_together() -> None:
    both = Redaction(["geheim"]) | Redaction(["passwort", 4711])
    assert both and both.text("geheim passwort 4711") == f"{MASK} {MASK} {MASK}"
    assert not (Redaction() | Redaction())
    assert Redaction(["geheim"]) | Redaction()


def test_plain_data_keeps_its_shape() -> None:
    redaction = Redaction(["geheim", 4711, 1.5, "1", "x"])
    value = {
        "geheim": [" geheim ", "my geheim", ("x", "xy")],
        "numbers": [4711, 1.5, 1, 2, True, False, None],
    }
    assert redaction.plain(value) == {
        MASK: [MASK, f"my {MASK}", [MASK, "xy"]],
        "numbers": [MASK, MASK, MASK, 2, True, False, None],
    }
    assert Redaction().plain(value) is value
    assert Redaction(["True", "None"]).plain([True, None]) == [True, None]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a tok-0123... b", f"a {MASK}... b"),
        ("a tok-0123… b", f"a {MASK}… b"),
        ("a ...456789 b", f"a ...{MASK} b"),
        ("a tok... b", f"a {MASK}... b"),
        ("a ...789 b", f"a ...{MASK} b"),
        ("a to... ...89 b", "a to... ...89 b"),
        ("a tok-0123 [... 9 characters cut ...] 456789 b", None),
        ("tok-0... and ...6789 and tok-... c", f"{MASK}... and ...{MASK} and {MASK}... c"),
        ("tok-...6789... tok", f"{MASK}...{MASK}... tok"),
        ("nothing...", "nothing..."),
    ],
)
def test_each_piece_beside_a_cut_is_found_alone(text: str, told: str | None) -> None:
    cut = f"a {MASK} [... 9 characters cut ...] {MASK} b"
    assert Redaction(["tok-0123456789"]).text(text) == (cut if told is None else told)


def test_an_apostrophe_is_found_where_the_text_around_it_has_it_escaped() -> None:
    secret = "it's mine"
    for said in (repr(f'say "{secret}"'), repr(f'say "{secret}"'.encode())):
        assert "\\'" in said
        assert MASK in Redaction([secret]).text(said)


def test_short_values_are_found_in_quotation_marks_of_both_kinds() -> None:
    redaction = Redaction(["a", "ab"])
    told = redaction.text("""'a' "ab" 'abc' input_value=a] input_value=ab, input_value=abc""")
    expected = (
        f"""'{MASK}' "{MASK}" 'abc' input_value={MASK}] input_value={MASK}, input_value=abc"""
    )
    assert told == expected
