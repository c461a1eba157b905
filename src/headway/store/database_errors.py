"""Errors of the database in one sentence each: one rule for the Python API, the CLI and the loops.

Only what the database's state explains becomes a :class:`HeadwayError`: away, restarting, locked,
read-only, not migrated, refusing this user. An error that headway itself caused stays as it is.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import update_wrapper
from pathlib import Path
from types import TracebackType
from typing import Concatenate, Generic, ParamSpec, Protocol, TypeVar

from sqlalchemy import URL, Engine, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import (
    DBAPIError,
    InterfaceError,
    InvalidRequestError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout

from headway.errors import DatabaseOutage, DatabaseUnavailable, HeadwayError, SchemaError
from headway.store.outages import READ_ONLY
from headway.store.poolers import with_advice
from headway.store.taking_turns import PATIENCE
from headway.store.urls import shown

# Attribute of an exception that comes from an engine of headway's, and not from a caller's.
_OWN = "headway_own"

_OUTAGES = (OperationalError, InterfaceError)
_SQLITE_BROKEN = frozenset({sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT})
_DISK_FULL = "free space on its disk; nothing that was acknowledged is lost"
# What to do about it, by SQLite's code or PostgreSQL's.
_TO_DO: dict[object, str] = {
    sqlite3.SQLITE_NOTADB: "name another file, or restore this one from a backup",
    sqlite3.SQLITE_CORRUPT: "the file is damaged: stop every process that uses it, then restore "
    "it from a backup, or save what can be read with sqlite3 FILE .recover",
    sqlite3.SQLITE_FULL: _DISK_FULL,
    sqlite3.SQLITE_IOERR: "look at its disk, and at what the system's log says of it",
    "53100": _DISK_FULL,
}
# PostgreSQL: a table, a column or a schema that does not exist.
_NOT_THERE = frozenset({"42P01", "42703", "3F000"})
_NO_SUCH = ("no such table", "no such column", "has no column named")
# PostgreSQL: no permission, and what follows an error in the same transaction.
_REFUSED = frozenset({"42501", "25P02"})

_TO_WRITE = "if it is a standby, use the address of the primary; else allow its user to write"

P = ParamSpec("P")
T = TypeVar("T")


class Opened(Protocol):
    """The part of a store that the sentences need: its address, and a look at its schema."""

    @property
    def url(self) -> URL:
        """Where the database is."""

    def schema_error(self) -> SchemaError | None:
        """The reason why the schema does not fit this code, if there is one."""


S = TypeVar("S", bound=Opened)


def note_own_errors(engine: Engine) -> None:
    """Mark the errors of *engine*, so that those of a caller's own database are told apart."""

    @event.listens_for(engine, "handle_error")
    def mark(context: ExceptionContext) -> None:
        # Only set where an earlier listener has replaced the error.
        replaced = getattr(context, "chained_exception", None)
        error = replaced or context.sqlalchemy_exception
        if error is not None:
            error.__dict__[_OWN] = True


def worded(
    opening: Callable[Concatenate[S, P], Iterator[T]],
) -> Callable[Concatenate[S, P], AbstractContextManager[T]]:
    """A context manager like those of ``contextmanager``, in whose block errors of the store's
    own database become :class:`HeadwayError`.

    Errors of other databases pass: a caller's code may run in the block.
    """
    managed = contextmanager(opening)

    def open_worded(
        store: S, /, *arguments: P.args, **options: P.kwargs
    ) -> AbstractContextManager[T]:
        return _Worded(store, managed(store, *arguments, **options))

    update_wrapper(open_worded, opening)
    return open_worded


class _Worded(Generic[T]):
    """Opens *managed*; costs nothing measurable unless something fails."""

    __slots__ = ("_managed", "_store")

    def __init__(self, store: Opened, managed: AbstractContextManager[T]) -> None:
        self._store = store
        self._managed = managed

    def __enter__(self) -> T:
        try:
            return self._managed.__enter__()
        except SQLAlchemyError as error:
            _raise_worded(self._store, error)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        try:
            handled = self._managed.__exit__(kind, error, traceback)
        except SQLAlchemyError as failed:
            _raise_worded(self._store, failed)
            raise
        if not handled and isinstance(error, SQLAlchemyError):
            _raise_worded(self._store, error)
        return handled


def _raise_worded(store: Opened, error: SQLAlchemyError) -> None:
    # A pool raises its timeouts without telling the engine's listeners.
    is_own = _OWN in error.__dict__ or isinstance(error, PoolTimeout)
    if is_own and (told := in_words(store, error)) is not None:
        raise told from error


@contextmanager
def worded_for_callers(store: Opened) -> Iterator[None]:
    """The same for statements on a connection of the caller's, whose errors are not marked."""
    try:
        yield
    except SQLAlchemyError as error:
        if (told := in_words(store, error)) is not None:
            raise told from error
        raise


