"""``headway demo``: plain lines without a terminal, a live screen with one, and a summary."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headway.demo.show import called_as
from tests.surface.command_line import COMMAND, environment, finish, read_until, start

GROUPS = ("customers", "inventory", "orders", "reports")
ALL_GROUPS = tuple(sorted((*GROUPS, "analytics", "newsletter")))
ALTERNATE_SCREEN, NORMAL_SCREEN = "\x1b[?1049h", "\x1b[?1049l"


def summary(out: str) -> dict[str, list[int]]:
    """The numbers of the summary: runs, completed, failed, retried, dead letters."""
    table = out[out.rindex("dead letters") :]
    rows = re.findall(r"^(\w+)((?: +\d+){5})\s*$", table, re.M)
    return {name: [int(number) for number in numbers.split()] for name, numbers in rows}


@pytest.mark.full
def test_without_a_terminal_it_prints_plain_lines(tmp_path: Path) -> None:
    code, out, err = finish(start(tmp_path, "demo", "--for", "4"))
    assert (code, err) == (0, "")
    for group in GROUPS:
        assert re.search(rf"completed   \S+ +{group}", out), group
    assert "post_to_ledger: ConnectionRefusedError: the old ledger was" in out
    assert "dead letter old-ledger" in out
    assert "\x1b" not in out
    assert os.listdir(tmp_path) == []


@pytest.mark.full
def test_it_ends_with_a_summary(tmp_path: Path) -> None:
    code, out, _ = finish(start(tmp_path, "demo", "--for", "8"))
    assert code == 0
    found = summary(out)
    assert tuple(found) == (*ALL_GROUPS, "all")
    runs, completed, failed, retried, dead_letters = found["all"]
    assert runs == completed + failed
    assert min(completed, failed, retried, dead_letters) > 0
    assert "headway run hello:hw" in out


def test_what_comes_next_is_a_command_that_works_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("headway", "python"):
        (programs / name).touch(mode=0o755)
    script, python = str(programs / "headway"), str(programs / "python")
    monkeypatch.setenv("PATH", "/nowhere")
    assert called_as(".venv/bin/headway", python) == ".venv/bin/headway"
    assert called_as("headway/__main__.py", python) == ".venv/bin/python -m headway"
    monkeypatch.chdir("/")
    assert called_as(script, python) == script.removeprefix("/")
    monkeypatch.setenv("PATH", str(programs))
    assert called_as(script, python) == "headway"
    assert called_as("headway/__main__.py", python) == "python -m headway"


def test_ctrl_c_ends_it_with_the_summary(tmp_path: Path) -> None:
    process = start(tmp_path, "demo")
    read_until(process.stdout, "completed")
    process.send_signal(signal.SIGINT)
    code, out, err = finish(process)
    assert (code, err) == (0, "")
    assert summary(out)["all"][1] > 0


@pytest.mark.full
@pytest.mark.full
def test_a_given_directory_is_kept_and_continued(tmp_path: Path) -> None:
    code, out, _ = finish(start(tmp_path, "demo", "--for", "2.5", "--directory", "kept/here"))
    assert code == 0
    assert "are in kept/here" in out
    kept = tmp_path / "kept" / "here"
    assert {"headway.db", "raw", "warehouse", "reports"} <= set(os.listdir(kept))
    assert (kept / "reports" / "revenue.txt").read_text().startswith("Revenue so far")
    again = finish(start(tmp_path, "demo", "--for", "1", "--directory", "kept/here"))
    assert again[0] == 0
    assert summary(again[1])["all"][0] > summary(out)["all"][0]


@pytest.mark.full
def test_a_reader_that_has_seen_enough_ends_it(tmp_path: Path) -> None:
    process = start(tmp_path, "demo")
    assert process.stdout is not None
    read_until(process.stdout, "started")
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(60) == 0
    process.stderr.close()


@contextmanager
def in_terminal(
    folder: Path, *arguments: str, width: int = 80
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The command under a pseudo-terminal of 24 lines, and the end where its output arrives."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment(TERM="xterm-256color", COLUMNS=str(width), LANG="C.UTF-8", PYTHONUTF8="1"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        process_group=0,
    )
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def read_terminal(terminal: int, wanted: str | None = None) -> str:
    """Read until *wanted* has come, or to the end."""
    seen = b""
    while wanted is None or wanted.encode() not in seen:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # what a pseudo-terminal says when its other end is closed
            part = b""
        if not part:
            break
        seen += part
    return seen.decode("utf-8", "replace")


def test_in_a_terminal_it_is_shown_live(tmp_path: Path) -> None:
    with in_terminal(tmp_path, "demo", "--for", "3") as (process, terminal):
        seen = read_terminal(terminal)
        assert process.wait(60) == 0
    live, _, after = seen.partition(NORMAL_SCREEN)
    assert live.startswith(ALTERNATE_SCREEN)
    for text in ("headway demo", "running", "finished", "coming next", "orders-europe", *GROUPS):
        assert text in live, text
    assert "execution.failed" not in live, "a log line would tear up the picture"
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", after).replace("\r", "")
    assert summary(plain)["all"][1] > 0


@pytest.mark.full
def test_ctrl_c_gives_the_terminal_back(tmp_path: Path) -> None:
    with in_terminal(tmp_path, "demo") as (process, terminal):
        read_terminal(terminal, wanted="orders-europe")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        assert NORMAL_SCREEN in read_terminal(terminal)
        assert process.wait(60) == 0


@pytest.mark.full
def test_a_wide_terminal_shows_what_the_symbols_mean(tmp_path: Path) -> None:
    with in_terminal(tmp_path, "demo", "--for", "1", width=140) as (process, terminal):
        seen = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", read_terminal(terminal))
        assert process.wait(60) == 0
    assert "■ running  □ free  ● queued  █ completed  █ failed" in seen
    assert "✔ completed  ✘ failed  – cancelled" in seen
    assert re.search(r"completed +failed +dead +runs", seen)
