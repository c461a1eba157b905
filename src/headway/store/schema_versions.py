"""Schema versions: the one a database is at, and the one this code needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from sqlalchemy import Connection, func, inspect, select

from headway.errors import (
    SchemaError,
    SchemaForeign,
    SchemaMissing,
    SchemaOutdated,
    SchemaTooNew,
)
from headway.store.tables import schema_version


@dataclass(frozen=True)
class Migration:
    """One numbered step of the schema, for one kind of database."""

    version: int
    name: str
    sql: str


def migrations_for(dialect: str) -> tuple[Migration, ...]:
    """Every migration shipped with this version, in order.

    >>> [migration.version for migration in migrations_for("sqlite")][:1]
    [1]
    """
    folder = files("headway.store").joinpath("migrations", dialect)
    found = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    return tuple(
        Migration(int(name[:4]), name[5:-4], folder.joinpath(name).read_text("utf-8"))
        for name in found
    )


def version_of(connection: Connection) -> int:
    """The version the database is at; 0 if it has no headway tables."""
    if not inspect(connection).has_table(schema_version.name):
        return 0
    return connection.execute(select(func.max(schema_version.c.version))).scalar_one() or 0


def check_names(connection: Connection, known: Sequence[Migration]) -> None:
    """Raise :class:`SchemaForeign` if an applied migration has another name than in *known*."""
    if not inspect(connection).has_table(schema_version.name):
        return
    names = {migration.version: migration.name for migration in known}
    columns = schema_version.c.version, schema_version.c.name
    for version, name in connection.execute(select(*columns).order_by(columns[0])):
        if names.get(version, name) != name:
            raise SchemaForeign(version, name, names[version])


def misfit(found: int, known: Sequence[Migration]) -> SchemaError | None:
    """The error for a database at version *found*; None if it fits the migrations *known*."""
    needed = known[-1].version
    if found == 0:
        return SchemaMissing()
    if found < needed:
        return SchemaOutdated(found, needed)
    return SchemaTooNew(found, needed) if found > needed else None