def in_words(store: Opened, error: SQLAlchemyError) -> HeadwayError | None:
    """The error to raise in place of *error*; None if the database's state does not explain it."""
    address = shown(store.url)
    if isinstance(error, PoolTimeout):
        return DatabaseOutage(
            f"cannot open {address}: every connection of this process is in use, and none became "
            "free in time; let transactions end sooner"
        )
    if isinstance(error, DBAPIError):
        of_headway = "headway_" in str(error)
        if of_headway and misses_table(error) and (misfit := _schema_error(store)) is not None:
            return misfit
        return _unavailable(store.url, error)
    if isinstance(error, InvalidRequestError):  # of a connection that failed before, or is closed
        return DatabaseUnavailable(f"connection: cannot be used: {first_line(error)}")
    return None


def explained(store: Opened, error: BaseException | None) -> HeadwayError | None:
    """Return the error of the database's state that *error* was caused by, if there is one."""
    while error is not None:
        if isinstance(error, DatabaseUnavailable | SchemaError):
            return error
        if isinstance(error, SQLAlchemyError) and (told := in_words(store, error)) is not None:
            return told
        error = error.__cause__
    return None


def _unavailable(url: URL, error: DBAPIError) -> DatabaseUnavailable | None:
    if getattr(error.orig, "sqlstate", None) == READ_ONLY:
        return DatabaseOutage(f"{shown(url)} is read-only: {first_line(error)}; {_TO_WRITE}")
    code = _sqlite_code(error)
    # SQLite's plain ERROR is about a statement: a table it lacks, or a mistake of headway's.
    passes = isinstance(error, _OUTAGES) and code != sqlite3.SQLITE_ERROR
    is_refused = getattr(error.orig, "sqlstate", None) in _REFUSED
    if not (passes or is_refused or error.connection_invalidated or code in _SQLITE_BROKEN):
        return None
    kind = DatabaseOutage if passes else DatabaseUnavailable
    if code == sqlite3.SQLITE_BUSY:
        return kind(
            f"{shown(url)} is locked: another connection has been writing to it for {PATIENCE} "
            "seconds; end its transaction, or try again later"
        )
    if (trouble := path_trouble(url)) is not None:
        return kind(trouble)
    if error.statement is None:
        return cannot_open(url, error, kind)
    failure = with_advice(f"the database failed: {first_line(error)} ({shown(url)})")
    return kind(f"{failure}{_to_do(error)}")


def _sqlite_code(error: DBAPIError) -> int:
    # The first byte is the error, the others say more about it.
    return int(getattr(error.orig, "sqlite_errorcode", 0)) & 0xFF


def _to_do(error: DBAPIError) -> str:
    known = _TO_DO.get(getattr(error.orig, "sqlstate", None)) or _TO_DO.get(_sqlite_code(error))
    return f"; {known}" if known else ""


def cannot_open(
    url: URL, error: DBAPIError, kind: type[DatabaseUnavailable] = DatabaseUnavailable
) -> DatabaseUnavailable:
    """The error for a database that cannot be opened, with what to change if that is known."""
    return kind(f"cannot open {shown(url)}: {with_advice(first_line(error))}{_to_do(error)}")


def first_line(error: SQLAlchemyError) -> str:
    """The first line of the database's or driver's own message, without the statement."""
    cause = getattr(error, "orig", None) or error
    lines = str(cause).strip().splitlines()
    return lines[0] if lines else type(cause).__name__


def path_trouble(url: URL) -> str | None:
    """Return why this user cannot open the SQLite file at *url*, by its rights or its folder's.

    None if nothing is known to keep the user from it.

    >>> from sqlalchemy import make_url
    >>> path_trouble(make_url("sqlite:////"))
    'cannot open sqlite:////: / is a directory; name a file in it'
    """
    if url.get_backend_name() != "sqlite":
        return None
    file = Path(str(url.database)).resolve()
    if file.is_dir():
        return f"cannot open {shown(url)}: {file} is a directory; name a file in it"
    for path in filter(os.path.exists, (file, file.parent)):
        for mode, trouble in ((os.R_OK, "unreadable"), (os.W_OK, "read-only")):
            if not os.access(path, mode):
                return (
                    f"cannot open {shown(url)}: {path} is {trouble} for this user, and SQLite has "
                    "to write to the file and its folder; change the owner or the mode, or name "
                    "another file"
                )
    return None


def misses_table(error: DBAPIError) -> bool:
    """Whether a table or a column that a statement names does not exist."""
    return getattr(error.orig, "sqlstate", None) in _NOT_THERE or any(
        words in str(error.orig) for words in _NO_SUCH
    )


def _schema_error(store: Opened) -> SchemaError | None:
    try:
        return store.schema_error()
    except (SQLAlchemyError, HeadwayError):
        return None  # the first error says more
