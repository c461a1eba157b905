"""The headway command: what it prints, how it exits, how it stops."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from sqlalchemy import insert

from headway import Headway, __version__, every
from headway.cli import main
from headway.history import History
from headway.store.engine import Store
from headway.store.migrate import migrate, needed_version
from headway.store.tables import schema_version
from headway.testing import Sandbox
from headway_command.stopping import SIGNALS
from tests.surface.command_line import COMMAND, environment, finish, read_until, start

HELLO = """
import threading
from headway import Headway, cron, every

hw = Headway("hello")

@hw.workflow
def greet(name: str) -> None:
    print("hello", name)

@hw.workflow
def unused() -> None: ...

hw.schedule(greet, "greet-[bold]world", "world", every(seconds=1), group="greetings")
hw.schedule(greet, "weekly", "week", cron("0 9 * * 1", tz="Europe/Berlin"))
"""

SLOW = """
import time
from headway import Headway, Run, every

hw = Headway("slow", worker_count=1)

@hw.workflow
def slow(seconds: float, run: Run) -> None:
    print("begun", flush=True)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        run.raise_if_cancelled()
        time.sleep(0.02)

hw.schedule(slow, "slow", {seconds}, every(hours=1))
"""

STUBBORN = """
import asyncio
from headway import Headway, every

hw = Headway("stubborn", worker_count=2, shutdown_timeout=0)

@hw.workflow
async def stubborn() -> None:
    print("begun", flush=True)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

for number in range(2):
    hw.schedule(stubborn, f"stubborn-{number}", schedule=every(hours=1))
