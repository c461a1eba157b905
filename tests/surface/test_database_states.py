"""What commands say of a database that cannot be used: one line, what to do, and an exit code."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from pathlib import Path

import pytest
from sqlalchemy import func, select
from sqlalchemy.event import listen

from headway import Headway, HeadwayError
from headway.errors import DatabaseOutage
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.tables import work_queue
from tests.databases import database_url, postgres_url, sqlite_url
from tests.pgbouncer import with_setting
from tests.postgres_server import PostgresServer, become_standby
from tests.surface.public_calls import unprivileged
from tests.surface.test_cli import CommandLine, Result, headway
from tests.surface.test_no_raw_errors import empty_url, impatient, locked, soon_refused

__all__ = ["database_url", "empty_url", "headway", "impatient", "postgres_url", "sqlite_url"]

SHOP = """
from headway import Headway, every

hw = Headway("shop")

@hw.workflow
def work() -> None: ...

hw.schedule(work, "extract", None, every(hours=1))
"""
# With the exit code on a database that can only be read, where nothing is to be migrated.
COMMANDS = {
    ("run", "shop:hw", "--no-dashboard"): 1,
    ("run", "shop:hw", "--no-dashboard", "--processes", "2"): 1,
    ("worker", "shop:hw"): 1,
    ("apply", "shop:hw"): 1,
    ("trigger", "extract"): 1,
    ("doctor",): 1,
    ("doctor", "shop:hw"): 1,
    ("plan", "shop:hw"): 0,
    ("db", "migrate"): 0,
    ("db", "status"): 0,
    ("executions", "list"): 0,
    ("manifests", "list"): 0,
    ("check", "shop:hw"): 0,
}
Ask = Callable[..., Result]


@pytest.fixture
def ask(headway: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ask]:
    """Run a command on the database at an address."""
    headway.write("shop.py", SHOP)

    def ask(address: str, *arguments: str) -> Result:
        monkeypatch.setenv("HEADWAY_DATABASE_URL", address)
        sys.modules.pop("shop", None)  # its application knows the address of before
        return headway(*arguments)

    yield ask
    sys.modules.pop("shop", None)


def assert_one_line(result: Result, *words: str) -> None:
    assert result.code == 1, result
    [line] = result.err.splitlines()
    assert line.startswith("headway: "), line
    assert "unexpected" not in line and "Traceback" not in line
    for each in words:
        assert each in line, line


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_postgresql_that_forbids_writes(
    ask: Ask, postgres_url: str, arguments: tuple[str, ...]
) -> None:
    assert ask(postgres_url, "apply", "shop:hw").code == 0
    result = ask(with_setting(postgres_url, "default_transaction_read_only", "on"), *arguments)
    assert result.code == COMMANDS[arguments], result
    if arguments[0] == "doctor":
        assert "read-only" in result.out and result.err == ""
    elif COMMANDS[arguments]:
        assert_one_line(result, " is read-only: ", "allow" if "trigger" in arguments else "switch")
        assert result.out == "" or arguments[0] == "apply"


def test_a_standby(ask: Ask, own_server: PostgresServer) -> None:
    url = own_server.url()
    own_server.stop()
    become_standby(own_server)
    assert_one_line(ask(url, "db", "migrate"), "is read-only", "use the address of the primary")
    assert_one_line(ask(url, "run", "shop:hw"), "no headway tables yet; run: headway db migrate")
    (own_server.directory / "data" / "standby.signal").unlink()
    own_server.stop()
    own_server.start(durable=True)
    with closing(Store(url)) as store:
        migrate(store)
    assert ask(url, "apply", "shop:hw").code == 0
    own_server.stop()
    become_standby(own_server)
    for arguments, code in COMMANDS.items():
        result = ask(url, *arguments)
        assert result.code == code, (arguments, result)
        if arguments[0] == "doctor":
            assert "the server is a standby" in result.out and result.err == ""
        elif code:
            assert_one_line(result, "is read-only", "standby", "use the address of the primary")


def overwritten(file: Path, since: int, until: int | None = None) -> None:
    content = bytearray(file.read_bytes())
    content[since:until] = b"\xff" * len(content[since:until])
    file.write_bytes(content)


def tables_overwritten(file: Path) -> None:
    """Every page but the first, which holds what all others are found by."""
    overwritten(file, 4096)


def cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:50])


def made_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


BACKUP = "restore it from a backup"
# What is done to the file, and what is said of it.
DAMAGES: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "text": (lambda file: overwritten(file, 0), ("file is not a database", "from a backup")),
    "header": (lambda file: overwritten(file, 16, 100), ("file is not a database", "name another")),
    "schema": (lambda file: overwritten(file, 100, 4096), ("image is malformed", BACKUP)),
    "tables": (tables_overwritten, ("image is malformed", BACKUP)),
    "cut off": (cut_off, ("image is malformed", BACKUP)),
    "folder": (made_a_folder, ("headway.db is a directory; name a file in it",)),
    "unreadable": (lambda file: file.chmod(0), ("unreadable for this user", "change the owner")),
    "read-only": (lambda file: file.chmod(0o444), ("read-only for this user", "change the owner")),
}
ASKING = [words for words in COMMANDS if words[0] != "check"]


@pytest.mark.full
@pytest.mark.parametrize("damage", DAMAGES)
def test_an_sqlite_file_that_cannot_be_used(
    ask: Ask, migrated_file: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    # Not in a folder of root's, which nobody else may enter.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        file = Path(shutil.copy(migrated_file, folder))
        (Path(folder) / "shop.py").write_text(SHOP)
        monkeypatch.chdir(folder)
        os.chmod(folder, 0o777)
        os.chmod(file, 0o666)
        assert ask(f"sqlite:///{file}", "apply", "shop:hw").code == 0
        damaging, words = DAMAGES[damage]
        damaging(file)
        with unprivileged() if damage in ("unreadable", "read-only") else nullcontext():
            for arguments in ASKING:
                if (damage, arguments[0]) == ("read-only", "plan"):  # it only reads
                    assert ask(f"sqlite:///{file}", *arguments).code == 0
                    continue
                assert_one_line(ask(f"sqlite:///{file}", *arguments), str(file), *words)
            assert ask(f"sqlite:///{file}", "check", "shop:hw").code == 0


def no_space(store: Store) -> None:
    """Of a full disk; on PostgreSQL the server's answer, for no disk of its is that small."""
    with store.writing() as tx:
        if store.on_postgresql:
            for statement in NO_SPACE:
                tx.connection.exec_driver_sql(statement)
            return
    listen(store._writer, "begin", lambda own: own.exec_driver_sql("PRAGMA max_page_count = 1"))


