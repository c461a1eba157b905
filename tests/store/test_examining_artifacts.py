"""What cannot be among the artifacts of a deployment is told, and nothing else is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Table, insert

from headway.store import examining_artifacts as examining
from headway.store import leases, objectives, tables
from headway.store.engine import Store
from headway.store.servers import ServerProcess
from tests.store.factories import NOON, Clock
from tests.store.test_federation_tables import row_of

OVER = {"processed": True, "terminal_reason": "SCHEDULED"}


def write(store: Store, table: Table, **values: Any) -> None:
    with store.writing() as tx:
        tx.connection.execute(insert(table).values(**row_of(table, **values)))


def unreadable(store: Store) -> list[str]:
    with store.reading() as tx:
        return examining.unreadable(tx)


def test_a_living_manager_needs_a_standing_objective(store: Store, clock: Clock) -> None:
    roles = {"boss": ("manager", 60), "late": ("manager", 10), "hand": ("executor", 60)}
    with store.writing() as tx:
        for name, (role, seconds) in roles.items():
            process = ServerProcess(name, "host", 1, [role], ["work"], 1)
            leases.register(tx, process, timedelta(seconds=seconds))
    clock.advance(seconds=10)
    with store.writing() as tx:
        assert examining.managers_without_objective(tx) == ["server boss"]
        objectives.ensure_standing(tx, "warehouse", "warehouse")
        assert examining.managers_without_objective(tx) == []


def test_what_can_be_read_is_no_finding(store: Store) -> None:
    write(store, tables.blocker_ref, blocker_id="b1")
    write(store, tables.objective, objective_id="o1", blocked_on='["b1"]', metadata="{}")
    write(store, tables.objective, objective_id="o2", objective_type="TICKET", metadata="{}")
    write(store, tables.pause_state)
    write(store, tables.capture_buffer)
    assert unreadable(store) == []


@pytest.mark.parametrize(
    ("blocked_on", "why"),
    [
        ('["b1", "gone"]', "there is no blocker gone"),
        ("[1]", "blocked_on is no list of ids"),
        ('"b1"', "blocked_on is no list of ids"),
        ("nonsense", "Expecting value: line 1 column 1 (char 0)"),
    ],
)
def test_an_objective_says_what_it_waits_for(store: Store, blocked_on: str, why: str) -> None:
    write(store, tables.blocker_ref, blocker_id="b1")
    write(store, tables.objective, objective_id="o1", blocked_on=blocked_on, metadata="{}")
    assert unreadable(store) == [f"objective o1: {why}"]


def test_every_kind_of_artifact_is_read(store: Store) -> None:
    write(store, tables.objective, objective_id="o1", metadata="nonsense")
    write(store, tables.pause_state, pause_id="p1", prioritized_actions="nonsense")
    write(store, tables.capture_buffer, capture_id="c1", raw_content="")
    told = [row.partition(": ") for row in unreadable(store)]
    assert [name for name, _, _ in told] == ["objective o1", "pause state p1", "capture buffer c1"]
    assert all(why and "\n" not in why and len(why) < 200 for _, _, why in told)


def test_requests_that_are_parked_are_told_oldest_first_until_they_have_ended(
    store: Store,
) -> None:
    later = NOON + timedelta(minutes=1)
    parked: dict[str, Any] = {"parked_at": later, "last_error": "no\nanswer"}
    write(store, tables.event, event_id="waits")
    write(store, tables.event, event_id="a", created_at=later, **parked)
    write(store, tables.event, event_id="b", **parked | {"last_error": None})
    write(store, tables.event, event_id="over", **parked, **OVER)
    write(store, tables.event, event_id="long", **parked | {"last_error": "x" * 900})
    with store.reading() as tx:
        first, second, third = examining.parked(tx)
    assert first == "b: whoever worked on it was killed"
    assert second.startswith("long: xxx") and len(second) <= 200
    assert third == "a: no answer"
