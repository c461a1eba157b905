"""Statements that go straight to PostgreSQL's driver.

What every job passes through is asked for one job as often as for a thousand, and whatever it is,
SQLAlchemy takes 50 to 100 µs for the way to the driver and back; the driver itself looks for the
parameters of everything longer than 4,096 characters again each time. Here a statement is written
down once, with its parameters as PostgreSQL numbers them, and the whole way takes a third.

SQLAlchemy still puts the statement together, converts values, and says what an error means. Whoever
listens to what it sends, a tracer or a test, hears of these too: they take its way then.
"""

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.types import TypeEngine

NUMBERED = PGDialect_psycopg(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]
NOTHING: Mapping[str, Any] = {}

Convert = Callable[[Any], Any]


def ask(
    connection: Connection,
    statement: Any,
    given: Mapping[str, Any] = NOTHING,
    *,
    straight: bool = True,
) -> Sequence[Any]:
    """All rows that *statement* returns, if it does, which is one that is kept and sent often."""
    if straight and goes_straight(connection):
        return written(statement).carry_out(connection, given)
    answer = connection.execute(statement, given)
    return answer.all() if answer.returns_rows else ()


def ask_one(connection: Connection, statement: Any, given: Mapping[str, Any] = NOTHING) -> Any:
    """The only row of a *statement* that returns one."""
    [row] = ask(connection, statement, given)
    return row


def write_down(statement: Any) -> None:
    """Put *statement* together now, and not when it is first sent.

    >>> from sqlalchemy import text
    >>> write_down(text("SELECT 1 AS one").columns())
    """
    written(statement)


def goes_straight(connection: Connection) -> bool:
    """Whether statements may pass SQLAlchemy by: the driver is known, and nobody listens."""
    if connection.dialect.driver != "psycopg":
        return False
    heard = connection.dispatch
    return not (heard.before_cursor_execute or heard.after_cursor_execute)


class _Parameter(NamedTuple):
    """Where a value goes in: one that must be given, or what the statement says itself."""

    name: str
    said: Any
    required: bool
    convert: Convert | None

    def of(self, given: Mapping[str, Any]) -> Any:
        value = given[self.name] if self.required else given.get(self.name, self.said)
        return value if self.convert is None else self.convert(value)


class Column(NamedTuple):
    """What the database says of a column it has sent."""

    name: str
    type_code: int


class Written:
    """A statement as it is sent: its text, and how values go in and come out."""

    def __init__(self, statement: Any) -> None:
        compiled = statement.compile(dialect=NUMBERED)
        self.text = str(compiled)
        self._parameters = [
            _Parameter(name, one.value, one.required, _into(one.type))
            for name, one in ((name, compiled.binds[name]) for name in compiled.positiontup or ())
        ]
        self._types = {one.name: one.type for one in statement.exported_columns}
        self._shape: _Shape | None = None

    def carry_out(self, connection: Connection, given: Mapping[str, Any]) -> Sequence[Any]:
        driver: Any = connection.connection.driver_connection
        cursor = connection.dialect.loaded_dbapi.RawCursor(driver)
        try:
            cursor.execute(self.text, self.values(given), binary=True)
            result = cursor.pgresult
            rows = cursor.fetchall() if result.nfields else ()
        except connection.dialect.loaded_dbapi.Error as error:
            # What it means, and which connections are gone with it, is as for any other statement.
            connection._handle_dbapi_exception(error, self.text, None, None, None)
        return self.shaped(rows, result)

    def values(self, given: Mapping[str, Any]) -> list[Any]:
        """What goes in, in its order."""
        return [one.of(given) for one in self._parameters]

    def shaped(self, rows: Sequence[Any], result: Any) -> Sequence[Any]:
        """The *rows* of a *result* of the driver's, as whoever asked sees them."""
        if rows and self._shape is None:
            # Asked of a result only once: a cursor's description is made anew each time.
            places = range(result.nfields)
            columns = [Column(result.fname(one).decode(), result.ftype(one)) for one in places]
            self._shape = _Shape(columns, self._types)
        return self._shape.of(rows) if self._shape else ()


class _Shape:
    """What rows look like to whoever asked: values by name and by place, as their types say."""

    def __init__(self, columns: Sequence[Column], types: Mapping[str, TypeEngine[Any]]) -> None:
        row: Any = namedtuple
        names = [one.name for one in columns]
        # As its own ``_make`` does, which is not written in C.
        self._make = partial(tuple.__new__, row("Row", names, rename=True))
        converted = [_out_of(types.get(one.name), one.type_code) for one in columns]
        self._converted = [(place, one) for place, one in enumerate(converted) if one]

    def of(self, rows: Sequence[Sequence[Any]]) -> list[Any]:
        if not self._converted:
            return [self._make(row) for row in rows]
        return [self._make(self._convert(list(row))) for row in rows]

    def _convert(self, row: list[Any]) -> list[Any]:
        for place, convert in self._converted:
            if row[place] is not None:
                row[place] = convert(row[place])
        return row


# As many as there are hot verbs, and ways to route.
@lru_cache(maxsize=256)
def written(statement: Any) -> Written:
    """The *statement* as it is sent, put together once."""
    return Written(statement)


def _into(type_: TypeEngine[Any]) -> Convert | None:
    return type_.dialect_impl(NUMBERED).bind_processor(NUMBERED)


def _out_of(type_: TypeEngine[Any] | None, sent_as: int) -> Convert | None:
    if type_ is None:
        return None
    return type_.dialect_impl(NUMBERED).result_processor(NUMBERED, sent_as)
