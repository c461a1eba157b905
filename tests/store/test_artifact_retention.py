"""Artifacts that are over go in bounded batches and in order; what still waits never does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Table, insert

from headway.config import Settings
from headway.history import Retention
from headway.observe import Event, Observer
from headway.store import artifact_retention as retention
from headway.store import nonces, tables
from headway.store.engine import Store
from headway.store.transaction import Transaction
from tests.store.factories import NOON, Clock, rows_of
from tests.store.test_federation_tables import ROWS, row_of

Verb = Callable[[Transaction, datetime, int], int]
LATER = NOON + timedelta(days=1)
FOR_GOOD = NOON + timedelta(days=3650)
EVERY_VERB = [
    getattr(retention, name) for name in sorted(vars(retention)) if name.startswith("delete_")
]


def write(store: Store, table: Table, **values: Any) -> None:
    row = row_of(table, **values) if table in ROWS else values
    with store.writing() as tx:
        tx.connection.execute(insert(table).values(**row))


def purge(store: Store, verb: Verb, before: datetime = LATER, limit: int = 100) -> int:
    with store.writing() as tx:
        return verb(tx, before, limit)


def purge_all(store: Store, before: datetime = FOR_GOOD) -> None:
    """As often as it takes, in whatever order."""
    while sum(purge(store, verb, before) for verb in EVERY_VERB):
        pass


def a_chain(
    store: Store,
    name: str,
    *,
    status: str = "EXECUTED",
    judged: bool = True,
    bundle: bool = True,
    ordered_at: datetime = NOON,
) -> None:
    """An event, its snapshot and its workorder, as far as they have come."""
    kind = "PATCH_DIAZOTROPH"  # of these there may be several
    write(store, tables.event, event_id=f"e-{name}", processed=True, terminal_reason="SCHEDULED")
    write(store, tables.context_snapshot, snapshot_id=f"s-{name}")
    write(
        store,
        tables.workorder,
        work_order_id=f"w-{name}",
        event_id=f"e-{name}",
        context_snapshot_id=f"s-{name}",
        diazotroph_type=kind,
        status=status,
        created_at=ordered_at,
    )
    if bundle:
        write(store, tables.output_bundle, output_id=f"o-{name}", work_order_id=f"w-{name}")
    if judged:
        write(
            store,
            tables.run_record,
            run_id=f"r-{name}",
            work_order_id=f"w-{name}",
            output_id=f"o-{name}",
        )


def count(store: Store, *of: Table) -> list[int]:
    return [len(rows_of(store, table)) for table in of]


CHAIN = (
    tables.event,
    tables.context_snapshot,
    tables.workorder,
    tables.output_bundle,
    tables.run_record,
)


def test_a_judged_workorder_goes_with_all_it_led_to(store: Store) -> None:
    a_chain(store, "a")
    assert purge(store, retention.delete_judged_workorders, NOON) == 0
    assert purge(store, retention.delete_processed_events) == 0, "its workorder refers to it"
    assert purge(store, retention.delete_unused_snapshots) == 0
    assert purge(store, retention.delete_judged_workorders) == 1
    assert count(store, *CHAIN) == [1, 1, 0, 0, 0]
    assert purge(store, retention.delete_processed_events) == 1
    assert purge(store, retention.delete_unused_snapshots) == 1
    assert count(store, *CHAIN) == [0] * 5


@pytest.mark.parametrize(
    "unfinished",
    [
        {"status": "CREATED", "judged": False, "bundle": False},
        {"judged": False, "bundle": False},
        {"judged": False},
    ],
)
def test_a_workorder_that_is_not_over_is_kept_with_all_it_needs(
    store: Store, unfinished: dict[str, Any]
) -> None:
    a_chain(store, "a", **unfinished)
    before = count(store, *CHAIN)
    purge_all(store)
    assert count(store, *CHAIN) == before


def test_events_that_wait_or_are_parked_are_kept(store: Store) -> None:
    write(store, tables.event, event_id="waiting")
    write(store, tables.event, event_id="parked", attempts=5, parked_at=NOON, last_error="no")
    write(
        store,
        tables.event,
        event_id="over",
        type="CAPTURE_READY",
        processed=True,
        terminal_reason="NO_PENDING_CAPTURES",
    )
    purge_all(store)
    assert [row["event_id"] for row in rows_of(store, tables.event)] == ["parked", "waiting"]


def test_a_claim_goes_after_what_it_was_about(store: Store) -> None:
    a_chain(store, "a")
    write(store, tables.event, event_id="waiting")
    for kind, key in [("EVENT", "e-a"), ("WORKORDER", "w-a"), ("EVENT", "waiting")]:
        write(store, tables.claim_record, resource_type=kind, resource_id=key)
    held = FOR_GOOD + timedelta(days=1)
    write(store, tables.claim_record, resource_id="just made", lease_expires_at=held)
    assert purge(store, retention.delete_ended_claims) == 0
    purge_all(store)
    kept = [row["resource_id"] for row in rows_of(store, tables.claim_record)]
    assert kept == ["just made", "waiting"]


def test_an_id_of_the_other_kind_keeps_no_claim(store: Store) -> None:
    write(store, tables.event, event_id="x")
    write(store, tables.claim_record, resource_type="WORKORDER", resource_id="x")
    assert purge(store, retention.delete_ended_claims) == 1


def test_answers_go_with_their_questions(store: Store) -> None:
    write(store, tables.substrate_query, query_id="q1")
    write(store, tables.substrate_query_response, response_id="r1", query_id="q1")
    assert purge(store, retention.delete_old_queries, NOON) == 0
    assert purge(store, retention.delete_old_queries) == 1
    assert count(store, tables.substrate_query, tables.substrate_query_response) == [0, 0]


def test_the_newest_page_of_each_deployment_is_kept(store: Store) -> None:
    for number, owner in enumerate(["here", "here", "there"]):
        moment = NOON + timedelta(hours=number)
        fields = {"manifest_id": f"m{number}", "azolla_id": owner, "created_at": moment}
        write(store, tables.session_manifest, **fields)
    write(
        store,
        tables.session_manifest,
        manifest_id="m1-too",
        azolla_id="here",
        created_at=NOON + timedelta(hours=1),
    )
    assert purge(store, retention.delete_old_pages, FOR_GOOD) == 2
    kept = [row["manifest_id"] for row in rows_of(store, tables.session_manifest)]
    assert kept == ["m1-too", "m2"]


def test_captures_go_once_they_are_processed(store: Store) -> None:
    write(store, tables.capture_buffer, capture_id="waiting")
    hour = timedelta(hours=1)
    done = {"status": "PROCESSED", "created_at": NOON - hour}
    write(store, tables.capture_buffer, capture_id="done", **done)
    assert purge(store, retention.delete_processed_captures, NOON) == 0
    assert purge(store, retention.delete_processed_captures) == 1
    assert [row["capture_id"] for row in rows_of(store, tables.capture_buffer)] == ["waiting"]


def test_tickets_go_once_they_are_done_and_take_their_blockers_along(store: Store) -> None:
    for name in ("b1", "b2"):
        write(store, tables.blocker_ref, blocker_id=name)
    write(store, tables.objective, objective_id="standing")
    ticket = {"objective_type": "TICKET"}
    done = ticket | {"status": "DONE", "created_at": NOON - timedelta(hours=1)}
    write(store, tables.objective, objective_id="done", blocked_on='["b1"]', **done)
    for status in ("NEW", "TODO", "IN_PROGRESS", "BLOCKED"):
        fields = {"objective_id": status, "status": status, "blocked_on": '["b2"]'}
        write(store, tables.objective, **fields, **ticket)
    assert purge(store, retention.delete_done_objectives, NOON) == 0
    assert purge(store, retention.delete_done_objectives) == 1
    purge_all(store)
    kept = [row["objective_id"] for row in rows_of(store, tables.objective)]
    assert kept == ["BLOCKED", "IN_PROGRESS", "NEW", "TODO", "standing"]
    assert [row["blocker_id"] for row in rows_of(store, tables.blocker_ref)] == ["b2"]


def test_a_standing_objective_is_kept_whatever_somebody_wrote_into_it(store: Store) -> None:
    write(store, tables.objective, objective_id="standing", status="DONE")
    purge_all(store)
    assert count(store, tables.objective) == [1]


def test_pauses_nonces_logouts_wrong_tries_and_audit_go_by_their_age(store: Store) -> None:
    write(store, tables.pause_state, pause_id="p1")
    write(store, tables.nonce, source_azolla_id="sales", nonce="n1", seen_at=NOON)
    write(store, tables.nonce, source_azolla_id="sales", nonce="n2", seen_at=LATER)
    write(store, tables.logout, session_id="s1", until=NOON)
    write(store, tables.logout, session_id="s2", until=LATER)
    write(store, tables.wrong_try, minute=NOON, address="192.0.2.1", tries=3)
    write(store, tables.wrong_try, minute=LATER, address="192.0.2.1", tries=3)
    audit = {"actor": "sales", "action": "query", "subject": "pause_state"}
    write(store, tables.audit, at=NOON, **audit)
    write(store, tables.audit, at=LATER, **audit)
    for verb in (
        retention.delete_old_pauses,
        retention.delete_old_nonces,
        retention.delete_old_logouts,
        retention.delete_old_tries,
        retention.delete_old_audit,
    ):
        assert (purge(store, verb, NOON), purge(store, verb)) == (0, 1), verb.__name__
    assert count(store, tables.pause_state, tables.nonce, tables.audit) == [0, 1, 1]
    assert count(store, tables.logout, tables.wrong_try) == [1, 1]


BATCHES: dict[str, tuple[Verb, Callable[[Store, int], None]]] = {
    "workorders": (
        retention.delete_judged_workorders,
        lambda store, number: a_chain(store, str(number)),
    ),
    "pauses": (
        retention.delete_old_pauses,
        lambda store, number: write(store, tables.pause_state, pause_id=str(number)),
    ),
    "nonces": (
        retention.delete_old_nonces,
        lambda store, number: write(
            store, tables.nonce, source_azolla_id="s", nonce=str(number), seen_at=NOON
        ),
    ),
    "objectives": (
        retention.delete_done_objectives,
        lambda store, number: write(
            store,
            tables.objective,
            objective_id=str(number),
            objective_type="TICKET",
            status="DONE",
        ),
    ),
}


@pytest.mark.parametrize("kind", BATCHES)
def test_a_batch_is_bounded(store: Store, kind: str) -> None:
    verb, make = BATCHES[kind]
    for number in range(5):
        make(store, number)
    assert [purge(store, verb, limit=2) for _ in range(4)] == [2, 2, 1, 0]


OLDEST_FIRST: dict[str, tuple[Verb, Table, Callable[[str, datetime], dict[str, Any]]]] = {
    "pauses": (
        retention.delete_old_pauses,
        tables.pause_state,
        lambda name, moment: {"pause_id": name, "created_at": moment},
    ),
    "queries": (
        retention.delete_old_queries,
        tables.substrate_query,
        lambda name, moment: {"query_id": name, "created_at": moment},
    ),
    "captures": (
        retention.delete_processed_captures,
        tables.capture_buffer,
        lambda name, moment: {"capture_id": name, "status": "PROCESSED", "updated_at": moment},
    ),
    "objectives": (
        retention.delete_done_objectives,
        tables.objective,
        lambda name, moment: {
            "objective_id": name,
            "objective_type": "TICKET",
            "status": "DONE",
            "updated_at": moment,
        },
    ),
    "claims": (
        retention.delete_ended_claims,
        tables.claim_record,
        lambda name, moment: {"resource_id": name, "lease_expires_at": moment},
    ),
    "nonces": (
        retention.delete_old_nonces,
        tables.nonce,
        lambda name, moment: {"source_azolla_id": "s", "nonce": name, "seen_at": moment},
    ),
    "answers": (
        retention.delete_old_answers,
        tables.idempotency,
        lambda name, moment: {"actor": "a", "key": name, "digest": "d", "created_at": moment},
    ),
    "logouts": (
        retention.delete_old_logouts,
        tables.logout,
        lambda name, moment: {"session_id": name, "until": moment},
    ),
    "tries": (
        retention.delete_old_tries,
        tables.wrong_try,
        lambda name, moment: {"address": name, "minute": moment, "tries": 1},
    ),
}


@pytest.mark.parametrize("kind", OLDEST_FIRST)
def test_the_oldest_go_first_and_none_that_is_just_old_enough_to_stay(
    store: Store, kind: str
) -> None:
    verb, table, fields = OLDEST_FIRST[kind]
    ages = {"a": 1, "b": 2, "c": 3, "d": 0}
    for name, hours in ages.items():
        write(store, table, **fields(name, LATER - timedelta(hours=hours)))
    [named] = {key for key, value in fields("x", NOON).items() if value == "x"}

    def left() -> set[str]:
        return {row[named] for row in rows_of(store, table)}

    assert (purge(store, verb, LATER, 2), left()) == (2, {"a", "d"})
    assert (purge(store, verb, LATER, 2), left()) == (1, {"d"})


def test_the_oldest_workorders_go_first_and_those_alone_that_are_executed(store: Store) -> None:
    for number, name in enumerate("cba"):
        a_chain(store, name, ordered_at=NOON + timedelta(hours=number))
    a_chain(store, "open", status="CREATED")
    left: list[list[str]] = []
    for _ in range(2):
        assert purge(store, retention.delete_judged_workorders, limit=2) == 2 - len(left)
        left.append([row["work_order_id"] for row in rows_of(store, tables.workorder)])
    assert left == [["w-a", "w-open"], ["w-open"]]


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ({}, True),
        ({"status": "DONE"}, False),
        ({"objective_type": "STANDING"}, False),
        ({"updated_at": NOON + timedelta(microseconds=1)}, False),
        ({"objective_id": "other"}, False),
    ],
    ids=str,
)
def test_the_pause_of_an_open_ticket_is_kept_as_long_as_that_is_not_touched(
    store: Store, changes: dict[str, Any], kept: bool
) -> None:
    fields = {"objective_id": "o", "objective_type": "TICKET", "updated_at": NOON} | changes
    write(store, tables.objective, **fields)
    write(store, tables.pause_state, pause_id="p", objective_id="o")
    assert purge(store, retention.delete_old_pauses) == (0 if kept else 1)


def test_retention_deletes_all_that_is_over_and_says_how_much(store: Store, clock: Clock) -> None:
    a_chain(store, "a")
    for name in ("old", "older"):
        write(store, tables.pause_state, pause_id=name)
    write(store, tables.nonce, source_azolla_id="sales", nonce="n1", seen_at=NOON)
    told: list[Event] = []
    observer = Observer()
    observer.subscribe(told.append)
    cleaning = Retention(store, Settings(delete_batch_size=1), observer)
    clock.advance(seconds=nonces.KEPT.total_seconds() - 1)
    while cleaning.run_once().more:
        pass
    assert count(store, tables.nonce, tables.pause_state, *CHAIN) == [1, 2, 1, 1, 1, 1, 1]
    clock.advance(days=31)
    while cleaning.run_once().more:
        pass
    assert count(store, tables.nonce, tables.pause_state, *CHAIN) == [0] * 7
    names = ("workorders", "events", "snapshots", "pauses", "nonces")
    totals = {name: sum(event.fields[name] for event in told) for name in names}
    assert totals == {"workorders": 1, "events": 1, "snapshots": 1, "pauses": 2, "nonces": 1}
