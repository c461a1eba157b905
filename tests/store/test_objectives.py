"""Objectives and blockers: one standing objective, whoever races, and what blocking means."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from headway.domain.azolla.artifacts import (
    BlockerKind,
    BlockerRef,
    Objective,
    ObjectiveStatus,
    ObjectiveType,
)
from headway.domain.azolla.entries import ID_LIMIT, standing
from headway.domain.versions import version_of
from headway.errors import ChangedMeanwhile
from headway.store import objectives
from headway.store.engine import Store
from headway.store.tables import blocker_ref, objective
from tests.store.factories import NOON, Clock, at_once, rows_of


def a_ticket(objective_id: str = "clean", **changes: Any) -> Objective:
    fields: dict[str, Any] = {
        "objective_id": objective_id,
        "objective_type": ObjectiveType.TICKET,
        "status": ObjectiveStatus.TODO,
    }
    return standing("warehouse", "clean the tables", NOON).model_copy(update=fields | changes)


def add(store: Store, *tickets: Objective) -> None:
    with store.writing() as tx:
        for one in tickets:
            assert objectives.add(tx, one)


def ensure(store: Store, azolla_id: str, **options: bool) -> None:
    with store.writing() as tx:
        objectives.ensure_standing(tx, azolla_id, azolla_id, **options)


def found(store: Store, objective_id: str = "clean") -> Objective:
    with store.reading() as tx:
        one = objectives.find(tx, objective_id)
    assert one is not None
    return one


def block(store: Store, blocker_id: str, objective_id: str = "clean") -> bool:
    blocker = BlockerRef(blocker_id=blocker_id, kind=BlockerKind.USER_INPUT, description="which?")
    with store.writing() as tx:
        return objectives.block(tx, objective_id, blocker)


def resolve(store: Store, blocker_id: str) -> bool:
    with store.writing() as tx:
        return objectives.resolve(tx, blocker_id)


def test_a_deployment_gets_one_standing_objective(store: Store) -> None:
    for _ in range(2):
        ensure(store, "warehouse")
    [row] = rows_of(store, objective)
    told = (row["objective_id"], row["azolla_id"], row["title"], row["status"])
    assert told == ("standing", "warehouse", "warehouse", "IN_PROGRESS")
    assert row["objective_type"] == "STANDING"
    with store.reading() as tx:
        assert objectives.own_azolla_id(tx) == "warehouse"
        one = objectives.find_standing(tx)
    assert one is not None and one.objective_id == "standing"


def test_without_a_start_there_is_none(store: Store) -> None:
    with store.reading() as tx:
        assert objectives.own_azolla_id(tx) is None
        assert objectives.find_standing(tx) is None


def test_of_two_servers_that_start_together_one_creates_it(store: Store, second: Store) -> None:
    names = ("warehouse", "shop")
    at_once(*(partial(ensure, one, name) for one, name in zip((store, second), names, strict=True)))
    [row] = rows_of(store, objective)
    assert row["azolla_id"] in names


def test_another_application_on_the_same_database_renames_nothing(
    store: Store, clock: Clock
) -> None:
    ensure(store, "warehouse")
    clock.advance(hours=1)
    ensure(store, "reports")
    [row] = rows_of(store, objective)
    assert (row["azolla_id"], row["updated_at"]) == ("warehouse", NOON)


def test_the_registry_renames_it_and_the_same_name_changes_nothing(
    store: Store, clock: Clock
) -> None:
    ensure(store, "warehouse")
    later = clock.advance(hours=1)
    ensure(store, "berlin", rename=True)
    clock.advance(hours=1)
    ensure(store, "berlin", rename=True)
    [row] = rows_of(store, objective)
    assert (row["azolla_id"], row["title"], row["updated_at"]) == ("berlin", "warehouse", later)


def test_a_name_longer_than_an_id_may_be_is_cut(store: Store) -> None:
    ensure(store, "w" * 255)
    assert len(found(store, "standing").azolla_id) == ID_LIMIT


def test_an_id_is_given_once(store: Store) -> None:
    add(store, a_ticket())
    with store.writing() as tx:
        assert not objectives.add(tx, a_ticket(title="another"))
    assert found(store).title == "clean the tables"


def test_changing_says_when(store: Store, clock: Clock) -> None:
    add(store, a_ticket())
    later = clock.advance(hours=1)
    with store.writing() as tx:
        objectives.change(tx, "clean", {"status": ObjectiveStatus.DONE, "urgency": 3})
    one = found(store)
    assert (one.status, one.urgency, one.updated_at) == (ObjectiveStatus.DONE, 3, later)
    assert one.created_at == NOON


def test_it_is_blocked_until_the_last_blocker_is_resolved(store: Store, clock: Clock) -> None:
    add(store, a_ticket(), a_ticket("other"))
    clock.advance(hours=1)
    assert block(store, "b1") and block(store, "b2")
    one = found(store)
    assert one.status is ObjectiveStatus.BLOCKED
    assert [it.blocker_id for it in one.blocked_on] == ["b1", "b2"]
    assert one.updated_at == NOON + timedelta(hours=1)
    assert resolve(store, "b1")
    assert found(store).status is ObjectiveStatus.BLOCKED
    assert resolve(store, "b2")
    one = found(store)
    assert one.status is ObjectiveStatus.TODO
    assert [it.resolved for it in one.blocked_on] == [True, True]
    assert found(store, "other") == a_ticket("other")


def test_whoever_unblocks_the_last_takes_the_reason_away(store: Store) -> None:
    add(store, a_ticket())
    block(store, "b1")
    with store.writing() as tx:
        objectives.change(tx, "clean", {"blocked_reason": "which?"})
    assert found(store).blocked_reason == "which?"
    resolve(store, "b1")
    one = found(store)
    assert (one.status, one.blocked_reason) == (ObjectiveStatus.TODO, None)


@pytest.mark.parametrize("status", [ObjectiveStatus.DONE, ObjectiveStatus.IN_PROGRESS])
def test_resolving_leaves_what_a_person_has_said_of_it(
    store: Store, status: ObjectiveStatus
) -> None:
    add(store, a_ticket())
    block(store, "b1")
    with store.writing() as tx:
        objectives.change(tx, "clean", {"status": status, "blocked_reason": "still"})
    resolve(store, "b1")
    assert (found(store).status, found(store).blocked_reason) == (status, "still")


def test_what_is_done_stays_done_though_it_is_blocked(store: Store) -> None:
    add(store, a_ticket(status=ObjectiveStatus.DONE))
    assert block(store, "b1")
    one = found(store)
    assert (one.status, len(one.blocked_on)) == (ObjectiveStatus.DONE, 1)


def test_a_change_of_another_version_is_refused(store: Store, clock: Clock) -> None:
    add(store, a_ticket())
    seen = version_of(found(store).updated_at)
    with store.writing() as tx:
        objectives.change(tx, "clean", {"urgency": 1}, seen)
    changed = found(store)
    assert (changed.urgency, version_of(changed.updated_at) != seen) == (1, True)
    with pytest.raises(ChangedMeanwhile, match="clean"), store.writing() as tx:
        objectives.change(tx, "clean", {"urgency": 2}, seen)
    assert found(store) == changed


def test_what_is_not_there_is_said(store: Store) -> None:
    assert not block(store, "b1", "nobody")
    assert not resolve(store, "b1")
    assert rows_of(store, blocker_ref) == []
    with store.reading() as tx:
        assert objectives.find(tx, "x" * 1000) is None
        assert objectives.find(tx, "") is None


@pytest.mark.parametrize("pattern", ["%", "_1", "b%"])
def test_a_blockers_id_is_no_pattern(store: Store, pattern: str) -> None:
    add(store, a_ticket())
    block(store, "b1")
    assert not resolve(store, pattern)
    assert found(store).status is ObjectiveStatus.BLOCKED


def test_no_other_objective_is_taken_for_the_blockers_own(store: Store) -> None:
    add(store, a_ticket("alike"), a_ticket())
    block(store, "bx1", "alike")
    block(store, "b_1")
    assert resolve(store, "b_1")
    assert found(store).status is ObjectiveStatus.TODO
    assert found(store, "alike").status is ObjectiveStatus.BLOCKED


def test_the_standing_objective_stays_in_progress(store: Store) -> None:
    ensure(store, "warehouse")
    block(store, "b1", "standing")
    assert found(store, "standing").status is ObjectiveStatus.IN_PROGRESS
    resolve(store, "b1")
    assert found(store, "standing").status is ObjectiveStatus.IN_PROGRESS


def test_two_blockers_at_once_are_both_named(store: Store, second: Store) -> None:
    add(store, a_ticket())
    at_once(partial(block, store, "b1"), partial(block, second, "b2"))
    assert {one.blocker_id for one in found(store).blocked_on} == {"b1", "b2"}


def test_open_tickets_come_oldest_first_page_by_page(store: Store) -> None:
    hour = timedelta(hours=1)
    ensure(store, "warehouse")
    add(
        store,
        a_ticket("c", updated_at=NOON - hour),
        a_ticket("a", updated_at=NOON),
        a_ticket("b", updated_at=NOON),
        a_ticket("done", status=ObjectiveStatus.DONE),
        a_ticket("young", updated_at=NOON + hour),
    )
    with store.reading() as tx:
        first = objectives.open_tickets(tx, NOON, 2)
        place = (first[-1].updated_at, first[-1].objective_id)
        rest = objectives.open_tickets(tx, NOON, 2, place)
    assert [one.objective_id for one in (*first, *rest)] == ["c", "a", "b"]
