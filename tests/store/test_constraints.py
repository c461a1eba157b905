"""What the database itself refuses, whoever writes."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Table, delete, insert, select, update
from sqlalchemy.exc import DBAPIError, IntegrityError

from headway.domain.manifest import Group
from headway.domain.work_queue import Source
from headway.store import work_queue as queue_verbs
from headway.store.engine import Store
from headway.store.tables import (
    dead_letter,
    dependency,
    execution,
    execution_history,
    manifest,
    manifest_group,
    manifest_state,
    wake,
    work_queue,
)
from tests.store.factories import (
    NOBODY,
    NOON,
    a_manifest,
    dead_letter_for,
    declare,
    dispatched,
    entry_for,
    everything,
    queue,
    queue_ad_hoc,
    ran,
    rows_of,
)


def write(store: Store, statement: Any) -> None:
    with store.writing() as tx:
        tx.connection.execute(statement)


def copy_of(store: Store, table: Table, **changes: Any) -> Any:
    """An INSERT of the first row of *table* once more, under another id."""
    row = rows_of(store, table)[0] | changes
    if "id" not in changes and table is not execution_history:
        row.pop("id", None)
    return insert(table).values(**row)


def test_enqueue_leaves_out_a_second_automatic_entry(store: Store) -> None:
    declare(store, "extract", "load")
    first = queue(store, "extract")
    with store.writing() as tx:
        queued = queue_verbs.enqueue(
            tx,
            [
                entry_for(tx, "extract"),
                entry_for(tx, "load"),
                entry_for(tx, "extract", source=Source.DEPENDENT),
                entry_for(tx, "load"),
            ],
        )
    assert len(queued) == 1
    assert [row["id"] for row in rows_of(store, work_queue)] == [first, *queued]


def test_a_second_queued_automatic_entry_is_refused(store: Store) -> None:
    declare(store, "extract")
    queue(store)
    for source in ("schedule", "dependent"):
        with pytest.raises(IntegrityError):
            write(store, copy_of(store, work_queue, source=source))


def test_manual_triggers_may_repeat(store: Store) -> None:
    declare(store, "extract")
    queue(store)
    for _ in range(3):
        queue(store, source=Source.TRIGGER)
    assert len(rows_of(store, work_queue)) == 4


def test_an_entry_that_ended_makes_room_for_the_next(store: Store) -> None:
    ids = declare(store, "extract")
    queue(store)
    with store.writing() as tx:
        assert queue_verbs.cancel_queued(tx, [ids["extract"]], "not today") == 1
    queue(store)
    assert [row["status"] for row in rows_of(store, work_queue)] == ["cancelled", "queued"]


@pytest.mark.story(49)
def test_a_second_live_execution_of_a_manifest_is_refused(store: Store) -> None:
    declare(store, "extract")
    dispatched(store)
    with pytest.raises(IntegrityError):
        dispatched(store)
    assert len(rows_of(store, execution)) == 1


def test_an_external_id_is_unique_among_those_not_removed(store: Store) -> None:
    declare(store, "extract")
    with pytest.raises(IntegrityError):
        write(store, copy_of(store, manifest))
    write(store, copy_of(store, manifest, removed_at=NOON))
    write(store, copy_of(store, manifest, removed_at=NOON))


def test_a_manifest_has_at_most_one_open_dead_letter(store: Store) -> None:
    declare(store, "extract")
    dead_letter_for(store)
    with pytest.raises(IntegrityError):
        write(store, copy_of(store, dead_letter))
    write(store, copy_of(store, dead_letter, status="acknowledged", resolved_at=NOON))
    dead_letter_for(store)
    assert len(rows_of(store, dead_letter)) == 2


@pytest.mark.parametrize(
    ("table", "column", "allowed", "refused"),
    [
        (manifest_group, "priority", [0, 31], [-1, 32]),
        (manifest_group, "max_active_jobs", [None, 1], [0, -1]),
        (manifest, "priority", [0, 31], [-1, 32]),
        (manifest, "interval_seconds", [1], [0, -1, None]),
        (manifest, "schedule_kind", [], ["cron", "hourly"]),
        (manifest, "max_retries", [None, 0], [-1]),
        (manifest, "timeout_seconds", [None, 1], [0]),
        (manifest, "misfire_policy", [None, "do_nothing"], ["skip"]),
        (manifest, "group_id", [], [None, NOBODY]),
        (work_queue, "priority", [0, 31], [-1, 32]),
        (work_queue, "status", ["held", "failed", "cancelled", "queued"], ["dispatched", "QUEUED"]),
        (work_queue, "source", ["trigger", "schedule"], ["cron", "ad_hoc", None]),
        (work_queue, "manifest_id", [], [None]),
        (execution, "state", [], ["completed", "in_progress", None]),
        (dead_letter, "status", [], ["retried", "open"]),
        (dependency, "parent_id", [None], [1]),
        (wake, "scope", ["children"], ["group", "all"]),
    ],
    ids=lambda value: getattr(value, "name", None) or str(value),
)
def test_a_column_takes_only_what_it_may_hold(
    store: Store, table: Table, column: str, allowed: list[Any], refused: list[Any]
) -> None:
    ids = declare(store, "extract")
    dispatched(store, source=Source.TRIGGER)
    queue(store)
    dead_letter_for(store)
    write(store, insert(dependency).values(child_id=ids["extract"]))
    write(store, insert(wake).values(manifest_id=ids["extract"], scope="self"))
    for value in allowed:
        write(store, update(table).values({column: value}))
    for value in refused:
        with pytest.raises(IntegrityError):
            write(store, update(table).values({column: value}))


def test_an_ad_hoc_entry_has_no_manifest(store: Store) -> None:
    ids = declare(store, "extract")
    queue_ad_hoc(store)
    with pytest.raises(IntegrityError):
        write(store, update(work_queue).values(manifest_id=ids["extract"]))


def test_a_failed_execution_says_why(store: Store) -> None:
    declare(store, "extract")
    ran(store)
    with pytest.raises(IntegrityError):
        write(store, copy_of(store, execution_history, id=NOBODY, state="failed"))


def test_an_execution_has_ended_at_most_once(store: Store) -> None:
    declare(store, "extract")
    ran(store)
    with pytest.raises(IntegrityError):
        write(store, copy_of(store, execution_history))


@pytest.mark.parametrize("column", ["state", "failure_message", "finished_at"])
def test_a_finished_execution_cannot_be_changed(store: Store, column: str) -> None:
    declare(store, "extract")
    one = ran(store)
    before = everything(store)
    with pytest.raises(DBAPIError, match="cannot be changed") as refused:
        write(store, update(execution_history).values({column: None}))
    if store.on_postgresql:
        assert f"execution {one.id} has finished" in str(refused.value)
    assert everything(store) == before


@pytest.fixture
def family(store: Store) -> dict[str, int]:
    ids = declare(store, "parent", a_manifest("child", group=Group("loads")))
    write(store, insert(dependency).values(child_id=ids["child"], parent_id=ids["parent"]))
    return ids


def test_deleting_a_parent_leaves_the_edge_without_one(store: Store, family: Any) -> None:
    write(store, delete(manifest).where(manifest.c.id == family["parent"]))
    [edge] = rows_of(store, dependency)
    assert (edge["child_id"], edge["parent_id"]) == (family["child"], None)


def test_deleting_a_child_deletes_its_edges_and_state(store: Store, family: Any) -> None:
    write(store, delete(manifest).where(manifest.c.id == family["child"]))
    assert rows_of(store, dependency) == []
    assert [row["manifest_id"] for row in rows_of(store, manifest_state)] == [family["parent"]]


def test_one_edge_joins_the_same_two_manifests(store: Store, family: Any) -> None:
    with pytest.raises(IntegrityError):
        write(store, copy_of(store, dependency))


def test_a_group_with_manifests_cannot_be_deleted(store: Store, family: Any) -> None:
    with pytest.raises(IntegrityError):
        write(store, delete(manifest_group))
    write(store, delete(manifest))
    write(store, delete(manifest_group))


def test_a_manifest_with_dead_letters_cannot_be_deleted(store: Store, family: Any) -> None:
    dead_letter_for(store, "parent")
    with pytest.raises(IntegrityError):
        write(store, delete(manifest))


def test_ids_are_never_used_again(store: Store) -> None:
    declare(store, "extract")
    newest: dict[str, int] = {}
    for _ in range(3):
        one = ran(store)
        ids = {"entry": one.entry_id, "execution": one.id}
        assert all(ids[name] > newest.get(name, 0) for name in ids)
        newest = ids
        write(store, delete(execution_history))
        with store.reading() as tx:
            assert tx.connection.execute(select(work_queue.c.id)).all() == []
