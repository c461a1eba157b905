"""A process that is asked to stop while it starts ends with the exit code of a usual stop."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headway.store.engine import Store
from headway.store.migrate import migrate
from tests.surface.command_line import COMMAND, environment, finish, read_until, start
from tests.surface.test_cli import HELLO, _heed_interrupts

ROOT = Path(__file__).parents[2]
SCRIPT = "import sys; sys.argv[0] = 'headway'; from headway_command import main; main()"
STOPPED = "headway: stopped\n"

# Sends a signal to its own process as soon as a certain module is looked for.
AT_IMPORT = """
import os, signal, sys
class Signalled:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.{number})
sys.meta_path.insert(0, Signalled())
"""

INTERRUPTED = """
import time
print("importing", flush=True)
try:
    while True:
        time.sleep(0.01)
except KeyboardInterrupt:
    {then}
"""

SLOW_IN_CHILDREN = """
import multiprocessing, time
if multiprocessing.parent_process() is not None:
    print("importing", flush=True)
    while True:
        time.sleep(0.01)
"""

LONG_RUNNING = [
    ("run", "hello:hw", "--no-dashboard"),
    ("run", "hello:hw", "--processes", "2"),
    ("worker", "hello:hw"),
    ("web", "hello:hw", "--port", "0"),
    ("demo", "--for", "1"),
    ("demo", "--federation"),
    ("azolla", "serve", "hello:hw", "--port", "0"),
]


def signalled_at_import(
    folder: Path, module: str, number: str, command: list[str], *arguments: str
) -> tuple[int, str]:
    """Exit code and stderr of a command that gets the signal when it begins to import *module*."""
    (folder / "hello.py").write_text(HELLO)
    (folder / "early").mkdir(exist_ok=True)
    site = folder / "early" / "sitecustomize.py"
    site.write_text(AT_IMPORT.format(module=module, number=number))
    ended = subprocess.run(
        [*command, *arguments],
        cwd=folder,
        env=environment(PYTHONPATH=str(site.parent)),
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=_heed_interrupts,
    )
    return ended.returncode, ended.stderr


@pytest.mark.parametrize("module", ["headway.definition", "sqlalchemy", "typer", "headway.cli.run"])
@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_while_the_command_itself_is_imported(tmp_path: Path, module: str, number: str) -> None:
    ended = signalled_at_import(tmp_path, module, number, [*COMMAND], "run", "hello:hw")

    assert ended == (130 if number == "SIGINT" else 0, STOPPED)


@pytest.mark.full
@pytest.mark.parametrize("arguments", LONG_RUNNING, ids=" ".join)
def test_every_command_that_runs_until_it_is_stopped(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    command = [sys.executable, "-c", SCRIPT]
    for module in ("headway.cli", "typer"):
        ended = signalled_at_import(tmp_path, module, "SIGTERM", command, *arguments)
        assert ended == (0, STOPPED)


def test_other_commands_are_ended_by_the_signal_as_usual(tmp_path: Path) -> None:
    code, _ = signalled_at_import(
        tmp_path, "headway.cli", "SIGTERM", [*COMMAND], "check", "hello:hw"
    )
    assert code == -signal.SIGTERM


@pytest.mark.parametrize("then", ["pass", "raise RuntimeError('of the interrupt')"])
@pytest.mark.parametrize(("number", "code"), [("SIGTERM", 0), ("SIGINT", 130)])
def test_whatever_becomes_of_the_interrupt(
    tmp_path: Path, number: str, code: int, then: str
) -> None:
    """A driver or an application may swallow the exception, or raise another one."""
    (tmp_path / "hello.py").write_text(INTERRUPTED.format(then=then) + HELLO)
    process = start(tmp_path, "run", "hello:hw", "--no-dashboard", preexec_fn=_heed_interrupts)
    read_until(process.stdout, "importing")
    process.send_signal(signal.Signals[number])
    ended, _, err = finish(process)

    assert (ended, err.splitlines()[-1]) == (code, STOPPED.strip())
    assert "runs hello:hw" not in err


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT"])
def test_at_many_points_of_the_start(tmp_path: Path, database_url: str, number: str) -> None:
    (tmp_path / "hello.py").write_text(HELLO)
    store = Store(database_url)
    migrate(store)
    store.close()
    arguments = ["run", "hello:hw", "--port", "0", "--database-url", database_url]
    ended = subprocess.run(
        [sys.executable, "-m", "tests.surface.signalled", "30", number, *arguments],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(ROOT)),
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=_heed_interrupts,
    )
    starts = json.loads(ended.stdout)

    # A command that runs already is stopped by Ctrl-C as it should be, which is no failure.
    expected = {True: (0, 130), False: (130,)} if number == "SIGINT" else {True: (0,), False: (0,)}
    assert [one for one in starts if one[1] not in expected["stopping:" in one[2]]] == []
    assert [one for one in starts if "Traceback" in one[2]] == []
    assert len(starts) == 30


@pytest.mark.parametrize("arguments", [(), ("--processes", "2")], ids=" ".join)
def test_after_each_line_of_the_start(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "hello.py").write_text(HELLO)
    command = ("run", "hello:hw", "--port", "0", *arguments)
    for line in ("declared", "Ctrl-C stops", "dashboard:") if not arguments else ("Ctrl-C stops",):
        process = start(tmp_path, *command)
        read_until(process.stderr, line)
        process.send_signal(signal.SIGTERM)
        code, _, err = finish(process)
        assert code == 0, err


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("whole_group", [True, False])
def test_while_the_children_of_several_processes_start(
    tmp_path: Path, number: signal.Signals, whole_group: bool
) -> None:
    """The parent was running already, and so Ctrl-C is a usual stop as well."""
    (tmp_path / "hello.py").write_text(SLOW_IN_CHILDREN + HELLO)
    process = start(
        tmp_path,
        *("run", "hello:hw", "--no-dashboard", "--processes", "2"),
        start_new_session=True,
        preexec_fn=_heed_interrupts,
    )
    read_until(process.stdout, "importing")
    os.kill(-process.pid if whole_group else process.pid, number)
    code, _, err = finish(process)

    assert code == 0, err
    assert "headway: stopped" not in err


FAILS_TO_STOP = """
from headway.service import Service
stop = Service.stop
def fail(service):
    stop(service)
    raise RuntimeError("the disk is full")
Service.stop = fail
"""


def test_a_stop_that_fails_ends_with_a_failure(tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text(FAILS_TO_STOP + HELLO)
    process = start(tmp_path, "run", "hello:hw", "--no-dashboard")
    read_until(process.stderr, "Ctrl-C stops")
    process.send_signal(signal.SIGTERM)
    code, _, err = finish(process)

    assert code == 1, err
    assert "stopping failed: the disk is full" in err