"""


class Result(NamedTuple):
    code: int
    out: str
    err: str


class CommandLine:
    """Runs the command in this process, in a folder of its own."""

    def __init__(self, folder: Path, captured: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._captured = captured

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def __call__(self, *arguments: str) -> Result:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        out, err = self._captured.readouterr()
        return Result(int(ended.value.code or 0), out, err)


@pytest.fixture
def headway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[CommandLine]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name in [name for name in os.environ if name.startswith("HEADWAY_")]:
        monkeypatch.delenv(name)
    before = set(sys.modules)
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    yield CommandLine(tmp_path, capsys)
    for number, handler in handlers.items():
        signal.signal(number, handler)
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_version(headway: CommandLine) -> None:
    assert headway("--version") == (0, f"headway {__version__}\n", "")


@pytest.mark.parametrize("arguments", [(), ("db",)])
def test_without_a_command_the_help_is_shown(
    headway: CommandLine, arguments: tuple[str, ...]
) -> None:
    code, out, err = headway(*arguments)
    assert (code, err) == (2, "")
    assert "Usage: headway" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["chek", "hello:hw"], "Did you mean 'check'?"),
        (["db", "statsu"], "Did you mean 'status'?"),
        (
            ["run"],
            "MODULE:APP is missing; name it (headway run shop:hw), or set HEADWAY_APP=shop:hw",
        ),
        (["run", "hello:hw", "--wat"], "--wat"),
        (["run", "hello:hw", "--only", "boss"], "'boss' is not one of 'manager'"),
        (["run", "hello:hw", "--only", "manager", "--only", "worker"], "one role per process"),
        (["run", "hello:hw", "-q", "-v"], "--quiet and --verbose exclude each other"),
        (["run", "hello:hw", "--database-url", ""], "'--database-url': is empty"),
        (["db", "status", "--database-url", " "], "'--database-url': is empty"),
        (["demo", "--for", "soon"], "--for"),
        (["demo", "--for", "0"], "--for"),
        (["demo", "--directory", "hello.py"], "--directory"),
        (["check", "hello"], "'hello' is not module:app; for example hello:hw"),
        (["check", "hello:"], "for example hello:hw"),
        (["check", ":hw"], "for example hello:hw"),
        (["check", ""], "for example hello:hw"),
        (["check", "a b:hw"], "for example hello:hw"),
        (["check", "hello.py:hw"], "write hello:hw"),
        (["check", "./hello.py"], "write hello:hw"),
        (["check", "jobs/hello.py:app"], "write jobs.hello:app"),
        (["check", "x\x1b]0;owned\x07:hw"], r"x\x1b]0;owned\x07:hw"),
        (["check", "nothere:hw"], "run this in the folder that holds nothere.py"),
        (["check", "jobs.nightly:hw"], "run this in the folder that holds jobs/nightly.py"),
        (["check", "helo:hw"], "did you mean hello?"),
        (["check", "hello:app"], "module 'hello' has no 'app'; write hello:hw"),
        (["check", "hello:greet"], "hello:greet is a function, not a Headway; write hello:hw"),
        (["check", "headway:hw"], "'headway' is headway itself"),
        (["db", "status", "--database-url", "nonsense"], "cannot be read as an address"),
        (["db", "status", "--database-url", "mysql://h/d"], "no such kind of database"),
        (["db", "status", "--database-url", "sqlite:////no/where/x.db"], "does not exist"),
    ],
)
def test_wrong_usage(headway: CommandLine, arguments: list[str], said: str) -> None:
    headway.write("hello.py", HELLO)
    code, out, err = headway(*arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert_brief(err)


@pytest.mark.parametrize(
    ("source", "code", "said"),
    [
        ("def f(:\n", 1, "broken.py:1: SyntaxError: invalid syntax"),
        ("if True:\nx = 1\n", 1, "broken.py:2: IndentationError: "),
        ("\nimport pandaz\n", 1, "broken.py:2: ModuleNotFoundError: No module named 'pandaz'"),
        ("def f():\n  1 / 0\nf()\n", 1, "broken.py:2: ZeroDivisionError: division by zero"),
        ("raise ValueError('a\\x1b[31mb\\nmore')", 1, r"broken.py:1: ValueError: a\x1b[31mb"),
        ("raise ValueError", 1, "broken.py:1: ValueError"),
        ("import sys\nsys.exit(3)\n", 1, "broken.py:2: SystemExit: 3"),
        ("import other\n", 1, "other.py:1: KeyError: 'x'"),
        (
            "from headway import Headway\nHeadway().schedule('nope', 'x')\n",
            2,
            "broken.py:2: workflow 'nope' is not registered here",
        ),
        (
            "from headway import Headway\nhw = Headway('')\n",
            2,
            "broken.py:2: application name = ''",
        ),
        (
            "from headway import Headway\nhw = Headway(worker_count=0)\n",
            2,
            "broken.py:2: worker_count=0 must be a whole number",
        ),
    ],
)
def test_an_application_that_cannot_be_imported(
    headway: CommandLine, source: str, code: int, said: str
) -> None:
    headway.write("broken.py", source)
    headway.write("other.py", "{}['x']")
    result = headway("check", "broken:hw")
    assert (result.code, result.out) == (code, "")
    assert result.err.startswith(f"headway: {said}")
    assert_brief(result.err)


def test_many_problems_are_told_in_three_lines(headway: CommandLine) -> None:
    wrong = "worker_count=0, polling_interval=-1, default_max_retries=-2, max_activ_jobs=3"
    headway.write("broken.py", f"from headway import Headway\nhw = Headway({wrong})\n")
    code, _, err = headway("check", "broken:hw")
    assert code == 2
    assert err.endswith("and 2 more\n")
    assert_brief(err)


def test_check_lists_the_manifests_and_writes_nothing(headway: CommandLine) -> None:
    headway.write("hello.py", HELLO)
    code, out, err = headway("check", "hello:hw")
    assert (code, err) == (0, "")
    [first] = [line for line in out.splitlines() if "greetings" in line]
    assert first.split() == ["greet-[bold]world", "greet", "greetings", "every", "1", "second"]
    assert "At 09:00 on Monday (Europe/Berlin)" in out
    assert "workflows without a manifest: unused" in out
    folder = headway.folder.resolve()
    assert f"hello:hw is fine: 2 manifests, database sqlite:///{folder}/headway.db" in out
    assert os.listdir(headway.folder) == ["hello.py"]


def test_check_warns_of_workflows_that_are_excluded_but_not_there(headway: CommandLine) -> None:
    named = 'Headway("hello", exclude_from_max_active_jobs=["greet", "unusd"])'
    headway.write("hello.py", HELLO.replace('Headway("hello")', named))
    code, out, _ = headway("check", "hello:hw")
    assert code == 0
    [warning] = [line for line in out.splitlines() if line.startswith("warning: ")]
    assert warning.endswith("no workflow is called 'unusd'; did you mean unused?")


TWO_OF_A_NAME = """
from headway import Headway

