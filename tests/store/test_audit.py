"""The audit is only added to; what others can cause at will is bounded in number."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import func, insert, select, text, update
from sqlalchemy.exc import DBAPIError

from headway.domain.actions import Action
from headway.store import audit
from headway.store.engine import Store
from headway.store.tables import audit as table
from tests.store.factories import NOON, Clock


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


def test_what_is_noted_says_who_did_what_to_which_and_when(store: Store, clock: Clock) -> None:
    with store.writing() as tx:
        audit.note(tx, "alice", Action.TRIGGER, "load", {"entry": 7})
        audit.note(tx, "bob", Action.CANCEL_GROUP, 12)
    clock.advance(minutes=1)
    with store.writing() as tx:
        audit.note_query(tx, "sales", "pause_state", "3 answers")
    assert [tuple(row)[1:] for row in rows(store)] == [
        (NOON, "alice", "manifest.trigger", "load", '{"entry": 7}'),
        (NOON, "bob", str(Action.CANCEL_GROUP), "12", None),
        (clock.now, "sales", "membrane.query", "pause_state", "3 answers"),
    ]


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


@pytest.mark.parametrize("noted", ["refusal", "query"])
def test_refusals_and_queries_that_are_old_enough_go_a_hundred_at_a_time(
    store: Store, noted: str
) -> None:
    query, refusal, action = audit.QUERY, str(Action.DENIED), str(Action.TRIGGER)
    old = {200: query, 201: query, 202: refusal, 203: action, 301: refusal, 302: query}
    newest = 300 + audit.QUERIES_KEPT
    with store.writing() as tx:
        kinds = [{"id": key, "action": kind} for key, kind in (old | {newest: action}).items()]
        others = {"at": tx.now, "actor": "eve", "subject": "x"}
        tx.connection.execute(insert(table), [row | others for row in kinds])
        if tx.on_postgresql:
            sequence = "pg_get_serial_sequence('headway_audit', 'id')"
            tx.connection.execute(text(f"SELECT setval({sequence}, {newest})"))
        if noted == "refusal":
            audit.denied(tx, "eve", "x")
        else:
            audit.note_query(tx, "eve", "x", "none")
    assert [row.id for row in rows(store)] == [200, 203, 302, newest, newest + 1]


def test_nothing_said_is_too_long_or_unprintable(store: Store) -> None:
    with store.writing() as tx:
        audit.note(tx, "alice", Action.CANCEL_GROUP, "g\x00" * 5000, {"reason": "\ud800" * 9000})
    [row] = rows(store)
    assert len(row.subject) <= 200 and len(row.detail) < 400
    assert row.subject.isprintable() and row.detail.isascii()
    with store.writing() as tx:
        audit.denied(tx, "alice", "POST /\x00" + "g" * 5000)
    assert len(rows(store)[1].subject) <= 200 and rows(store)[1].subject.isprintable()
