"""Names in the order of their code points: the same on both databases, and indexed so."""

from typing import Any

from sqlalchemy import Column, ColumnElement, collate

from headway.store.transaction import Transaction

HIGHEST = "\U0010ffff"


def in_text_order(tx: Transaction, column: Column[Any]) -> ColumnElement[Any]:
    """*column* as it is sorted; PostgreSQL's own order depends on the database's language."""
    return collate(column, "C") if tx.on_postgresql else column


def from_text(
    tx: Transaction, column: Column[Any], prefix: str, after: str
) -> list[ColumnElement[bool]]:
    """*column* begins with *prefix* and comes after the text *after*, as ranges of an index."""
    ordered = in_text_order(tx, column)
    ranges: list[ColumnElement[bool]] = [ordered > after] if after else []
    if prefix:
        ranges += [ordered >= prefix, ordered < prefix + HIGHEST]
    return ranges


def within(text: str, searched: str, anywhere: bool) -> bool:
    """Whether *text* begins with what is *searched*, or has it *anywhere*, in whatever case.

    >>> within("load-users", "load", False), within("load-users", "Users", True)
    (True, True)
    """
    if anywhere:
        return searched.casefold() in text.casefold()
    return text.startswith(searched)
