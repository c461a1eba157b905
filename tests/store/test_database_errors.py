"""Errors of the database in one sentence each, as far as its state explains them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import (
    DBAPIError,
    IntegrityError,
    InterfaceError,
    InternalError,
    InvalidRequestError,
    OperationalError,
    ProgrammingError,
    SQLAlchemyError,
    StatementError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout

from headway.errors import (
    DatabaseOutage,
    DatabaseUnavailable,
    HeadwayError,
    SchemaError,
    SchemaMissing,
)
from headway.store.database_errors import (
    cannot_open,
    in_words,
    misses_table,
    path_trouble,
    worded_for_callers,
)
from headway.store.engine import TRANSIENT, Store, ended_by_timeout, waited_in_vain
from tests.store.factories import declare

STATEMENT = "SELECT 1 FROM headway_wake"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "empty.db"


@pytest.fixture
def empty(file: Path) -> Iterator[Store]:
    """A store on a file without tables."""
    with closing(Store(f"sqlite:///{file}", durable=False)) as store:
        yield store


def of_sqlite(
    code: int,
    said: str,
    kind: type[DBAPIError] = OperationalError,
    statement: str | None = STATEMENT,
) -> DBAPIError:
    cause = sqlite3.OperationalError(said)
    cause.sqlite_errorcode = code
    return kind(statement, None, cause)


class Refusal(psycopg.Error):
    """An answer of PostgreSQL's with a code."""

    def __init__(self, code: str, said: str) -> None:
        super().__init__(said)
        self.sqlstate = code


def of_postgresql(
    code: str, said: str = "no", kind: type[DBAPIError] = ProgrammingError
) -> DBAPIError:
    return kind(STATEMENT, None, Refusal(code, said))


FREE_SPACE = "; free space on its disk; nothing that was acknowledged is lost"
SAID: dict[str, tuple[SQLAlchemyError, type[HeadwayError], str]] = {
    "locked": (
        of_sqlite(sqlite3.SQLITE_BUSY, "database is locked"),
        DatabaseOutage,
        "{} is locked: another connection has been writing to it for 30 seconds; end its "
        "transaction, or try again later",
    ),
    "full": (
        of_sqlite(sqlite3.SQLITE_FULL, "database or disk is full"),
        DatabaseOutage,
        "the database failed: database or disk is full ({})" + FREE_SPACE,
    ),
    "a busy code with more in it": (
        of_sqlite(sqlite3.SQLITE_IOERR_READ, "disk I/O error\nat once"),
        DatabaseOutage,
        "the database failed: disk I/O error ({}); look at its disk, and at what the system's log "
        "says of it",
    ),
    "damaged": (
        of_sqlite(sqlite3.SQLITE_CORRUPT, "malformed", DBAPIError),
        DatabaseUnavailable,
        "the database failed: malformed ({}); the file is damaged: stop every process that uses "
        "it, then restore it from a backup, or save what can be read with sqlite3 FILE .recover",
    ),
    "no database": (
        of_sqlite(sqlite3.SQLITE_NOTADB, "file is not a database", DBAPIError),
        DatabaseUnavailable,
        "the database failed: file is not a database ({}); name another file, or restore this one "
        "from a backup",
    ),
    "cannot be opened": (
        of_sqlite(sqlite3.SQLITE_CANTOPEN, "unable to open database file", statement=None),
        DatabaseOutage,
        "cannot open {}: unable to open database file",
    ),
    "full server": (
        of_postgresql("53100", "No space left on device", OperationalError),
        DatabaseOutage,
        "the database failed: No space left on device ({})" + FREE_SPACE,
    ),
    "read-only server": (
        of_postgresql("25006", "cannot execute INSERT in a read-only transaction", InternalError),
        DatabaseOutage,
        "{} is read-only: cannot execute INSERT in a read-only transaction; if it is a standby, "
        "use the address of the primary; else allow its user to write",
    ),
    "no permission": (
        of_postgresql("42501", "permission denied for table headway_wake"),
        DatabaseUnavailable,
        "the database failed: permission denied for table headway_wake ({})",
    ),
    "after an error": (
        of_postgresql("25P02", "current transaction is aborted", InternalError),
        DatabaseUnavailable,
        "the database failed: current transaction is aborted ({})",
    ),
    "driver": (
        InterfaceError(STATEMENT, None, Exception("the connection is closed")),
        DatabaseOutage,
        "the database failed: the connection is closed ({})",
    ),
    "without words": (
        OperationalError(STATEMENT, None, TimeoutError()),
        DatabaseOutage,
        "the database failed: TimeoutError ({})",
    ),
    "all in use": (
        PoolTimeout("QueuePool limit of size 1"),
        DatabaseOutage,
        "cannot open {}: every connection of this process is in use, and none became free in "
        "time; let transactions end sooner",
    ),
    "closed": (
        InvalidRequestError("This Connection is closed"),
        DatabaseUnavailable,
        "connection: cannot be used: This Connection is closed",
    ),
}


