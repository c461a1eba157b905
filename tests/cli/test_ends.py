"""How every command ends: which exit code each error has, and the one line that is said of it."""

from __future__ import annotations

import pytest
import typer

from headway.cli.exits import told_in_one_line
from headway.cli.terminal import LINE_LIMIT, complain, first_line, say
from headway.errors import AppNotFound, DatabaseLost, DefinitionError, HeadwayError, SettingsError

LOST = DatabaseLost("/srv/headway.db", "sqlite:////srv/headway.db", "deleted")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (HeadwayError("no rows"), 1, "headway: no rows\n"),
        (HeadwayError("one\n\ntwo\nthree"), 1, "headway: one\ntwo\nthree\n"),
        (HeadwayError("one\ntwo\nthree\nfour"), 1, "headway: one\ntwo\nand 2 more\n"),
        (HeadwayError(""), 1, "headway: failed\n"),
        (DefinitionError("wrong"), 2, "headway: wrong\n"),
        (SettingsError("wrong"), 2, "headway: wrong\n"),
        (AppNotFound("wrong"), 2, "headway: wrong\n"),
        (LOST, 74, f"headway: {LOST}\n"),
        (KeyboardInterrupt(), 130, "headway: stopped\n"),
        (typer.Abort(), 130, "headway: stopped\n"),
        (BrokenPipeError(), 0, ""),
        (SystemExit(7), 0, ""),
        (typer.Exit(3), 3, ""),
        (
            OSError(28, "No space left on device"),
            1,
            "headway: [Errno 28] No space left on device\n",
        ),
        (
            ValueError("no\x1b\nrows"),
            1,
            r"headway: unexpected ValueError: no\x1b; please report this" + "\n",
        ),
        (typer.BadParameter("give one"), 2, "headway: give one\ntry: headway --help\n"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_error_is_a_code_and_a_line(
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, said: str
) -> None:
    with pytest.raises(typer.Exit) as ended, told_in_one_line():
        raise error
    assert ended.value.exit_code == code
    assert capsys.readouterr() == ("", said)


def test_text_that_cannot_be_encoded_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended, told_in_one_line():
        "load-\udcff".encode()
    assert ended.value.exit_code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(r"headway: argument = 'load-\udcff': ")
    assert err.endswith("; for example 'extract-users'\n")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("no rows\nat all"), "no rows"),
        (ValueError("\n  no rows"), "no rows"),
        (ValueError(), "ValueError"),
        (ValueError("a\tb\x1b"), r"a b\x1b"),
    ],
)
def test_the_first_line_of_an_error(error: ValueError, told: str) -> None:
    assert first_line(error) == told


def test_a_long_line_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    say("x" * 5000)
    complain("y" * 600)
    long, whole = capsys.readouterr().err.splitlines()
    assert 1.5 * LINE_LIMIT < len(long) < 2.5 * LINE_LIMIT
    assert whole == f"headway: {'y' * 600}"