NO_SPACE = (
    "CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS"
    " $$BEGIN RAISE 'No space left on device' USING ERRCODE = 'disk_full'; END$$",
    "CREATE TRIGGER no_space BEFORE INSERT ON headway_work_queue EXECUTE FUNCTION no_space()",
)


def test_a_full_disk(database_url: str) -> None:
    hw = Headway("shop", database_url=database_url)

    @hw.workflow
    def work(text: str) -> None: ...

    with closing(hw.runtime.store) as store:
        hw.enqueue("work", "")
        no_space(store)
        with pytest.raises(DatabaseOutage, match=r"free space on its disk") as raised:
            hw.enqueue_many("work", ["x" * 10_000] * 100)
        assert "\n" not in str(raised.value)
        with store.reading() as tx:
            assert tx.connection.execute(select(func.count(work_queue.c.id))).scalar_one() == 1


@pytest.mark.gate
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("state", ["without tables", "locked", "away"])
def test_a_call_raises_the_sentence_of_the_command(ask: Ask, empty_url: str, state: str) -> None:
    with closing(Store(empty_url)) as store:
        store.check()  # which creates a file that is not there
        if state == "locked":
            migrate(store)
    address = "postgresql://127.0.0.1:1/x" if state == "away" else soon_refused(empty_url)
    with locked(empty_url) if state == "locked" else nullcontext():
        told = ask(address, "trigger", "extract").err
        hw = Headway("shop", database_url=address)
        with closing(hw.runtime.store), pytest.raises(HeadwayError) as raised:
            hw.trigger("extract")
    assert told == f"headway: {raised.value}\n"
