"""``headway db``: which version the database is at, and bringing it to the one needed."""

import os
import shlex
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from headway.cli.applications import applications
from headway.cli.database import database_option, open_database
from headway.cli.output import AsJson, echo_json
from headway.cli.progress import watched
from headway.cli.target import load
from headway.cli.terminal import plain
from headway.cli.usage import APP_VARIABLE, APPLICATION
from headway.definition.app import DEFAULT_DATABASE_URL
from headway.errors import SchemaTooNew
from headway.store.engine import Store
from headway.store.migrate import Migration, current_version, migrations_for
from headway.store.migrate import migrate as apply_migrations
from headway.store.schema_versions import check_names
from headway.store.urls import described, parse_url, shown

PENDING = 3

OptionalTarget = Annotated[
    str | None,
    typer.Argument(
        metavar=APPLICATION,
        envvar=APP_VARIABLE,
        show_envvar=False,
        autocompletion=applications,
        help=f"Take the database of this application. Else {APP_VARIABLE}.",
    ),
]
DatabaseUrl = Annotated[
    str | None,
    database_option(
        "The database itself. Without both: HEADWAY_DATABASE_URL, then sqlite:///headway.db."
    ),
]


def migrate(
    target: OptionalTarget = None, database_url: DatabaseUrl = None, as_json: AsJson = False
) -> None:
    """Apply every migration the database does not have yet.

    Example: headway db migrate --database-url postgresql://db.example/shop
    """
    address = address_of(target, database_url)
    what = f"migrating {shown(parse_url(address))}"
    with _opened(address) as store, watched(what, hidden=as_json) as moved:
        applied = apply_migrations(store, moved)
        where = plain(shown(store.url) if as_json else described(address))
    version = migrations_for(store.url.get_backend_name())[-1].version
    if as_json:
        labels = list(map(_label, applied))
        echo_json({"database": where, "version": version, "applied": labels})
        return
    for migration in applied:
        typer.echo(f"applied {_label(migration)}")
    result = f"migrated {where}" if applied else f"{where} is up to date"
    typer.echo(f"{result}: version {version}")


def status(
    target: OptionalTarget = None, database_url: DatabaseUrl = None, as_json: AsJson = False
) -> None:
    """Say which version the database is at; exits 3 if migrations are pending.

    Example: headway db status shop:hw
    """
    address = address_of(target, database_url)
    url = parse_url(address)
    known = migrations_for(url.get_backend_name())
    found = _version(address)
    if found > known[-1].version:
        raise SchemaTooNew(found, known[-1].version)
    pending = [migration for migration in known if migration.version > found]
    labels = list(map(_label, pending))
    if as_json:
        where, needed = plain(shown(url)), known[-1].version
        echo_json({"database": where, "version": found, "needed": needed, "pending": labels})
    else:
        typer.echo(f"database  {plain(described(address))}")
        typer.echo(f"version   {found or 'none yet'} (this headway needs {known[-1].version})")
        typer.echo(f"pending   {', '.join(labels) or 'nothing'}")
    if pending:
        if not as_json:
            typer.echo(f"run: {_migrate_command(target, database_url)}")
        raise typer.Exit(PENDING)


def _migrate_command(target: str | None, database_url: str | None) -> str:
    words = ["headway", "db", "migrate", *([target] if target else [])]
    if database_url:
        words += ["--database-url", shown(parse_url(database_url))]
    return plain(shlex.join(words))


def address_of(target: str | None, database_url: str | None) -> str:
    """The database a command is about.

    >>> address_of(None, "sqlite:///shop.db")
    'sqlite:///shop.db'
    """
    if database_url:
        return database_url
    if target is not None:
        return load(target).database_url
    return os.environ.get("HEADWAY_DATABASE_URL") or DEFAULT_DATABASE_URL


def _version(address: str) -> int:
    url = parse_url(address)
    if url.get_backend_name() == "sqlite" and not Path(str(url.database)).exists():
        return 0  # asking must not create the file
    with _opened(address) as store, store.reading() as tx:
        check_names(tx.connection, migrations_for(url.get_backend_name()))
        return current_version(tx)


@contextmanager
def _opened(address: str) -> Iterator[Store]:
    with closing(open_database(address)) as store:
        store.check()
        yield store


def _label(migration: Migration) -> str:
    return f"{migration.version:04d} {migration.name}"
