"""Column types that behave the same on PostgreSQL and SQLite."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, DateTime, Dialect, Integer, TypeDecorator
from sqlalchemy.dialects import postgresql
from sqlalchemy.types import TypeEngine, UserDefinedType

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What stands for a moment that Python has no value for: far enough from the ends of its calendar
# that spans can be added. A row that somebody edited must hold up no other.
LONG_AGO = datetime(1000, 1, 1, tzinfo=UTC)
FAR_AHEAD = datetime(9000, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
ON_POSTGRESQL = postgresql.dialect()  # type: ignore[no-untyped-call]

# SQLite gives AUTOINCREMENT (ids that are never reused) to INTEGER keys only.
BigId = BigInteger().with_variant(Integer(), "sqlite")


def checked_moment(value: datetime) -> datetime:
    """*value*, if it has a time zone: without one nobody knows which moment it is.

    >>> checked_moment(EPOCH).year
    1970
    """
    if value.tzinfo is None:
        raise ValueError(f"{value!r} has no time zone")
    return value


class Instant(TypeDecorator[datetime]):
    """A moment: timestamptz on PostgreSQL, microseconds since 1970 on SQLite.

    SQLAlchemy's own DateTime drops the offset on SQLite and would compare as text there.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "sqlite":
            return dialect.type_descriptor(BigInteger())
        return dialect.type_descriptor(DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        checked_moment(value)
        if dialect.name == "sqlite":
            return (value - EPOCH) // MICROSECOND
        return value

    def result_processor(
        self, dialect: Dialect, coltype: object
    ) -> Callable[[Any], datetime | None]:
        """Asked once for each statement; what it returns is called for each value."""
        return _from_microseconds if dialect.name == "sqlite" else _in_utc


class Listed(UserDefinedType[Sequence[Any]]):
    """Many values of one type as one parameter: an array of PostgreSQL, as it writes one itself.

    The driver would look at each value of a list thrice to find out how to send it.
    """

    cache_ok = True
    render_bind_cast = True

    def __init__(self, of: TypeEngine[Any]) -> None:
        self.of = of

    def get_col_spec(self, **_options: Any) -> str:
        return f"{self.of.compile(dialect=ON_POSTGRESQL)}[]"

    def bind_processor(self, dialect: Dialect) -> Callable[[Sequence[Any] | None], str]:
        return _array


def _array(values: Sequence[Any] | None) -> str:
    """*values* as PostgreSQL writes an array; most columns of many rows are alike in all of them.

    >>> _array((1, None)), _array(('say "hi"', "\\\\")), _array((True, True))
    ('{1,NULL}', '{"say \\\\"hi\\\\"","\\\\\\\\"}', '{True,True}')
    """
    if not values:
        return "{}"
    alike = values.count(values[0]) == len(values)
    elements = [_element(values[0])] * len(values) if alike else map(_element, values)
    return f"{{{','.join(elements)}}}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if type(value) is int:
        return str(value)
    if isinstance(value, str):
        escaped = value.replace("\\", r"\\").replace('"', r"\"")
        return f'"{escaped}"'
    if isinstance(value, datetime):
        return f'"{checked_moment(value).isoformat()}"'
    return str(value)


def _from_microseconds(value: Any) -> datetime | None:
    """The moment of a stored number; SQLite puts any text behind all numbers, and so does this.

    >>> [_from_microseconds(value).year for value in (1, "soon", -(2**62))]
    [1970, 9000, 1000]
    """
    if value is None:
        return None
    try:
        return EPOCH + int(value) * MICROSECOND
    except (ValueError, TypeError, OverflowError):
        return LONG_AGO if isinstance(value, int | float) and value < 0 else FAR_AHEAD


def _in_utc(value: datetime | None) -> datetime | None:
    try:
        return None if value is None else value.astimezone(UTC)
    except OverflowError:  # it is of the first or the last day that Python knows
        return LONG_AGO if value is not None and value.year == 1 else FAR_AHEAD