@pytest.mark.parametrize("case", SAID)
def test_what_the_state_of_the_database_explains_is_one_sentence(
    empty: Store, file: Path, case: str
) -> None:
    error, kind, sentence = SAID[case]
    told = in_words(empty, error)
    assert type(told) is kind
    assert str(told) == sentence.format(f"sqlite:///{file}")


@pytest.mark.parametrize(
    "error",
    [
        of_sqlite(sqlite3.SQLITE_ERROR, 'near "SELEC": syntax error'),
        of_postgresql("42601", "syntax error"),
        of_postgresql("23505", "duplicate key", IntegrityError),
        StatementError("a value is required", STATEMENT, None, Exception("why")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_that_headway_has_caused_itself_stays_as_it_is(
    store: Store, error: SQLAlchemyError
) -> None:
    assert in_words(store, error) is None


def test_a_connection_that_broke_is_no_fault_of_the_statement(empty: Store) -> None:
    broken = DBAPIError(STATEMENT, None, Exception("reset by peer"), connection_invalidated=True)
    told = in_words(empty, broken)
    assert type(told) is DatabaseUnavailable
    assert "reset by peer" in str(told)


def test_a_missing_table_is_a_missing_schema_if_that_is_so(empty: Store, store: Store) -> None:
    for error in (
        of_sqlite(sqlite3.SQLITE_ERROR, "no such table: headway_wake"),
        of_postgresql("42P01", 'relation "headway_wake" does not exist'),
        of_postgresql("42703", 'column "headway_x" does not exist'),
        of_postgresql("3F000", 'schema "headway_x" does not exist'),
    ):
        assert misses_table(error)
        assert isinstance(in_words(empty, error), SchemaMissing)
        assert in_words(store, error) is None, "the schema fits: it is headway's own mistake"
    theirs = sqlite3.OperationalError("no such table: invoices")
    theirs.sqlite_errorcode = sqlite3.SQLITE_ERROR
    assert in_words(empty, OperationalError("SELECT 1 FROM invoices", None, theirs)) is None
    assert not misses_table(of_sqlite(sqlite3.SQLITE_BUSY, "database is locked"))


def test_errors_in_the_block_of_a_transaction_are_told_in_words(empty: Store) -> None:
    for opening in (empty.reading, empty.writing, empty.unclocked, empty.briefly):
        with pytest.raises(SchemaMissing) as told, opening() as tx:
            tx.connection.execute(text(STATEMENT))
        assert isinstance(told.value.__cause__, OperationalError)


def test_a_pool_that_has_no_connection_left_is_an_outage(empty: Store) -> None:
    with pytest.raises(DatabaseOutage, match="every connection of this process"), empty.reading():
        raise PoolTimeout("QueuePool limit of size 1")


def test_errors_of_another_database_pass_through_a_transaction(
    empty: Store, tmp_path: Path
) -> None:
    other = create_engine(f"sqlite:///{tmp_path / 'other.db'}")
    with pytest.raises(OperationalError), empty.writing(), other.connect() as connection:
        connection.execute(text(STATEMENT))
    other.dispose()


def test_on_a_callers_connection_every_error_is_told(empty: Store) -> None:
    with pytest.raises(DatabaseOutage, match="is locked") as told, worded_for_callers(empty):
        raise of_sqlite(sqlite3.SQLITE_BUSY, "database is locked")
    assert isinstance(told.value.__cause__, OperationalError)
    with pytest.raises(IntegrityError), worded_for_callers(empty):
        raise of_postgresql("23505", "duplicate key", IntegrityError)
    with pytest.raises(ValueError, match="not ours"), worded_for_callers(empty):
        raise ValueError("not ours")


def test_a_schema_that_cannot_be_looked_at_leaves_the_first_error(file: Path, empty: Store) -> None:
    declared = of_sqlite(sqlite3.SQLITE_ERROR, "no such table: headway_wake")
    with empty.reading() as tx:
        tx.connection.execute(text("SELECT 1"))
    file.unlink()
    assert in_words(empty, declared) is None


def test_what_keeps_a_user_from_a_file_is_named(tmp_path: Path) -> None:
    folder, known = tmp_path / "folder", tmp_path / "known.db"
    folder.mkdir()
    known.touch()
    told = path_trouble(make_url(f"sqlite:///{folder}"))
    assert told == f"cannot open sqlite:///{folder}: {folder} is a directory; name a file in it"
    assert path_trouble(make_url(f"sqlite:///{known}")) is None
    assert path_trouble(make_url(f"sqlite:///{tmp_path / 'new.db'}")) is None
    assert path_trouble(make_url("postgresql://me@db/app")) is None


def test_what_is_wrong_with_the_file_is_said_instead_of_what_came_of_it(
    file: Path, empty: Store
) -> None:
    file.unlink()
    file.mkdir()
    told = in_words(empty, of_sqlite(sqlite3.SQLITE_CANTOPEN, "unable to open database file"))
    assert type(told) is DatabaseOutage
    assert str(told) == f"cannot open sqlite:///{file}: {file} is a directory; name a file in it"


def test_a_database_that_cannot_be_opened_is_named_with_what_to_do() -> None:
    url = make_url("postgresql+psycopg://me:secret@db/app")
    told = cannot_open(url, of_postgresql("53100", "disk full\nDETAIL: none", OperationalError))
    assert type(told) is DatabaseUnavailable
    assert str(told) == f"cannot open postgresql://me:***@db/app: disk full{FREE_SPACE}"
    assert type(cannot_open(url, of_postgresql("53100"), DatabaseOutage)) is DatabaseOutage


@pytest.mark.parametrize(
    ("code", "timeout", "in_vain"),
    [
        ("57014", True, False),
        ("25P03", True, False),
        ("25P04", True, False),
        ("55P03", False, True),
        ("23505", False, False),
    ],
)
def test_a_timeout_and_a_lock_that_others_hold_are_told_apart(
    empty: Store, code: str, timeout: bool, in_vain: bool
) -> None:
    error = of_postgresql(code, kind=OperationalError)
    try:
        raise DatabaseOutage("in words") from error
    except DatabaseOutage as caught:
        worded = caught
    for one in (error, worded):
        assert ended_by_timeout(one) is timeout
        assert waited_in_vain(one) is in_vain
        assert isinstance(one, TRANSIENT)
    assert not ended_by_timeout(None)
    assert waited_in_vain(of_sqlite(sqlite3.SQLITE_BUSY, "database is locked"))


def test_a_schema_that_fits_is_no_error_and_a_missing_one_is(store: Store, empty: Store) -> None:
    declare(store, "extract")
    assert store.schema_error() is None
    assert isinstance(empty.schema_error(), SchemaError)
