"""Database addresses: which are accepted, and how they are shown without their password."""

import os
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from headway.errors import DatabaseUnavailable, SettingsError
from headway.extras import require

EXAMPLES = "for example postgresql://user@host/database or sqlite:///headway.db"


def parse_url(text: str) -> URL:
    """The address as SQLAlchemy wants it, or an error that says what an address looks like.

    >>> parse_url("sqlite:///headway.db").database
    'headway.db'
    """
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # Not "from" it: what could not be read may be a password, and the cause would quote it.
        raise SettingsError(f"database_url: cannot be read as an address; {EXAMPLES}") from None
    backend = url.get_backend_name()
    if backend in ("postgresql", "postgres"):
        require("postgres")
        return url.set(drivername="postgresql+psycopg")
    if backend == "sqlite":
        return _checked_sqlite(url)
    raise SettingsError(f"database_url = {shown(url)!r}: no such kind of database; {EXAMPLES}")


def _checked_sqlite(url: URL) -> URL:
    if url.database in (None, "", ":memory:") or str(url.database).startswith("file:"):
        raise SettingsError(
            f"database_url = {shown(url)!r}: SQLite needs the path of a file, because several "
            f"connections share it; for example sqlite:///headway.db"
        )
    folder = Path(str(url.database)).resolve().parent
    if not folder.is_dir():
        raise SettingsError(f"database_url = {shown(url)!r}: the folder {folder} does not exist")
    return url.set(drivername="sqlite+pysqlite")


def shown(url: URL) -> str:
    """The address for people: without its password and its driver.

    >>> shown(make_url("postgresql://me:secret@db/app"))
    'postgresql://me:***@db/app'
    """
    hidden = {"password": "hidden"} if "password" in url.query else {}
    plain = url.set(drivername=url.get_backend_name()).update_query_dict(hidden)
    return plain.render_as_string(hide_password=True)


def create_private(path: Path) -> None:
    """Make sure the database file exists and only its owner can read it."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise DatabaseUnavailable(f"cannot create {path}: {error.strerror}") from error
