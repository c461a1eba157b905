"""The database of a command: its option, and opening it or saying in one line why not."""

import warnings
from pathlib import Path
from typing import Any

import typer

from headway.cli.signals import StopSignals
from headway.definition.app import Headway
from headway.errors import DatabaseUnavailable, SettingsError
from headway.patience import DatabaseWait
from headway.store.database_errors import path_trouble
from headway.store.engine import POOLED, Store
from headway.store.urls import described, parse_url, shown


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
    _refuse_unusable(address)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            return Store(address, connections=connections)
        except RuntimeWarning as ignored:
            told = f"database_url = {shown(parse_url(address))!r}: not every option is known here"
            raise SettingsError(f"{told}; leave out what follows the ?") from ignored


def patience(address: str, app: Headway, signals: StopSignals) -> DatabaseWait:
    """Wait for the database at *address* while *app* starts, until *signals* request a stop.

    >>> patience("sqlite:///headway.db", app, signals)(lambda: 42)  # doctest: +SKIP
    42
    """
    told, unreached = shown(parse_url(address)), app.settings.database_start_timeout
    return DatabaseWait(told, app.observer, unreached, is_stopping=signals.is_requested)


def refuse_missing(address: str, *, named: bool, by: str) -> None:
    """Asking how a database is must not create one; if it was not *named*, say how: *by* what.

    >>> refuse_missing("sqlite:///not-there.db", named=True, by="--database-url URL")
    Traceback (most recent call last):
    headway.errors.DatabaseUnavailable: cannot open sqlite:///not-there.db: there is no such file
    """
    url = parse_url(address)
    if url.get_backend_name() == "sqlite" and not Path(str(url.database)).exists():
        told = f"cannot open {described(address)}: there is no such file"
        raise DatabaseUnavailable(told if named else f"{told}; name another by {by}")


def _refuse_unusable(address: str) -> None:
    """SQLite would say so in words of its own, and beside the file it needs two more."""
    if (trouble := path_trouble(parse_url(address))) is not None:
        raise DatabaseUnavailable(trouble)