hw = Headway("twice")

@hw.workflow("load-users", isolated=True)
def load() -> None: ...

@hw.workflow("load-orders", isolated=True)
def load() -> None: ...
"""

DECORATED = """
from functools import wraps
from headway import Headway

hw = Headway("twice")

def traced(function):
    @wraps(function)
    def call() -> None:
        function()
    return call

@traced
@hw.workflow(isolated=True)
def load() -> None: ...

@traced
@hw.workflow(isolated=True)
def extract() -> None: ...

@hw.workflow(isolated=True)
@traced
def fine() -> None: ...

@traced
@hw.workflow
def also_fine() -> None: ...
"""


@pytest.mark.parametrize(
    ("source", "said", "more"),
    [
        (
            TWO_OF_A_NAME,
            "workflow 'load-users': isolated = True: step 'load': its process finds",
            "",
        ),
        (DECORATED, "workflow 'extract': isolated = True: step 'extract': its", " (and 1 more)"),
    ],
    ids=["two of a name", "decorated"],
)
def test_check_refuses_isolated_steps_that_cannot_be_imported(
    headway: CommandLine, source: str, said: str, more: str
) -> None:
    headway.write("twice.py", source)
    code, out, err = headway("check", "twice:hw")
    assert (code, out) == (2, "")
    assert err.startswith(f"headway: {said}")
    assert err.endswith(f"write @hw.workflow above all other decorators{more}\n")
    assert_brief(err)


def test_check_of_an_application_without_manifests(headway: CommandLine) -> None:
    headway.write("empty.py", "from headway import Headway\napp = Headway()\n")
    code, out, _ = headway("check", "empty:app")
    assert code == 0
    assert "no manifests are declared" in out


def test_migrating(headway: CommandLine, database_url: str) -> None:
    status = ("db", "status", "--database-url", database_url)
    code, out, err = headway(*status)
    assert (code, err) == (3, "")
    assert "none yet" in out
    assert "0001 core" in out

    code, out, err = headway("db", "migrate", "--database-url", database_url)
    assert (code, err) == (0, "")
    assert "applied 0001 core" in out

    code, out, _ = headway(*status)
    assert code == 0
    assert "pending   nothing" in out

    code, out, _ = headway("db", "migrate", "--database-url", database_url)
    assert code == 0
    assert "is up to date" in out


def test_asking_for_the_status_creates_no_file(headway: CommandLine) -> None:
    assert headway("db", "status").code == 3
    assert os.listdir(headway.folder) == []


def test_where_the_database_address_comes_from(
    headway: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    headway.write("hello.py", "from headway import Headway\n"
                  "hw = Headway(database_url='sqlite:///of-the-app.db')\n")  # fmt: skip
    assert "/headway.db (default; set HEADWAY_DATABASE_URL" in headway("db", "status").out
    monkeypatch.setenv("HEADWAY_DATABASE_URL", "sqlite:///of-the-variable.db")
    assert "sqlite:///of-the-variable.db" in headway("db", "status").out
    assert "sqlite:///of-the-app.db" in headway("db", "status", "hello:hw").out
    option = ("--database-url", "sqlite:///of-the-option.db")
    assert "sqlite:///of-the-option.db" in headway("db", "status", "hello:hw", *option).out


def test_the_status_says_how_to_migrate_this_very_database(headway: CommandLine) -> None:
    headway.write("hello.py", HELLO)
    status = headway("db", "status", "hello:hw", "--database-url", "sqlite:///my file.db")
    command = "headway db migrate hello:hw --database-url 'sqlite:///my file.db'"
    assert status.out.endswith(f"run: {command}\n")
    assert headway("db", "status").out.endswith("run: headway db migrate\n")


def test_the_status_shows_no_password(headway: CommandLine, postgres_url: str) -> None:
    with_password = postgres_url.replace("postgres@", "postgres:secret@")
    assert with_password != postgres_url
    code, out, _ = headway("db", "status", "--database-url", with_password)
    assert code == 3
    assert "headway db migrate --database-url 'postgresql://postgres:***@" in out
    assert "secret" not in out


@pytest.mark.parametrize("path", ["old.db", "."])
def test_a_read_only_file_or_folder(
    headway: CommandLine, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Said by a stand-in for the system, because root may write to anything."""
    headway.write("old.db", "")
    locked = headway.folder.joinpath(path)
    monkeypatch.setattr(os, "access", lambda asked, mode: (asked, mode) != (locked, os.W_OK))
    code, out, err = headway("db", "status", "--database-url", "sqlite:///old.db")
    assert (code, out) == (1, "")
    assert f"{locked} is read-only for this user" in err
    assert_brief(err, lines=1)


