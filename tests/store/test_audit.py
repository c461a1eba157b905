"""The audit is only added to; what others can cause at will is bounded in number."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import func, insert, select, update
from sqlalchemy.exc import DBAPIError

from headway.domain.actions import Action
from headway.store import audit
from headway.store.engine import Store
from headway.store.tables import audit as table


def rows(store: Store) -> list[Any]:
    with store.reading() as tx:
        return list(tx.connection.execute(select(table).order_by(table.c.id)).all())


def test_a_row_cannot_be_changed(store: Store) -> None:
    with store.writing() as tx:
        audit.note(tx, "alice", Action.TRIGGER, "load", {"entry": 7})
    [before] = rows(store)
    for column, value in {"actor": "bob", "detail": None, "subject": "other"}.items():
        with pytest.raises(DBAPIError, match="immutable"), store.writing() as tx:
            tx.connection.execute(update(table).values({column: value}))
    assert rows(store) == [before]


def test_a_refusal_names_what_was_wanted(store: Store) -> None:
    with store.writing() as tx:
        audit.denied(tx, "alice", "POST /groups/nightly", {"needed": "operate"})
    [row] = rows(store)
    assert (row.action, row.subject) == ("denied", "POST /groups/nightly")
    assert row.detail == '{"needed": "operate"}'


def test_whoever_is_refused_cannot_fill_the_disk_and_loses_no_action(store: Store) -> None:
    with store.writing() as tx:
        audit.note(tx, "alice", Action.TRIGGER, "load")
        tx.connection.execute(
            insert(table),
            [
                {"at": tx.now, "actor": "eve", "action": str(Action.DENIED), "subject": "x"}
                for _ in range(audit.QUERIES_KEPT)
            ],
        )
        for _ in range(50):
            audit.denied(tx, "eve", "x")
    with store.reading() as tx:
        refusals = select(func.count()).where(table.c.action == str(Action.DENIED))
        assert tx.connection.execute(refusals).scalar_one() == audit.QUERIES_KEPT
    assert rows(store)[0].action == Action.TRIGGER


def test_nothing_said_is_too_long_or_unprintable(store: Store) -> None:
    with store.writing() as tx:
        audit.note(tx, "alice", Action.CANCEL_GROUP, "g\x00" * 5000, {"reason": "\ud800" * 9000})
    [row] = rows(store)
    assert len(row.subject) <= 200 and len(row.detail) < 400
    assert row.subject.isprintable() and row.detail.isascii()
