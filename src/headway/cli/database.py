"""The database of a command: its option, and opening it or saying in one line why not."""

import os
import warnings
from pathlib import Path
from typing import Any

import typer

from headway.errors import DatabaseUnavailable, SettingsError
from headway.store.engine import POOLED, Store
from headway.store.urls import parse_url, shown


def database_option(help: str) -> Any:
    """The option ``--database-url``.

    >>> database_option("The database itself.").metavar
    'URL'
    """
    return typer.Option(metavar="URL", help=help, callback=_not_blank)


def _not_blank(address: str | None) -> str | None:
    if address is not None and not address.strip():
        raise typer.BadParameter("is empty; leave it out, or give an address")
    return address


def open_database(address: str, connections: int = POOLED) -> Store:
    """Open the database at *address*; whoever asked closes it.

    >>> open_database("sqlite:///headway.db").close()  # doctest: +SKIP
    """
    _refuse_read_only(address)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            return Store(address, connections=connections)
        except RuntimeWarning as ignored:
            told = f"database_url = {shown(parse_url(address))!r}: not every option is known here"
            raise SettingsError(f"{told}; leave out what follows the ?") from ignored


def refuse_missing(address: str, *, named: bool, by: str) -> None:
    """Asking how a database is must not create one; if it was not *named*, say how: *by* what.

    >>> refuse_missing("sqlite:///not-there.db", named=True, by="--database-url URL")
    Traceback (most recent call last):
    headway.errors.DatabaseUnavailable: cannot open sqlite:///not-there.db: there is no such file
    """
    url = parse_url(address)
    if url.get_backend_name() == "sqlite" and not Path(str(url.database)).exists():
        told = f"cannot open {shown(url)}: there is no such file"
        raise DatabaseUnavailable(told if named else f"{told}; name another by {by}")


def _refuse_read_only(address: str) -> None:
    """SQLite would say so in words of its own, and beside the file it needs two more."""
    url = parse_url(address)
    if url.get_backend_name() != "sqlite":
        return
    file = Path(str(url.database)).resolve()
    for path in (file, file.parent):
        if path.exists() and not os.access(path, os.W_OK):
            raise DatabaseUnavailable(
                f"cannot open {shown(url)}: {path} is read-only for this user, and SQLite has to "
                "write to the file and its folder"
            )
