"""Many manifests at once: in chunks, and by COPY where PostgreSQL and its driver are our own.

On SQLite, and in a caller's transaction, whose driver may be any, they are ordinary inserts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Select, Table, insert, text

from headway.errors import CreatedMeanwhile
from headway.store.tables import dependency, manifest, manifest_state
from headway.store.transaction import Transaction, insert_or_ignore

CHUNK = 10_000
# Fewer are not worth it, and cannot fail as a whole because of one.
COPY_FROM = 100
LOOKED_OVER_FROM = 1000
UNIQUE_VIOLATION = "23505"

Thing = TypeVar("Thing")


def chunks(things: Iterable[Thing]) -> Iterator[list[Thing]]:
    """*things* in lists of at most :data:`CHUNK`.

    >>> [len(chunk) for chunk in chunks(range(CHUNK + 1))]
    [10000, 1]
    """
    iterator = iter(things)
    while chunk := list(islice(iterator, CHUNK)):
        yield chunk


class NewRow(NamedTuple):
    """A manifest to be written: the columns it has alike with others, and its own three."""

    shared: Mapping[str, Any]
    external_id: str
    input: str
    declared: str

    def columns(self) -> dict[str, Any]:
        """All of them by name.

        >>> NewRow({"priority": 3}, "load", "null", "{}").columns()
        {'priority': 3, 'external_id': 'load', 'input': 'null', 'declared': '{}'}
        """
        return {**self.shared, **dict(zip(OWN_COLUMNS, self[1:], strict=True))}


OWN_COLUMNS = NewRow._fields[1:]


def streamed(tx: Transaction, statement: Select[Any]) -> Iterator[Any]:
    """What *statement* finds, read in chunks: a million names at once would fill the memory.

    A caller's driver may know of no such thing, and is asked for all of them.
    """
    options = {} if tx.joined else {"yield_per": CHUNK}
    yield from tx.connection.execute(statement, execution_options=options)


def create_manifests(tx: Transaction, rows: Sequence[NewRow]) -> int:
    """Create manifests with their states; each is looked at in the manager's next cycle.

    Returns how many: one whose external id somebody else has just taken is left out. COPY cannot
    leave anything out and raises :class:`CreatedMeanwhile` instead.
    """
    if not rows:
        return 0
    if tx.on_postgresql and not tx.joined and len(rows) >= COPY_FROM:
        return _copied(tx, rows)
    statement = insert_or_ignore(tx, manifest).returning(manifest.c.id)
    ids = tx.connection.execute(statement, [row.columns() for row in rows]).scalars().all()
    if ids:
        states = [{"manifest_id": key, "wake_at": tx.now} for key in ids]
        tx.connection.execute(insert(manifest_state), states)
    return len(ids)


def look_over(tx: Transaction, created: int) -> None:
    """Let PostgreSQL see how much there is now that so many were *created* at once.

    Until it has looked, which by itself it does within a minute, it plans as if there were next to
    nothing: views of ten thousand dependents took six seconds then, and a fifth of one afterwards.
    """
    if tx.on_postgresql and not tx.joined and created >= LOOKED_OVER_FROM:
        tables = (manifest, manifest_state, dependency)
        tx.connection.execute(text(f"ANALYZE {', '.join(table.name for table in tables)}"))


def _copied(tx: Transaction, rows: Sequence[NewRow]) -> int:
    """COPY returns nothing, so the ids are drawn before it."""
    drawn = text(
        "SELECT nextval(pg_get_serial_sequence(:table, 'id')) FROM generate_series(1, :count)"
    )
    values = {"table": manifest.name, "count": len(rows)}
    ids = tx.connection.execute(drawn, values).scalars().all()
    now = _in_copy(tx.now)
    _copy(tx, manifest, ["id", *OWN_COLUMNS, *rows[0].shared], _lines(ids, rows))
    _copy(tx, manifest_state, ["manifest_id", "wake_at"], (f"{key}\t{now}\n" for key in ids))
    return len(ids)


def _lines(ids: Sequence[int], rows: Sequence[NewRow]) -> Iterator[str]:
    """The text of rows that have the same shared columns, in COPY's own format.

    It is put together here, and what rows have alike once: of thirty values each, written one by
    one, a million rows take the driver longer than the server.
    """
    before: Mapping[str, Any] | None = None
    alike = ""
    for key, (shared, external_id, input, declared) in zip(ids, rows, strict=True):
        if shared is not before:
            before, alike = shared, "\t".join(map(_in_copy, shared.values()))
        own = f"{_escaped(external_id)}\t{_escaped(input)}\t{_escaped(declared)}"
        yield f"{key}\t{own}\t{alike}\n"


def _in_copy(value: object) -> str:
    match value:
        case None:
            return r"\N"
        case bool():
            return "t" if value else "f"
        case datetime():
            return value.isoformat()
    return _escaped(str(value))


def _escaped(value: str) -> str:
    escaped = value.replace("\\", r"\\")
    if escaped.isprintable():
        return escaped
    return escaped.replace("\t", r"\t").replace("\n", r"\n").replace("\r", r"\r")


def _copy(tx: Transaction, table: Table, columns: Iterable[str], lines: Iterable[str]) -> None:
    statement = _copy_statement(table, columns)
    driver = tx.connection.connection.driver_connection
    assert driver is not None
    refused = tx.connection.dialect.loaded_dbapi.Error
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            copy.write("".join(lines))
    except refused as error:
        if getattr(error, "sqlstate", None) == UNIQUE_VIOLATION:
            raise CreatedMeanwhile from error
        # COPY bypasses SQLAlchemy, but its errors mean the same as those of other statements.
        tx.connection._handle_dbapi_exception(error, statement, None, None, None)


def _copy_statement(table: Table, columns: Iterable[str]) -> str:
    listed = ", ".join(table.c[name].name for name in columns)
    return f"COPY {table.name} ({listed}) FROM STDIN"
