"""Database addresses: which are accepted, and how they are shown without their password."""

import os
from contextlib import suppress
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from headway.errors import DatabaseUnavailable, SettingsError
from headway.extras import require

EXAMPLES = "for example postgresql://user@host/database or sqlite:///headway.db"


class Address(str):
    """An address as it was given, and the *folder* in which a relative path of it begins."""

    folder: Path | None = None


class DefaultAddress(Address):
    """The address of the database that is used when none is given."""


def anchored(address: str) -> Address:
    """The same address, which leads to the same file after ``os.chdir``.

    >>> anchored("sqlite:///headway.db").folder == Path.cwd()
    True
    """
    if isinstance(address, Address) and address.folder is not None:
        return address
    kind = DefaultAddress if isinstance(address, DefaultAddress) else Address
    known = kind(address)
    with suppress(OSError):  # the current folder was deleted
        known.folder = Path.cwd()
    return known


DEFAULT_DATABASE_URL = DefaultAddress("sqlite:///headway.db")


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
    if isinstance(text, Address) and text.folder is not None:
        url = _from(text.folder, url)
    backend = url.get_backend_name()
    if backend in ("postgresql", "postgres"):
        require("postgres")
        return url.set(drivername="postgresql+psycopg")
    if backend == "sqlite":
        return _checked_sqlite(url)
    raise SettingsError(f"database_url = {shown(url)!r}: no such kind of database; {EXAMPLES}")


def _from(folder: Path, url: URL) -> URL:
    """The path of an SQLite file as it was meant in *folder*; as it is if that is where we are."""
    path = str(url.database or ":memory:")
    is_relative = not (path.startswith(("file:", ":")) or Path(path).is_absolute())
    if url.get_backend_name() != "sqlite" or not is_relative or _is_here(folder):
        return url
    return url.set(database=str(folder / path))


def _is_here(folder: Path) -> bool:
    try:
        return Path.cwd() == folder
    except OSError:
        return False


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


def described(address: str) -> str:
    """The address as :func:`shown`; the default one with its absolute path and where it is from.

    >>> described("sqlite:///headway.db")
    'sqlite:///headway.db'
    >>> described(DEFAULT_DATABASE_URL)  # doctest: +ELLIPSIS
    'sqlite:////.../headway.db (default; set HEADWAY_DATABASE_URL or Headway(database_url=...))'
    """
    url = parse_url(address)
    if not isinstance(address, DefaultAddress):
        return shown(url)
    absolute = url.set(database=str(Path(str(url.database)).resolve()))
    origin = "(default; set HEADWAY_DATABASE_URL or Headway(database_url=...))"
    return f"{shown(absolute)} {origin}"


def create_private(path: Path) -> None:
    """Make sure the database file exists and only its owner can read it."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise DatabaseUnavailable(f"cannot create {path}: {error.strerror}") from error
