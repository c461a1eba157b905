"""No public function lets out anything but a `HeadwayError` while the database is in trouble."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import psycopg
import pytest
from psycopg.sql import SQL, Identifier
from sqlalchemy import Engine, create_engine, make_url, text

from headway import Headway, HeadwayError, Run
from headway.applying import apply_declarations
from headway.domain.manifest import Group
from headway.errors import (
    DatabaseLost,
    DatabaseUnavailable,
    SchemaError,
    SchemaMissing,
    SettingsError,
)
from headway.store import connecting, taking_turns
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.urls import parse_url
from headway.testing import Sandbox
from tests.databases import database_url, postgres_url, sqlite_url
from tests.pgbouncer import create_schema, drop_schema, with_setting
from tests.postgres_server import PostgresServer, become_standby, promote, starting
from tests.runtime_verbs import HOURLY, VERBS, Verb
from tests.surface.public_calls import (
    CALLS,
    IN_A_RUN,
    OBJECTS,
    ON_A_CONNECTION,
    SANDBOXED,
    WITHOUT_DATABASE,
    Call,
    object_of,
    public_functions,
    unprivileged,
)

__all__ = ["database_url", "postgres_url", "sqlite_url"]

Trouble = Callable[[str], AbstractContextManager[None]]

TABLE = "CREATE TABLE fence (name TEXT PRIMARY KEY, token BIGINT NOT NULL)"


def app(url: str) -> Headway:
    hw = Headway("tests", database_url=url)

    @hw.workflow
    def work() -> None: ...

    hw.schedule("work", "extract", None, HOURLY, group=Group("loads"))
    return hw


def raw_errors(calls: dict[str, Call], on: Callable[[str], object]) -> dict[str, str]:
    """What each call raises that is no `HeadwayError`."""
    raised = {}
    for name, call in calls.items():
        try:
            call(on(name))
        except HeadwayError as error:
            if "\n" in str(error):
                raised[name] = f"several lines: {error}"
        except Exception as error:
            raised[name] = f"{type(error).__name__}: {error}"
    return raised


def unaware(calls: dict[str, Call], on: Callable[[str], object]) -> dict[str, str]:
    """What becomes of each call that does not end of the state of the database.

    Such a call proves nothing: it has asked for nothing, or was refused for another reason. One
    that migrates the embedded database has to be the last.
    """
    ends = {}
    for name, call in calls.items():
        try:
            call(on(name))
            ends[name] = "it succeeded"
        except (DatabaseUnavailable, SchemaError):
            pass
        except SettingsError as error:
            if "the folder" not in str(error):
                ends[name] = str(error)
        except Exception as error:
            ends[name] = f"{type(error).__name__}: {error}"
    return ends


# They write whatever the database holds: none may succeed where nothing can be written.
WRITING = {
    *(f"{own}.enqueue" for own in ("hw", "hw.runtime", "alice")),
    *("hw.enqueue_many", "hw.runtime.enqueue_many", "hw.tokens.create", "alice.tokens.create"),
    *("hw.azolla.capture", "hw.azolla.objective", "alice.azolla.capture"),
    *("hw.runtime.schedule", "hw.runtime.schedule_once", "hw.runtime.schedule_many"),
}


# These as well where the manifest "extract" is in the database.
CHANGING = {
    *(
        f"{own}.{verb}"
        for own in ("hw", "hw.runtime", "alice")
        for verb in ("trigger", "trigger_group", "enable", "disable", "set_group", "unschedule")
    ),
    *("alice.together", "alice.once", "hw.runtime.schedule_dependent"),
}


def assert_only_own_errors(hw: Headway, refused: Collection[str] = frozenset(CALLS)) -> None:
    """For every call of an application; those *refused* are so for the state of the database."""

    def on(name: str) -> object:
        return object_of(name, hw, stores[0] if stores else None)

    stores: list[Store] = []
    with suppress(HeadwayError):  # then there is nothing to build readers on
        stores.append(hw.open_store())
    try:
        calls = CALLS if stores else CALLS_WITHOUT_READERS
        ends = unaware({name: calls[name] for name in calls if name in refused}, on)
        assert ends == {}
        assert raw_errors(calls, on) == {}
    finally:
        for store in stores:
            store.close()


CALLS_WITHOUT_READERS = {
    name: call for name, call in CALLS.items() if not name.startswith("history.")
}


@contextmanager
def opened(url: str) -> Iterator[Headway]:
    """An application whose connections are open already."""
    hw = app(url)
    with closing(hw.runtime.store) as store:
        store.check()
        yield hw


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits 20 ms for a lock on an SQLite file, not 30 s."""
    monkeypatch.setattr(connecting, "PATIENCE", 0.02)
    monkeypatch.setattr(taking_turns, "PATIENCE", 0.02)


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database without tables."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    database, name = request.getfixturevalue("postgres_database"), f"test_{os.urandom(6).hex()}"
    yield create_schema(database, name).replace("postgresql:", "postgresql+psycopg:")
    drop_schema(database, name)


