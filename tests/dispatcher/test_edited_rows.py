"""Rows edited by hand: the database refuses them, or they cost nobody but themselves anything.

The cells of the row "rows edited by hand" in the bad-input matrix that are not about one queue
entry (those are in test_poison.py), on both databases:

| Cell | Tried here by |
|---|---|
| unknown state, NULL lease, orphan FK | ``REFUSED``: the database does not take it |
| epoch lowered | the tests of lowered ids, of reused ids and of a lowered identity |
| parent loop | the tests of manifests that wait for one another |
| slot row deleted | there are none; deleted rows of a server, of a manifest, of its state |
| input not matching schema | ``UNREADABLE``: parents seen, exclusions, zones and expressions |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from sqlalchemy import Table, delete, insert, select, text, update
from sqlalchemy.exc import IntegrityError

from headway import cron, every
from headway.domain.execution import Ended, Execution, ExecutionState, FailureCode, Outcome
from headway.store import outcomes
from headway.store.tables import (
    dependency,
    execution,
    execution_history,
    manifest,
    manifest_state,
    server,
)
from headway.store.transaction import Transaction
from tests.builders import OWNER, START, Scene, reasons

NOBODY = 10**9
DONE = Outcome(ExecutionState.COMPLETED)
ALIVE = {"id": OWNER, "host": "here", "pid": 1, "roles": "worker", "workflows": "[]", "slots": 1}
LEASE = {"started_at": START, "renewed_at": START, "expires_at": START.replace(year=2099)}

REFUSED: dict[str, tuple[Table, Mapping[str, Any]]] = {
    "a lease without an end": (server, {"expires_at": None}),
    "a run in progress without an owner": (execution, {"owner": None}),
    "a run in progress that never started": (execution, {"started_at": None}),
    "a run in an unknown state": (execution, {"state": "lost"}),
    "a run that ended but is live": (execution, {"state": "completed"}),
    "a manifest of no group": (manifest, {"group_id": NOBODY}),
    "an edge from nobody": (dependency, {"parent_id": NOBODY}),
    "an edge to itself": (dependency, {"parent_id": dependency.c.child_id}),
}


@pytest.fixture
def family(scene: Scene) -> Scene:
    """Two manifests that depend on one another in a row, neighbours, and a server called OWNER."""
    scene.configure(max_active_jobs=None, default_max_retries=9)
    first = scene.app.schedule("work", "first", None, every(hours=1), group="all")
    first.include("work", "second", None, group="all")
    for name in ("before", "behind"):
        scene.app.schedule("work", name, None, every(hours=1), group="all")
    scene.app.schedule("work", "daily", None, cron("0 0 * * *"), group="all")
    scene.apply()
    change(scene, insert(server).values(ALIVE | LEASE))
    return scene


def change(scene: Scene, statement: Any) -> None:
    with scene.store.writing() as tx:
        tx.connection.execute(statement)


def run_of(scene: Scene, name: str) -> Execution:
    """A run of this manifest that OWNER has begun."""
    scene.trigger(name)
    scene.dispatch()
    [one] = [one for one in scene.claim() if one.external_id == name]
    return one


def end(scene: Scene, *ended: int) -> list[Ended]:
    with scene.store.writing() as tx:
        return outcomes.finish(tx, OWNER, dict.fromkeys(ended, DONE))


def all_is_well(scene: Scene) -> None:
    """The neighbours are queued, dispatched, run and recorded."""
    for name in ("before", "behind"):
        scene.trigger(name)
    scene.dispatch()
    scene.run()
    done = {one.external_id for one in scene.ended(ExecutionState.COMPLETED)}
    assert {"before", "behind"} <= done


@pytest.mark.parametrize("name", REFUSED)
def test_the_database_refuses_it(family: Scene, name: str) -> None:
    table, values = REFUSED[name]
    run_of(family, "first")

    with pytest.raises(IntegrityError):
        change(family, update(table).values(values))


# Epochs


def test_a_lowered_id_is_not_its_owners_and_runs_again(family: Scene) -> None:
    run_of(family, "before")
    one = run_of(family, "first")
    change(family, update(execution).where(execution.c.id == one.id).values(id=-7))

    assert end(family, one.id) == [], "the attempt it was is not there any more"
    with family.store.writing() as tx:
        outcomes.hand_back(tx, OWNER, [-7])
    family.dispatch()
    family.run()

    ended = [one for one in family.history.executions.all() if one.external_id == "first"]
    assert [one.state for one in ended] == [ExecutionState.HANDED_BACK, ExecutionState.COMPLETED]


@pytest.mark.parametrize("last", ["finish", "orphans", "stale"])
def test_an_id_that_was_used_before_holds_up_no_other_run(family: Scene, last: str) -> None:
    used = run_of(family, "before")
    end(family, used.id)
    lowered, other = run_of(family, "first"), run_of(family, "behind")
    change(family, update(execution).where(execution.c.id == lowered.id).values(id=used.id))

    acts: dict[str, Callable[[Transaction], Any]] = {
        "finish": lambda tx: outcomes.finish(tx, OWNER, {used.id: DONE, other.id: DONE}),
        "orphans": lambda tx: outcomes.end_orphans(tx, 3),
        "stale": lambda tx: outcomes.fail_stale_in_progress(tx, [used.id, other.id]),
    }
    if last == "orphans":
        change(family, delete(server))
    with family.store.writing() as tx:
        acts[last](tx)

    with family.store.reading() as tx:
        assert tx.connection.execute(select(execution)).all() == []
        kept = execution_history.c.id == used.id
        before = tx.connection.execute(select(execution_history).where(kept)).one()
    assert before.external_id == "before", "what is in the history stays as it was"
    ended = {one.external_id: one for one in family.history.executions.all()}
    assert ended["first"].id > other.id, "it ended under an id that nobody had"
    expected = ExecutionState.COMPLETED if last == "finish" else ExecutionState.FAILED
    assert {ended["first"].state, ended["behind"].state} == {expected}
    again = {one.external_id for one in family.history.queue.all()}
    assert again == ({"first", "behind"} if last == "orphans" else set())


def lower_identity(scene: Scene) -> None:
    lowered = {
        True: "ALTER TABLE headway_execution ALTER COLUMN id RESTART WITH 1",
        False: "UPDATE sqlite_sequence SET seq = 0 WHERE name = 'headway_execution'",
    }
    change(scene, text(lowered[scene.store.on_postgresql]))


def test_a_lowered_identity_costs_no_run_its_record(family: Scene) -> None:
    for _ in range(3):
        end(family, run_of(family, "before").id)
    lower_identity(family)

    for name in ("first", "behind"):
        family.trigger(name)
    family.dispatch()
    family.run()
    all_is_well(family)

    states = {one.external_id: one.state for one in family.history.executions.all()}
    assert states["first"] is states["behind"] is ExecutionState.COMPLETED
    ids = [one.id for one in family.history.executions.all()]
    assert len(ids) == len(set(ids)) == 7


# Parents


def close_the_loop(scene: Scene) -> None:
    first, second = scene.ids_of("first")[0], scene.ids_of("second")[0]
    change(scene, insert(dependency).values(child_id=first, parent_id=second))


def test_manifests_that_wait_for_one_another_hold_up_nobody(family: Scene) -> None:
    close_the_loop(family)
    change(
        family,
        update(manifest)
        .where(manifest.c.external_id == "first")
        .values(schedule_kind="dependent", interval_seconds=None, join_mode="all"),
    )
    family.wake("first", "second", "before", "behind")

    told = reasons(family.manage())
    family.dispatch()
    family.run()

    assert told["first"] == "waits for the first success of 'second'"
    done = {one.external_id for one in family.ended(ExecutionState.COMPLETED)}
    assert done == {"before", "behind", "daily"}


def test_who_declares_beside_a_loop_is_heard_and_who_declares_into_it_opens_it(
    family: Scene,
) -> None:
    close_the_loop(family)
    family.app.schedule("work", "new", None, every(hours=1), group="others")
    family.apply()
    assert family.manifest("new").enabled

    family.new_app()
    moved = family.app.schedule("work", "first", None, every(hours=1), group="elsewhere")
    moved.include("work", "second", None, group="elsewhere")
    family.apply()

    with family.store.reading() as tx:
        [edge] = tx.connection.execute(select(dependency)).all()
    assert (edge.parent_id, edge.child_id) == (
        family.ids_of("first")[0],
        family.ids_of("second")[0],
    )


# Rows that are gone


@pytest.mark.story(11)
def test_a_deleted_server_loses_its_runs_and_they_start_again(family: Scene) -> None:
    run_of(family, "first")
    change(family, delete(server))

    with family.store.writing() as tx:
        ended, _ = outcomes.end_orphans(tx, 3)
    [one] = ended
    assert one.failure is not None and one.failure.type == FailureCode.WORKER_LOST
    family.dispatch()
    family.run()
    all_is_well(family)

    assert "first" in {one.external_id for one in family.ended(ExecutionState.COMPLETED)}


@pytest.mark.parametrize("table", [manifest_state, manifest], ids=["state", "manifest"])
def test_a_run_whose_manifest_lost_its_row_ends_with_the_others(
    family: Scene, table: Table
) -> None:
    one, other = run_of(family, "second"), run_of(family, "behind")
    key = table.c["manifest_id" if table is manifest_state else "id"]
    change(family, delete(table).where(key == one.manifest_id))

    ended = end(family, one.id, other.id)

    assert {run.external_id for run in ended} == {"second", "behind"}
    family.manage()
    all_is_well(family)


# Texts that cannot be read

UNREADABLE = ["{", "[]", "null", '{"x": 1}', '{"1": "y"}', "7", ""]


@pytest.mark.parametrize("seen", UNREADABLE)
def test_what_a_run_has_seen_of_its_parents_may_be_unreadable(family: Scene, seen: str) -> None:
    one, other = run_of(family, "second"), run_of(family, "behind")
    change(family, update(execution).where(execution.c.id == one.id).values(parents_seen=seen))

    assert len(end(family, one.id, other.id)) == 2
    all_is_well(family)


@pytest.mark.parametrize(
    "values",
    [
        {"cron_expression": "every day"},
        {"time_zone": "Mars/Olympus"},
        {"exclusions": "{"},
        {"exclusions": '[{"kind": "never"}]'},
        {"exclusions": '[{"kind": "dates", "dates": ["2030-13-01"], "then": "skip"}]'},
    ],
    ids=str,
)
def test_a_manifest_that_cannot_be_read_is_told_and_holds_up_nobody(
    family: Scene, values: dict[str, str]
) -> None:
    family.manage()
    change(family, update(manifest).where(manifest.c.external_id == "daily").values(values))
    family.dispatch()
    family.run()
    family.clock.advance(days=1)
    family.wake("daily")

    told = reasons(family.manage())

    assert told["daily"].startswith("its row cannot be read") or told["daily"] == "already queued"
    all_is_well(family)
