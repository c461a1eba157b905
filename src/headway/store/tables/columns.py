"""Kinds of columns that the artifacts have in common."""

from sqlalchemy import Boolean, CheckConstraint, Column, Text, false, text

from headway.store.types import Instant


def one_of(table: str, column: str, words: str) -> CheckConstraint:
    listed = ", ".join(f"'{word}'" for word in words.split())
    return CheckConstraint(f"{column} IN ({listed})", name=f"headway_{table}_{column}")


def flag(table: str, column: str) -> Column[bool]:
    """A boolean; SQLite has none and gets a check instead."""
    kind = Boolean(create_constraint=True, name=f"headway_{table}_{column}")
    return Column(column, kind, nullable=False, server_default=false())


def text_(column: str) -> Column[str]:
    return Column(column, Text, nullable=False)


def listed(column: str) -> Column[str]:
    return Column(column, Text, nullable=False, server_default=text("'[]'"))


def mapped(column: str) -> Column[str]:
    return Column(column, Text, nullable=False, server_default=text("'{}'"))


def moment(column: str) -> Column[object]:
    return Column(column, Instant, nullable=False)
