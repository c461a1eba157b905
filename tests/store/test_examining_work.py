"""What cannot be in the queue or among the live executions is told, and nothing else is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Table, insert, text, update

from headway.domain.manifest import Group
from headway.domain.schedule import Never
from headway.domain.work_queue import Source
from headway.store import examining_work as examining
from headway.store import executions, leases
from headway.store.dispatching import dispatch
from headway.store.engine import Store
from headway.store.servers import ServerProcess
from headway.store.tables import execution, manifest_group, work_queue
from tests.store.factories import (
    ME,
    NOBODY,
    NOON,
    OTHER,
    Clock,
    a_manifest,
    change_manifest,
    declare,
    dispatched,
    queue,
    queue_ad_hoc,
    rows_of,
    started,
)

LATER = NOON + timedelta(minutes=1)


def tell(store: Store, statement: str) -> None:
    with store.writing() as tx:
        tx.connection.execute(text(statement))


def change(store: Store, table: Table, key: int, **values: Any) -> None:
    with store.writing() as tx:
        tx.connection.execute(update(table).where(table.c.id == key).values(values))


def a_server(store: Store, name: str, *workflows: str, lease: timedelta) -> None:
    process = ServerProcess(name, "host", 1, ["executor"], workflows, 1)
    with store.writing() as tx:
        leases.register(tx, process, lease)


def queued_as(store: Store, status: str, **changes: Any) -> int:
    """An entry written by hand, past the rules of the queue."""
    fields = {"workflow": "work", "input_type": "None", "input": "null", "created_at": NOON}
    with store.writing() as tx:
        row = fields | {"status": status} | changes
        key = tx.connection.execute(insert(work_queue).values(row).returning(work_queue.c.id))
        return int(key.scalar_one())


def ended(store: Store) -> dict[int, str]:
    """Why entries were ended."""
    found = rows_of(store, work_queue)
    return {row["id"]: row["ended_reason"] for row in found if row["ended_at"] is not None}


def test_a_run_is_an_orphan_if_its_owner_has_no_row_and_it_began_long_enough_ago(
    store: Store, clock: Clock
) -> None:
    declare(store, "lives", "lost", "waits", "new")
    a_server(store, ME, "work", lease=timedelta(seconds=1))
    started(store, "lives", ME)
    lost = started(store, "lost", OTHER)
    dispatched(store, "waits")
    clock.advance(minutes=1)
    started(store, "new", OTHER)
    with store.reading() as tx:
        assert examining.orphans(tx, LATER) == [f"execution {lost.id} of lost, owner {OTHER}"]
        assert examining.orphans(tx, NOON) == []


def test_a_run_without_a_manifest_is_named_by_its_workflow(store: Store) -> None:
    entry = queue_ad_hoc(store)
    with store.writing() as tx:
        key = dispatch(tx, [entry])[entry]
        executions.claim_one(tx, OTHER, key)
        assert examining.orphans(tx, LATER) == [f"execution {key} of work, owner {OTHER}"]


@pytest.mark.parametrize(
    ("index", "status", "sources"),
    [
        ("one_queued", "queued", (Source.SCHEDULE, Source.DEPENDENT)),
        ("one_activation", "queued", (Source.ACTIVATION, Source.ACTIVATION)),
        ("one_held", "held", (Source.ACTIVATION, Source.ACTIVATION)),
    ],
)
def test_of_each_kind_a_manifest_has_one_entry(
    store: Store, index: str, status: str, sources: tuple[Source, Source]
) -> None:
    ids = declare(store, "extract", "other")
    tell(store, f"DROP INDEX headway_work_queue_{index}")
    first, second = (
        queued_as(store, status, source=source.value, manifest_id=ids["extract"])
        for source in sources
    )
    queued_as(store, status, source=sources[0].value, manifest_id=ids["other"])
    queued_as(store, "cancelled", source=sources[0].value, manifest_id=ids["other"])
    for _ in range(2):
        queue(store, "other", source=Source.TRIGGER)
    told = f"entry {second} ({sources[1]}) of manifest {ids['extract']}, work"
    cancelled = {second: "it was queued twice, and the older entry stays"}
    with store.writing() as tx:
        assert examining.queued_twice(tx) == [told]
        many = examining.end_queued_twice(tx)
    expected = {} if index == "one_activation" else cancelled
    assert (many, ended(store)) == (len(expected), expected)
    assert first not in ended(store)


def test_one_queued_by_time_and_one_activated_are_not_queued_twice(store: Store) -> None:
    declare(store, "extract")
    queue(store)
    queue(store, source=Source.ACTIVATION)
    with store.reading() as tx:
        assert examining.queued_twice(tx) == []


def test_what_may_overlap_does_not_run_twice_and_what_runs_comes_before_what_waits(
    store: Store,
) -> None:
    declare(store, a_manifest("overlaps", allow_overlap=True), "extract")
    for _ in range(2):
        dispatched(store, "overlaps", source=Source.TRIGGER)
    tell(store, "DROP INDEX headway_execution_single_flight")
    waits = dispatched(store, "extract")
    runs = started(store, "overlaps", source=Source.TRIGGER)
    change(store, execution, runs.id, manifest_id=NOBODY, single_flight=True, external_id=None)
    change(store, execution, waits, manifest_id=NOBODY)
    with store.writing() as tx:
        assert examining.running_twice(tx) == [f"execution {waits} of extract, pending"]
        assert examining.take_back_running_twice(tx) == 1
        assert examining.running_twice(tx) == []


def test_a_second_run_that_has_begun_is_told_and_left(store: Store) -> None:
    declare(store, "extract", "load")
    tell(store, "DROP INDEX headway_execution_single_flight")
    first, second = started(store, "extract"), started(store, "load")
    change(store, execution, second.id, manifest_id=first.manifest_id)
    with store.writing() as tx:
        assert examining.running_twice(tx) == [f"execution {second.id} of load, in_progress"]
        assert examining.take_back_running_twice(tx) == 0
        assert len(examining.running_twice(tx)) == 1


def test_a_group_that_just_reaches_its_cap_is_not_over_it(store: Store) -> None:
    manifests = [a_manifest(name, group=Group("etl")) for name in ("a", "b", "c")]
    declare(store, *manifests, a_manifest("d", group=Group("other")))
    for name in ("a", "b", "d"):
        dispatched(store, name)
    queue(store, "c")

    def over(cap: int | None) -> list[str]:
        with store.writing() as tx:
            tx.connection.execute(update(manifest_group).values(max_active_jobs=cap))
            return examining.groups_over_their_cap(tx)

    assert [over(cap) for cap in (None, 2)] == [[], []]
    assert over(1) == ["group etl: 2 at once, cap 1"]


def test_as_many_as_the_limit_allows_are_not_too_many(store: Store) -> None:
    declare(store, "a", "b", a_manifest("c", workflow="free"))
    for name in ("a", "b", "c"):
        dispatched(store, name)
    with store.reading() as tx:
        assert examining.over_the_limit(tx, None, []) == []
        assert examining.over_the_limit(tx, 3, []) == []
        assert examining.over_the_limit(tx, 2, ["free"]) == []
        assert examining.over_the_limit(tx, 2, []) == ["3 at once, max_active_jobs 2"]


def test_an_entry_whose_manifest_or_group_is_gone_is_told_and_cancelled(store: Store) -> None:
    ids = declare(store, "extract", "removed", "held")
    queue(store, "extract")
    queue_ad_hoc(store)
    of = {"source": "trigger", "manifest_id": ids["extract"]}
    no_group = queued_as(store, "queued", group_id=NOBODY, **of)
    of_removed = queue(store, "removed")
    change_manifest(store, "removed", removed_at=NOON)
    no_manifest = queued_as(store, "held", source="activation", manifest_id=NOBODY)
    queued_as(store, "cancelled", source="trigger", manifest_id=NOBODY)
    with store.writing() as tx:
        assert examining.entries_of_nobody(tx) == [
            f"entry {no_group} (trigger) of manifest {ids['extract']}, work",
            f"entry {of_removed} (schedule) of manifest {ids['removed']}, work",
            f"entry {no_manifest} (activation) of manifest {NOBODY}, work",
        ]
        assert examining.end_entries_of_nobody(tx) == 3
        assert examining.entries_of_nobody(tx) == []
    lost = (no_group, of_removed, no_manifest)
    assert ended(store) == dict.fromkeys(lost, "its manifest is gone")


def test_an_activation_is_held_in_vain_if_its_dependent_neither_waits_nor_runs(
    store: Store,
) -> None:
    dormant = [a_manifest(name, schedule=Never()) for name in ("free", "waits", "runs")]
    ids = declare(store, *dormant)
    of = {"source": "activation"}
    held = {name: queued_as(store, "held", manifest_id=key, **of) for name, key in ids.items()}
    queue(store, "waits", source=Source.TRIGGER)
    dispatched(store, "runs", source=Source.TRIGGER)
    queued_as(store, "cancelled", manifest_id=ids["free"], **of)
    told = f"entry {held['free']} (activation) of manifest {ids['free']}, work"
    with store.writing() as tx:
        assert examining.held_for_the_free(tx) == [told]
        assert examining.release_held_for_the_free(tx) == 1
        assert examining.held_for_the_free(tx) == []
    status = {row["id"]: row["status"] for row in rows_of(store, work_queue)}
    assert [status[held[name]] for name in ("free", "waits", "runs")] == ["queued", "held", "held"]


def test_an_execution_that_no_living_worker_can_run_is_told_after_a_while(
    store: Store, clock: Clock
) -> None:
    declare(
        store, "known", a_manifest("unknown", workflow="gone"), a_manifest("runs", workflow="x")
    )
    a_server(store, ME, "work", lease=timedelta(minutes=10))
    a_server(store, "dead", "gone", lease=timedelta(seconds=1))
    dispatched(store, "known")
    lost = dispatched(store, "unknown")
    started(store, "runs")
    clock.advance(minutes=1)
    with store.reading() as tx:
        told = [f"execution {lost} of unknown, workflow gone"]
        assert examining.pending_for_nobody(tx, LATER) == told
        assert examining.pending_for_nobody(tx, NOON) == []


def test_entries_that_no_living_server_knows_are_counted_by_workflow(
    store: Store, clock: Clock
) -> None:
    a_server(store, ME, "work", lease=timedelta(minutes=10))
    a_server(store, "dead", "gone", "x", lease=timedelta(seconds=1))
    for workflow in ("work", "x", "gone", "gone"):
        queue_ad_hoc(store, workflow=workflow)
    queue_ad_hoc(store, workflow="x", scheduled_at=LATER)
    queue_ad_hoc(store, workflow="later", scheduled_at=LATER + timedelta(microseconds=1))
    queued_as(store, "cancelled", source="ad_hoc", workflow="ended")
    clock.now = LATER
    queue_ad_hoc(store, workflow="new")
    with store.reading() as tx:
        told = ["workflow gone: 2 queued", "workflow x: 2 queued"]
        assert examining.queued_for_nobody(tx, LATER) == told
        assert examining.queued_for_nobody(tx, NOON) == []


@pytest.mark.parametrize("note", ["nonsense", "[1]", '{"0": 1}', '{"x": 1}', '{"1": "one"}', "3"])
def test_a_note_about_parents_that_is_no_such_note_is_cleared(store: Store, note: str) -> None:
    ids = declare(store, "a", "b", "c", "d")
    queue(store, "a", parents_seen='{"4": 7}')
    broken = queue(store, "b", parents_seen=note)
    of = {"source": "activation", "manifest_id": ids["c"]}
    held = queued_as(store, "held", parents_seen=note, **of)
    over = queued_as(store, "cancelled", parents_seen=note, **of)
    run = dispatched(store, "d")
    change(store, execution, run, parents_seen=note)
    with store.writing() as tx:
        assert examining.unreadable_parents(tx) == [
            f"entry {broken} (schedule) of manifest {ids['b']}, work",
            f"entry {held} (activation) of manifest {ids['c']}, work",
            f"execution {run} of d",
        ]
        assert examining.forget_unreadable_parents(tx) == 3
        assert examining.unreadable_parents(tx) == []
    notes = {row["id"]: row["parents_seen"] for row in rows_of(store, work_queue)}
    assert (notes[over], notes[broken], notes[held]) == (note, None, None)
    assert '{"4": 7}' in notes.values()
    assert rows_of(store, execution)[0]["parents_seen"] is None
