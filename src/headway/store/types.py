"""Column types that behave the same on PostgreSQL and SQLite."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, DateTime, Dialect, Integer, TypeDecorator
from sqlalchemy.types import TypeEngine

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

# SQLite gives AUTOINCREMENT (ids that are never reused) to INTEGER keys only.
BigId = BigInteger().with_variant(Integer(), "sqlite")


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
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone")
        if dialect.name == "sqlite":
            return (value - EPOCH) // MICROSECOND
        return value

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if dialect.name == "sqlite":
            return EPOCH + int(value) * MICROSECOND
        moment: datetime = value.astimezone(UTC)
        return moment