def test_options_that_sqlite_would_ignore_are_refused(headway: CommandLine) -> None:
    headway.write("old.db", "")
    code, out, err = headway("db", "status", "--database-url", "sqlite:///old.db?mode=ro")
    assert (code, out) == (2, "")
    assert "leave out what follows the ?" in err
    assert_brief(err, lines=1)


def test_an_unmigrated_postgresql_database(headway: CommandLine, postgres_url: str) -> None:
    headway.write("hello.py", HELLO)
    code, out, err = headway("run", "hello:hw", "--database-url", postgres_url)
    assert (code, out) == (1, "")
    said = "the database has no headway tables yet; run: headway db migrate"
    assert err == f"headway: {said}\n"


@pytest.mark.story(50)
@pytest.mark.parametrize(
    "arguments", [("run", "hello:hw"), ("db", "migrate"), ("db", "status")], ids=" ".join
)
def test_a_newer_schema_is_refused(
    headway: CommandLine, database_url: str, arguments: tuple[str, ...]
) -> None:
    headway.write("hello.py", HELLO)
    store = Store(database_url)
    migrate(store)
    with store.writing() as tx:
        row = {"version": needed_version(store) + 1, "name": "future", "applied_at": tx.now}
        tx.connection.execute(insert(schema_version).values(row))
    store.close()
    code, out, err = headway(*arguments, "--database-url", database_url)
    assert (code, out) == (1, "")
    assert "the database is newer" in err
    assert_brief(err, lines=1)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://me:secret@127.0.0.1:1/x", "cannot open postgresql://me:***@127.0.0.1:1/x"),
        ("postgresql://127.0.0.1:1/x?password=secret&user=me", "Connection refused"),
        ("sqlite:///hello.py", "file is not a database"),
        ("sqlite:////", "cannot open sqlite:////: "),  # the reason depends on who asks
    ],
)
@pytest.mark.parametrize("arguments", [("run", "hello:hw"), ("db", "status"), ("db", "migrate")])
def test_a_database_that_cannot_be_opened(
    headway: CommandLine,
    arguments: tuple[str, ...],
    url: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HEADWAY_DATABASE_START_TIMEOUT", "0s")
    headway.write("hello.py", HELLO)
    code, out, err = headway(*arguments, "--database-url", url)
    assert (code, out) == (1, "")
    assert said in err
    assert "secret" not in err
    assert_brief(err, lines=1)


def test_run_until_sigterm(tmp_path: Path, database_url: str) -> None:
    """Jobs run, their prints come at once, and a stop with nothing to do is quick."""
    (tmp_path / "hello.py").write_text(HELLO)
    store = Store(database_url)
    migrate(store)
    process = start(tmp_path, "run", "hello:hw", "--database-url", database_url)
    read_until(process.stdout, "hello world")
    read_until(process.stderr, "completed   greet-[bold]world")
    process.send_signal(signal.SIGTERM)
    code, _, err = finish(process)
    assert code == 0
    assert "stopping: " in err
    assert "Traceback" not in err
    assert {one.state for one in History(store).executions.all()} == {"completed"}
    store.close()


def test_the_start_line_says_what_runs(tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text(HELLO)
    process = start(tmp_path, "run", "hello:hw", "--only", "manager")
    line = read_until(process.stderr, "Ctrl-C stops").splitlines()[-1]
    assert line.startswith(f"headway {__version__} runs hello:hw (2 manifests) on sqlite:///")
    assert line.endswith(": manager; Ctrl-C stops")
    process.send_signal(signal.SIGINT)
    assert finish(process)[0] == 0


def test_the_start_line_leaves_out_what_is_switched_off(tmp_path: Path) -> None:
    switched_off = 'Headway("hello", manager_enabled=False, worker_count=3)'
    (tmp_path / "hello.py").write_text(HELLO.replace('Headway("hello")', switched_off))
    process = start(tmp_path, "run", "hello:hw")
    line = read_until(process.stderr, "Ctrl-C stops").splitlines()[-1]
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == 0
    roles = "dispatcher, worker (3 slots) (manager switched off by manager_enabled)"
    assert line.endswith(f": {roles}; Ctrl-C stops")


def test_the_help_keeps_words_whole(headway: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = headway("run", "--help").out
    assert "manager, dispatcher or worker" in out


def test_dead_letters_that_wait_are_told_at_the_start(tmp_path: Path, database_url: str) -> None:
    hw = Headway("hello", default_max_retries=1)

    @hw.workflow
    def fail() -> None:
        raise ValueError

    for number in range(7):
        hw.schedule(fail, f"fail-{number}", schedule=every(hours=1))
    with Sandbox(hw, database_url=database_url) as box:
        box.run_until_idle()
    (tmp_path / "hello.py").write_text(HELLO)
    process = start(tmp_path, "run", "hello:hw", "-q", "--database-url", database_url)
    told = read_until(process.stderr, "dead letter and 2 more")
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == 0
    assert told.count("WARNING dead letter fail-") == 5
    assert "waits for a person since 2026-01-" in told
    assert "failed once (max_attempts 1)" in told


def test_a_subscriber_that_fails_is_logged(tmp_path: Path) -> None:
    subscriber = """
def broken(event):
    if event.name == "execution.completed":
        raise RuntimeError("my subscriber")

hw.observer.subscribe(broken)
"""
    (tmp_path / "hello.py").write_text(HELLO + subscriber)
    process = start(tmp_path, "run", "hello:hw")
    read_until(process.stderr, "a subscriber failed on execution.completed")
    read_until(process.stderr, "RuntimeError: my subscriber")
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == 0


@pytest.mark.full
def test_jobs_that_ignore_being_cancelled_are_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    process = start(tmp_path, "run", "stubborn:hw")
    for _ in range(2):
        read_until(process.stdout, "begun")
    process.send_signal(signal.SIGTERM)
    code, _, err = finish(process)
    assert code == 0
    assert err.count("handed back") == 2
    assert err.count("not stopped jobs that ignore being cancelled end here") == 1
    assert "Task" not in err


def test_a_stop_lets_a_running_job_finish(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW.replace("{seconds}", "1"))
    process = start(tmp_path, "run", "slow:hw")
    read_until(process.stdout, "begun")
    process.send_signal(signal.SIGTERM)
    code, _, err = finish(process)
    assert code == 0
    assert "finishing 1 running job (up to 30 s; Ctrl-C again hands them back)" in err
    assert "completed   slow #1" in err


def test_a_second_ctrl_c_hands_running_jobs_back(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW.replace("{seconds}", "60"))
    process = start(tmp_path, "run", "slow:hw")
    read_until(process.stdout, "begun")
    process.send_signal(signal.SIGINT)
    read_until(process.stderr, "stopping: finishing 1 running job")
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == 0
    assert "handed back slow #1" in err
    store = Store(f"sqlite:///{tmp_path / 'headway.db'}")
    assert [entry.external_id for entry in History(store).queue.all()] == ["slow"]
    store.close()


@pytest.mark.full
@pytest.mark.parametrize(("option", "told"), [("--quiet", False), ("--verbose", True)])
def test_how_much_is_logged(tmp_path: Path, option: str, told: bool) -> None:
    failing = HELLO.replace('print("hello", name)', 'print("hello"); raise ValueError("\\x1b[1m")')
    (tmp_path / "hello.py").write_text(failing)
    process = start(tmp_path, "run", "hello:hw", option)
    seen = read_until(process.stderr, "failed      greet-[bold]world")
    process.send_signal(signal.SIGTERM)
    code, _, rest = finish(process)
    err = seen + rest
    assert code == 0
    assert r"greet: ValueError: \x1b[1m" in err
    assert err.count("failed      greet-[bold]world #1 ") == 1
    assert ("service.started" in err) is told
    assert ("started     greet" in err) is told
    assert "\x1b" not in err


def _heed_interrupts() -> None:
    """A shell in the background has the tests ignore Ctrl-C, `nohup` the end of the terminal."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.full
@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_before_the_start(tmp_path: Path, number: signal.Signals, expected: int) -> None:
    lasting = "import time\nprint('importing', flush=True)\nwhile True:\n    time.sleep(0.01)\n"
    (tmp_path / "hello.py").write_text(lasting)
    process = start(tmp_path, "run", "hello:hw", preexec_fn=_heed_interrupts)
    read_until(process.stdout, "importing")
    process.send_signal(number)
    code, _, err = finish(process)
    assert (code, err) == (expected, "headway: stopped\n")


@pytest.mark.full
def test_a_reader_that_has_seen_enough(tmp_path: Path) -> None:
    many = "\nfor n in range(9000): hw.schedule(greet, f'greet-{n}', 'x')\n"
    (tmp_path / "hello.py").write_text(HELLO + many)
    process = start(tmp_path, "check", "hello:hw")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("external id")
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(60) == 0
    process.stderr.close()


def test_closed_streams(tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text(HELLO)
    command = ["sh", "-c", 'exec "$@" <&- >&-', "sh", *COMMAND, "check", "hello:hw"]
    closed = subprocess.run(command, cwd=tmp_path, env=environment(), stderr=-1, text=True)
    assert (closed.returncode, closed.stderr) == (0, "")


def test_a_terminal_that_cannot_show_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    (tmp_path / "hello.py").write_text(HELLO.replace("weekly", "wöchentlich"), encoding="utf-8")
    code, out, _ = finish(start(tmp_path, "check", "hello:hw"))
    assert code == 0
    assert r"w\xf6chentlich" in out


def assert_brief(err: str, lines: int = 3) -> None:
    """At most three lines, and none of them a traceback or a control character."""
    assert err.startswith("headway: ")
    assert len(err.splitlines()) <= lines
    assert "Traceback" not in err
    assert not any(ord(character) < 32 for character in err.replace("\n", ""))
