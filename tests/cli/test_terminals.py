"""Pipes, terminals and signals: real processes, because that is what they are about."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from headway.cli.target import load
from headway.testing import Sandbox
from tests.cli.conftest import SHOP
from tests.surface.command_line import COMMAND, environment, finish, read_until, start
from tests.surface.test_cli import CommandLine, _heed_interrupts

WIDTH = 100
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


@pytest.fixture
def folder(headway: CommandLine) -> Path:
    """A folder with the shop and its database, which is the default one."""
    url = f"sqlite:///{headway.folder / 'headway.db'}"
    headway.write("shop.py", SHOP.format(url=url))
    with Sandbox(load("shop:hw"), database_url=url) as box:
        box.run_until_idle()
    return headway.folder


def on_terminal(
    folder: Path, *arguments: str, typed: str = "", width: int = WIDTH, **variables: str
) -> tuple[int, str]:
    """Run the command on a terminal of its own; exit code, and all that it shows."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment(TERM="xterm-256color", **variables),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    shown = b""
    while True:
        try:
            read = os.read(ours, 4096)
        except OSError:  # what Linux says when the other side is closed
            break
        if not read:
            break
        shown += read
    os.close(ours)
    return process.wait(60), shown.decode()


def test_a_terminal_gets_colours_and_relative_times(folder: Path) -> None:
    code, shown = on_terminal(folder, "executions", "list")

    assert code == 0
    assert "\x1b[31mfailed" in shown
    assert " ago" in shown
    assert max(len(line) for line in ESCAPES.sub("", shown).splitlines()) <= WIDTH


def test_what_has_no_room_is_named(folder: Path) -> None:
    _, shown = on_terminal(folder, "executions", "list", width=70)

    assert max(len(line) for line in ESCAPES.sub("", shown).splitlines()) <= 70
    assert "no room here for workflow" in shown
    assert "--json tells all" in shown


def test_no_color_means_none(folder: Path) -> None:
    _, shown = on_terminal(folder, "executions", "list", NO_COLOR="1")

    assert "\x1b[31m" not in shown
    assert "failed" in shown


def test_a_pipe_gets_a_plain_table_with_exact_times(folder: Path) -> None:
    code, out, err = finish(start(folder, "executions", "list"))

    assert (code, err) == (0, "")
    assert "\x1b" not in out
    assert re.search(r"\b20\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ", out)
    assert "no rows" in out


@pytest.mark.parametrize(("answer", "code", "left"), [("n", 1, 2), ("y", 0, 0)])
def test_a_person_is_asked_before_several_are_resolved(
    folder: Path, answer: str, code: int, left: int
) -> None:
    ended, shown = on_terminal(folder, "dead-letters", "acknowledge", "--all", typed=f"{answer}\n")

    assert ended == code
    assert "acknowledge 2 dead letters? [y/N]" in shown
    _, out, _ = finish(start(folder, "dead-letters", "list", "--json"))
    assert len(json.loads(out)) == left


@pytest.mark.full
def test_a_reader_that_has_seen_enough(folder: Path) -> None:
    many = "\nfor n in range(3000): hw.schedule(load, f'many-{n}', Table(name='x'))\n"
    with (folder / "shop.py").open("a") as source:
        source.write(many)
    assert finish(start(folder, "apply", "shop:hw", "--yes"))[0] == 0
    process = start(folder, "manifests", "list", "--all")
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline().startswith("external id")
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(60) == 0
    process.stderr.close()


def test_ctrl_c_ends_what_follows(folder: Path) -> None:
    process = start(
        folder, "executions", "list", "--follow", preexec_fn=_heed_interrupts, bufsize=1
    )
    seen = read_until(process.stdout, "load-3")
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)

    assert (code, err) == (130, "headway: stopped\n")
    assert "failed" in seen


def test_ctrl_c_while_the_command_loads() -> None:
    interrupted = """
import sys
class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == "headway.cli":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupted())
from headway_command import main
main()
"""
    ended = subprocess.run([sys.executable, "-c", interrupted], capture_output=True, text=True)

    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "headway: stopped\n")


def test_following_an_execution_that_is_over(folder: Path) -> None:
    _, out, _ = finish(start(folder, "executions", "list", "--state", "failed", "--json"))
    failed = json.loads(out)[0]["id"]

    code, out, err = finish(start(folder, "executions", "show", str(failed), "--follow"))

    assert (code, err) == (1, "")
    assert "state        failed" in out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["trigger", "load-0", "--input", "-", "--app", "shop:hw"], 2),
        (["dead-letters", "requeue", "--all"], 2),
        (["manifests", "list"], 0),
    ],
)
def test_closed_streams(folder: Path, arguments: list[str], code: int) -> None:
    command = ["sh", "-c", 'exec "$@" <&- >&-', "sh", *COMMAND, *arguments]
    ended = subprocess.run(command, cwd=folder, env=environment(), stderr=-1, text=True)

    assert ended.returncode == code
    assert len(ended.stderr.splitlines()) <= 3
    assert "Traceback" not in ended.stderr