@contextmanager
def locked(url: str) -> Iterator[None]:
    """Another connection holds every lock there is."""
    if parse_url(url).get_backend_name() == "sqlite":
        with closing(sqlite3.connect(str(parse_url(url).database), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
        return
    with psycopg.connect(url.replace("+psycopg", "")) as other:
        named = other.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        tables = SQL(", ").join(Identifier(row[0]) for row in named.fetchall())
        other.execute(SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(tables))
        yield
        other.rollback()


def soon_refused(url: str) -> str:
    """The same database; on PostgreSQL for sessions that wait 20 ms for a lock."""
    return with_setting(url, "lock_timeout", "20ms") if url.startswith("postgresql") else url


def test_every_public_function_is_listed() -> None:
    listed = {*CALLS, *SANDBOXED, *IN_A_RUN, *ON_A_CONNECTION, *WITHOUT_DATABASE, *OBJECTS}
    handed_out = {f"{name}.{last}" for name in ("hw", "alice") for last in ("azolla", "tokens")}
    assert public_functions() - listed == set()
    assert {*CALLS, *SANDBOXED, *IN_A_RUN, *ON_A_CONNECTION} <= public_functions()
    assert handed_out <= set(OBJECTS)


@pytest.mark.gate
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_missing_database(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if kind == "sqlite":
        assert_only_own_errors(app(f"sqlite:///{tmp_path / 'no-folder' / 'headway.db'}"))
        return
    url = request.getfixturevalue("postgres_database")
    gone = make_url(url).set(database="gone").render_as_string(hide_password=False)
    assert_only_own_errors(app(gone))


@pytest.mark.gate
def test_an_unmigrated_database(empty_url: str) -> None:
    hw = app(empty_url)
    with pytest.raises(SchemaMissing, match="headway db migrate") as raised:
        hw.trigger("extract")
    assert raised.value.__cause__ is not None
    assert_only_own_errors(hw, CALLS.keys() - {"hw.open_store", "Executor.run"})
    hw.runtime.store.close()


@pytest.mark.gate
@pytest.mark.usefixtures("impatient")
def test_a_locked_database(database_url: str) -> None:
    with opened(soon_refused(database_url)) as hw, locked(database_url):
        with pytest.raises(DatabaseUnavailable) as raised:
            hw.trigger("extract")
        assert "lock" in str(raised.value) and raised.value.__cause__ is not None
        assert_only_own_errors(hw, WRITING)


@pytest.mark.gate
def test_a_read_only_postgresql(postgres_url: str) -> None:
    apply(postgres_url)
    read_only = with_setting(postgres_url, "default_transaction_read_only", "on")
    engine = create_engine(parse_url(read_only))
    with opened(read_only) as hw:
        with pytest.raises(DatabaseUnavailable, match="read-only transaction"):
            hw.enqueue("work")
        assert_only_own_errors(hw, WRITING | CHANGING)
        assert joined_errors(hw, engine) == {}
    engine.dispose()


def apply(url: str) -> None:
    """Write what the application declares, and the table of `fence`."""
    hw = app(url)
    with closing(hw.open_store()) as store:
        apply_declarations(hw, store)
        with store.writing() as tx:
            tx.connection.execute(text(TABLE))


def test_a_read_only_sqlite_file(migrated_file: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        file = shutil.copy(migrated_file, folder)
        apply(f"sqlite:///{file}")
        os.chmod(file, 0o444)
        os.chmod(folder, 0o555)
        hw = app(f"sqlite:///{file}")
        with unprivileged():
            with pytest.raises(DatabaseUnavailable, match=r"cannot open sqlite:///.*headway.db: "):
                hw.enqueue("work")
            assert_only_own_errors(hw)
            engine = create_engine(f"sqlite:///{file}")
            assert joined_errors(hw, engine) == {}
            engine.dispose()
        os.chmod(folder, 0o755)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "headway.db").write_text("no database, but long enough to be read as one" * 100)
    hw = app(f"sqlite:///{tmp_path / 'headway.db'}")
    with pytest.raises(DatabaseUnavailable, match="file is not a database"):
        hw.enqueue("work")
    assert_only_own_errors(hw)


def test_a_postgresql_that_stops_under_open_connections(own_server: PostgresServer) -> None:
    url = own_server.url()
    with closing(Store(url)) as store:
        migrate(store)
    engine = create_engine(parse_url(url))
    with opened(url) as hw, engine.connect() as connection:
        connection.execute(text("SELECT 1"))
        own_server.stop("immediate")
        with pytest.raises(DatabaseUnavailable):
            hw.trigger("extract")
        assert_only_own_errors(hw)
        assert raw_errors(joining(hw), lambda _: connection) == {}
        with starting(own_server):
            with pytest.raises(DatabaseUnavailable, match="the database system is"):
                hw.trigger("extract")
            assert_only_own_errors(hw)
        connection.invalidate()
        # On connections that ended with the server, and then on new ones.
        assert raw_errors(CALLS_WITHOUT_READERS, lambda name: object_of(name, hw)) == {}
        assert hw.enqueue("work") > 0
    engine.dispose()


def joining(hw: Headway) -> dict[str, Call]:
    """Every verb of the runtime API on a connection of the caller's."""
    return {name: partial(_join, verb, hw) for name, verb in VERBS.items()}


def _join(verb: Verb, hw: Headway, connection: object) -> object:
    return verb.call(hw.runtime, connection)


def joined_errors(hw: Headway, engine: Engine) -> dict[str, str]:
    """What verbs and `fence` raise in transactions of the caller's own, each in a new one."""
    raised: dict[str, str] = {}
    for name, call in (joining(hw) | ON_A_CONNECTION).items():
        with engine.connect() as connection:
            raised |= raw_errors({name: call}, lambda _: connection)
            # What is called after a failure, in the same transaction, has a sentence as well.
            raised |= raw_errors({name: call}, lambda _: connection)
            connection.rollback()
    return raised


@pytest.fixture
def fenced(database_url: str) -> Iterator[str]:
    engine = create_engine(parse_url(database_url))
    with engine.begin() as connection:
        connection.execute(text(TABLE))
    engine.dispose()
    yield database_url
    engine = create_engine(parse_url(database_url))
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE fence"))
    engine.dispose()


@pytest.mark.usefixtures("impatient")
def test_callers_transactions_on_a_locked_database(fenced: str) -> None:
    address = soon_refused(fenced)
    waits = {} if address.startswith("postgresql") else {"connect_args": {"timeout": 0.02}}
    engine = create_engine(parse_url(address), **waits)
    with opened(address) as hw, locked(fenced):
        assert joined_errors(hw, engine) == {}
    engine.dispose()


def test_callers_transactions_on_an_unmigrated_database(empty_url: str) -> None:
    engine = create_engine(parse_url(empty_url))
    hw = app(empty_url)
    assert joined_errors(hw, engine) == {}
    engine.dispose()
    hw.runtime.store.close()


def test_the_callers_own_error_passes_unchanged(database_url: str) -> None:
    """A generator of inputs may read another database, whose errors are none of headway's."""
    other = create_engine("sqlite://")

    def inputs() -> Iterator[None]:
        with other.connect() as connection:
            yield from connection.execute(text("SELECT * FROM not_there")).scalars()

    with opened(database_url) as hw, pytest.raises(Exception, match="not_there") as raised:
        hw.enqueue_many("work", inputs())
    assert not isinstance(raised.value, HeadwayError)
    other.dispose()


@contextmanager
def without_tables(url: str) -> Iterator[None]:
    """Every table has another name for a while; on PostgreSQL their schema has."""
    if url.startswith("postgresql"):
        schema = url.rpartition("%3D")[2]
        with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as other:
            other.execute(f"ALTER SCHEMA {schema} RENAME TO {schema}_gone")
            yield
            other.execute(f"ALTER SCHEMA {schema}_gone RENAME TO {schema}")
        return
    with closing(sqlite3.connect(str(parse_url(url).database), isolation_level=None)) as other:
        other.execute("PRAGMA legacy_alter_table = ON")  # views do not follow
        names = [
            name
            for (name,) in other.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
            if not name.startswith("sqlite_")
        ]
        for name in names:
            other.execute(f"ALTER TABLE {name} RENAME TO gone_{name}")
        yield
        for name in names:
            other.execute(f"ALTER TABLE gone_{name} RENAME TO {name}")


def with_a_job(url: str, in_trouble: Trouble, found: dict[str, str]) -> Headway:
    """An application with a job in which the database gets into trouble for a while; *found*
    takes what its calls raise that is no error of headway's."""
    hw = app(url)

    @hw.workflow
    def suffering(run: Run) -> None:
        with in_trouble(url):
            found.update(raw_errors(IN_A_RUN, lambda _: run))
            found.update(unaware({name: IN_A_RUN[name] for name in ASKING}, lambda _: run))

    @hw.workflow
    def sleeping() -> None: ...

    hw.schedule("suffering", "suffering").include("sleeping", "asleep", dormant=True)
    return hw


# What waits for its turn in a locked SQLite file, and what reads it, is not refused.
ASKING = ("Run.activate", "Run.activate_many")
TURNING = {f"Sandbox.{verb}" for verb in ("run_until_idle", "advance", "advance_to", "enqueue")}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("in_trouble", [locked, without_tables])
def test_a_sandbox_and_a_run_in_trouble(empty_url: str, in_trouble: Trouble) -> None:
    found = dict[str, str]()
    hw = with_a_job(empty_url, in_trouble, found)
    with Sandbox(hw, database_url=soon_refused(empty_url)) as box:
        box.runtime.trigger("suffering")
        box.run_until_idle()
        assert box.last("suffering").failure is None
        assert found == {}
        with in_trouble(empty_url):
            reading = empty_url.startswith("sqlite") and in_trouble is locked
            asking = {name: SANDBOXED[name] for name in (TURNING if reading else SANDBOXED)}
            assert unaware(asking, lambda _: box) == {}
            assert raw_errors(SANDBOXED, lambda _: box) == {}


@pytest.mark.full
def test_a_sandbox_and_a_run_whose_server_stops_or_lets_nobody_write(
    own_server: PostgresServer,
) -> None:
    found = dict[str, str]()

    @contextmanager
    def stopped(_: str) -> Iterator[None]:
        own_server.stop("immediate")
        yield
        own_server.start(durable=True)

    @contextmanager
    def standing_by() -> Iterator[None]:
        own_server.stop()
        become_standby(own_server)
        yield
        promote(own_server)

    url = own_server.url()
    hw = with_a_job(url, stopped, found)
    with Sandbox(hw, database_url=url) as box:
        box.runtime.trigger("suffering")
        box.run_until_idle()
        assert box.last("suffering").failure is None
        assert found == {}
        with standing_by():
            assert raw_errors(SANDBOXED, lambda _: box) == {}  # on connections that have ended
            turning = {name: SANDBOXED[name] for name in TURNING}
            assert unaware(turning, lambda _: box) == {}
            assert raw_errors(SANDBOXED, lambda _: box) == {}
        with stopped(url):
            assert unaware(SANDBOXED, lambda _: box) == {}
            assert raw_errors(SANDBOXED, lambda _: box) == {}


def test_a_sandbox_and_a_run_whose_file_is_deleted(tmp_path: Path) -> None:
    file, found = tmp_path / "sandbox.db", dict[str, str]()

    @contextmanager
    def deleted(_: str) -> Iterator[None]:
        file.unlink()
        yield

    hw = with_a_job(f"sqlite:///{file}", deleted, found)
    with Sandbox(hw, database_url=f"sqlite:///{file}") as box:
        box.runtime.trigger("suffering")
        with pytest.raises(DatabaseLost):  # the end of the run cannot be recorded any more
            box.run_until_idle()
        assert found == {}
        assert unaware(SANDBOXED, lambda _: box) == {}
        assert raw_errors(SANDBOXED, lambda _: box) == {}


@pytest.mark.parametrize("url", ["postgresql://me:secret@127.0.0.1:1/x", "sqlite:////"])
def test_a_sandbox_on_a_database_that_cannot_be_opened(url: str) -> None:
    with pytest.raises(HeadwayError) as raised, Sandbox(app("sqlite:///x.db"), database_url=url):
        pass
    assert "secret" not in str(raised.value)
