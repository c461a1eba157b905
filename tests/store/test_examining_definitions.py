"""What cannot be among manifests, dead letters and servers is told, and nothing else is."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, insert, text

from headway.domain.manifest import Group
from headway.domain.schedule import Never
from headway.store import examining_definitions as examining
from headway.store import leases
from headway.store.engine import Store
from headway.store.servers import ServerProcess
from headway.store.tables import dead_letter, manifest_group, manifest_state, server, wake
from headway.store.wakes import Scope, leave_wakes
from tests.store.factories import (
    FAILED,
    NOON,
    Clock,
    a_manifest,
    change_manifest,
    change_state,
    dead_letter_for,
    declare,
    manifest_ids,
    ran,
    rows_of,
    state_of,
    wakes_of,
)

GRACE = timedelta(seconds=30)


def without_state(store: Store, *external_ids: str) -> None:
    ids = manifest_ids(store)
    with store.writing() as tx:
        for name in external_ids:
            this = manifest_state.c.manifest_id == ids[name]
            tx.connection.execute(delete(manifest_state).where(this))


def test_a_manifest_without_state_gets_one_that_is_due_at_once(store: Store, clock: Clock) -> None:
    ids = declare(store, "extract", "load", "removed")
    without_state(store, "load", "removed")
    change_manifest(store, "removed", removed_at=NOON)
    clock.advance(hours=1)
    with store.writing() as tx:
        assert examining.without_state(tx) == ["manifest load"]
        assert examining.give_state(tx) == 1
        assert examining.without_state(tx) == []
        assert examining.give_state(tx) == 0
    given = [(row["manifest_id"], row["wake_at"]) for row in rows_of(store, manifest_state)]
    assert given == [(ids["extract"], NOON), (ids["load"], clock.now)]


def test_what_is_settled_later_than_a_moment_is_settled_until_now(
    store: Store, clock: Clock
) -> None:
    ids = declare(store, "just", "ahead", "removed")
    moment = NOON + timedelta(minutes=5)
    change_state(store, "just", settled_until=moment)
    change_state(store, "ahead", settled_until=moment + timedelta(seconds=1))
    change_state(store, "removed", settled_until=moment + timedelta(seconds=1))
    change_manifest(store, "removed", removed_at=NOON)
    clock.advance(minutes=1)
    with store.reading() as tx:
        told = "manifest ahead: settled until 2025-01-01 12:05:01"
        assert examining.settled_ahead(tx, moment) == [told]
    change_manifest(store, "removed", removed_at=None)
    with store.writing() as tx:
        assert examining.settle_until_now(tx, moment) == 2
        assert examining.settled_ahead(tx, moment) == []
    assert state_of(store, "ahead").settled_until == clock.now
    assert state_of(store, "just").settled_until == moment
    assert wakes_of(store) == [(ids["ahead"], "self"), (ids["removed"], "self")]


def test_a_wake_is_about_a_manifest_its_children_or_a_group(store: Store) -> None:
    etl, other = Group("etl"), Group("other")
    children = [
        a_manifest(name, schedule=Never(), parents=("parent",), group=other)
        for name in ("one", "two")
    ]
    ids = declare(store, a_manifest("parent", group=etl), a_manifest("third", group=etl), *children)

    def about(key: int, scope: Scope) -> set[str]:
        with store.writing() as tx:
            leave_wakes(tx, [(key, scope)])
            woken = examining.about_to_be_woken(tx, ids.values())
            some = examining.about_to_be_woken(tx, [ids["one"], ids["third"]])
            tx.connection.execute(delete(wake))
        assert some == woken & {ids["one"], ids["third"]}
        return {name for name, key in ids.items() if key in woken}

    wakes_of(store)
    [group, _] = [row["id"] for row in rows_of(store, manifest_group)]
    assert about(ids["parent"], Scope.SELF) == {"parent"}
    assert about(ids["parent"], Scope.CHILDREN) == {"one", "two"}
    assert about(group, Scope.GROUP) == {"parent", "third"}


def a_letter(store: Store, name: str, **changes: Any) -> int:
    about = {"dead_lettered_at": NOON, "reason": "max retries exceeded", "failures": 3}
    row = about | {"manifest_id": manifest_ids(store)[name]} | changes
    with store.writing() as tx:
        written = insert(dead_letter).values(row).returning(dead_letter.c.id)
        return int(tx.connection.execute(written).scalar_one())


def test_of_dead_letters_that_wait_twice_the_newest_stays(store: Store, clock: Clock) -> None:
    declare(store, "extract", "load")
    with store.writing() as tx:
        tx.connection.execute(text("DROP INDEX headway_dead_letter_awaiting"))
    over = {"status": "acknowledged", "resolved_at": NOON}
    resolved = a_letter(store, "extract", **over)
    first, second = a_letter(store, "extract"), a_letter(store, "extract")
    newest, other = a_letter(store, "extract"), a_letter(store, "load")
    a_letter(store, "load", **over)
    moment = clock.advance(hours=1)
    with store.writing() as tx:
        told = [f"dead letter {first}", f"dead letter {second}"]
        assert examining.waiting_twice(tx) == told
        assert examining.resolve_waiting_twice(tx) == 2
        assert examining.waiting_twice(tx) == []
    found = {row["id"]: row for row in rows_of(store, dead_letter)}
    for key in (first, second):
        assert found[key]["status"] == "acknowledged"
        assert found[key]["resolved_at"] == moment
        assert found[key]["resolution_note"] == "a newer dead letter of this manifest waits as well"
    waiting = {key for key, row in found.items() if row["status"] == "awaiting_intervention"}
    assert waiting == {newest, other}
    assert found[resolved]["resolved_at"] == NOON


def test_the_dead_letter_of_a_removed_manifest_is_acknowledged(store: Store) -> None:
    declare(store, "extract", "removed")
    for name in ("extract", "removed"):
        dead_letter_for(store, name)
    change_manifest(store, "removed", removed_at=NOON)
    [kept, lost] = rows_of(store, dead_letter)
    with store.writing() as tx:
        assert examining.waiting_for_the_removed(tx) == [f"dead letter {lost['id']} of removed"]
        assert examining.acknowledge_the_removed(tx) == 1
        assert examining.waiting_for_the_removed(tx) == []
        assert examining.acknowledge_the_removed(tx) == 0
    [unchanged, ended] = rows_of(store, dead_letter)
    assert unchanged == kept
    assert (ended["status"], ended["resolution_note"]) == (
        "acknowledged",
        "the manifest was removed",
    )


def a_server(store: Store, name: str, lease: timedelta) -> None:
    process = ServerProcess(name, "host", 1, ["executor"], ["work"], 1)
    with store.writing() as tx:
        leases.register(tx, process, lease)


def test_a_server_is_buried_once_its_lease_has_been_over_for_long_enough(
    store: Store, clock: Clock
) -> None:
    a_server(store, "dead", timedelta(seconds=10))
    a_server(store, "just over", timedelta(seconds=11))
    a_server(store, "alive", timedelta(hours=1))
    clock.now = NOON + timedelta(seconds=11) + GRACE
    with store.writing() as tx:
        told = "server dead, silent since 2025-01-01 12:00:00"
        assert examining.unburied(tx, GRACE) == [told]
        assert examining.bury_all(tx, GRACE) == 1
        assert examining.unburied(tx, GRACE) == []
    assert [row["id"] for row in rows_of(store, server)] == ["alive", "just over"]


def test_the_lease_of_each_living_server_is_told_to_a_tenth_of_a_second(
    store: Store, clock: Clock
) -> None:
    a_server(store, "short", timedelta(seconds=10))
    a_server(store, "long", timedelta(seconds=14.96))
    clock.advance(seconds=10)
    with store.reading() as tx:
        assert examining.published_leases(tx) == {"long": timedelta(seconds=15)}


def overdue(store: Store, before: datetime) -> list[str]:
    with store.reading() as tx:
        return examining.overdue_for_retention(tx, before)


def test_what_retention_should_have_deleted_is_counted(store: Store, clock: Clock) -> None:
    declare(store, "extract", "fails")
    ran(store, "fails", FAILED)
    assert overdue(store, NOON + timedelta(days=1)) == [], "a failure that counts is kept"
    for _ in range(3):
        clock.advance(hours=1)
        ran(store, "extract")
    told = "finished executions, from 2025-01-01 13:00 on"
    assert overdue(store, clock.now + timedelta(days=1)) == [f"2 {told}"], "the newest is kept"
    assert overdue(store, NOON + timedelta(hours=2)) == [f"1 {told}"]
    assert overdue(store, NOON + timedelta(hours=1)) == []


def test_a_manifest_moved_by_hand_to_a_group_that_waits_for_it_is_in_a_circle(
    store: Store,
) -> None:
    def grouped(name: str, group: str, *parents: str) -> Any:
        return a_manifest(name, schedule=Never(), parents=parents, group=Group(group))

    declare(
        store,
        a_manifest("a", group=Group("one")),
        grouped("b", "two", "a"),
        grouped("c", "two", "b"),
        grouped("d", "three", "c"),
    )
    with store.reading() as tx:
        assert examining.circles(tx) == []
    groups = {row["name"]: row["id"] for row in rows_of(store, manifest_group)}
    change_manifest(store, "c", group_id=groups["one"])
    with store.reading() as tx:
        assert examining.circles(tx) == ["group one", "group two"]
