"""Every check, on a database that was broken by hand: what is found, said, and put right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest
from sqlalchemy import delete, select, update

from headway import every
from headway.doctor import definitions, deployment
from headway.doctor.checks import CHECKS
from headway.doctor.examination import Doctor
from headway.doctor.findings import page_by_page
from headway.domain.execution import ExecutionState
from headway.domain.work_queue import NewEntry, Source
from headway.store import objectives
from headway.store.tables import (
    dead_letter,
    dependency,
    event,
    execution,
    manifest,
    manifest_group,
    manifest_state,
    objective,
    pause_state,
    server,
    wake,
    work_queue,
)
from tests.builders import START, Scene, names
from tests.doctor.examining import (
    add,
    change,
    declare,
    examine,
    found,
    tell,
    without_references,
)
from tests.store.factories import NOBODY

Break = Callable[[Scene], None]
CHECK = {one.name: one for one in CHECKS}


def a_server(scene: Scene, name: str, expires_in: float, lease: float = 15.0) -> None:
    expires = scene.clock.now + timedelta(seconds=expires_in)
    renewed = expires - timedelta(seconds=lease)
    values = {"host": "h", "pid": 1, "roles": "[]", "workflows": '["work"]', "slots": 1}
    add(
        scene, server, id=name, started_at=renewed, renewed_at=renewed, expires_at=expires, **values
    )


def a_run(scene: Scene, name: str = "load") -> None:
    declare(scene, name)
    scene.manage()
    scene.dispatch()
    scene.claim()


def a_dead_server(scene: Scene) -> None:
    a_server(scene, "gone", expires_in=-3600)


def an_orphan(scene: Scene) -> None:
    a_run(scene)
    scene.clock.advance(seconds=40)


def unreadable_notes(scene: Scene) -> None:
    chain = scene.app.schedule("work", "extract", None, every(hours=1))
    chain.then_include("work", "load", None)
    scene.apply()
    scene.cycle()
    scene.manage()
    change(scene, work_queue, parents_seen="nonsense")


def an_entry_twice(scene: Scene) -> None:
    declare(scene, "load")
    scene.manage()
    tell(scene, "DROP INDEX headway_work_queue_one_queued")
    key, group = scene.ids_of("load")
    scene.enqueue(NewEntry("work", Source.SCHEDULE, "null", manifest_id=key, group_id=group))


def a_run_twice(scene: Scene) -> None:
    a_run(scene)
    tell(scene, "DROP INDEX headway_execution_single_flight")
    add(scene, server, **_living())
    entry = scene.trigger("load")
    with scene.store.writing() as tx:
        row = tx.connection.execute(delete(work_queue).returning(work_queue)).one()
        assert row.id == entry
        running = tx.connection.execute(select(execution)).mappings().one()
        second = dict(running) | {"id": running["id"] + 1, "entry_id": entry, "source": "trigger"}
        second |= {"state": "pending", "owner": None, "started_at": None}
        tx.connection.execute(execution.insert().values(second))


def _living() -> dict[str, object]:
    moments = {"started_at": START, "renewed_at": START, "expires_at": START + timedelta(days=1)}
    about = {"host": "h", "pid": 1, "roles": "[]", "workflows": '["work"]', "slots": 1}
    return {"id": "me", **about, **moments}


def an_entry_of_nobody(scene: Scene) -> None:
    scene.enqueue(NewEntry("work", Source.TRIGGER, "null", manifest_id=NOBODY, group_id=NOBODY))


def an_entry_of_the_removed(scene: Scene) -> None:
    declare(scene, "load")
    scene.trigger("load")
    change(scene, manifest, removed_at=START)


def a_held_activation(scene: Scene) -> None:
    chain = scene.app.schedule("work", "extract", None, every(hours=1))
    chain.include("work", "dormant", None, dormant=True)
    scene.apply()
    key, group = scene.ids_of("dormant")
    scene.enqueue(NewEntry("work", Source.ACTIVATION, "null", manifest_id=key, group_id=group))
    change(scene, work_queue, status="held")


def a_group_over_its_cap(scene: Scene) -> None:
    declare(scene, "a", "b", group="etl")
    scene.manage()
    scene.dispatch()
    change(scene, manifest_group, max_active_jobs=1)


def too_many(scene: Scene) -> None:
    scene.pending("work")
    scene.pending("work")
    scene.configure(max_active_jobs=1)


def a_strange_execution(scene: Scene) -> None:
    scene.pending("strange")
    scene.clock.advance(minutes=3)


def a_strange_entry(scene: Scene) -> None:
    scene.enqueue(NewEntry("strange", Source.AD_HOC, "null"))
    scene.clock.advance(minutes=3)


def no_group(scene: Scene) -> None:
    declare(scene, "load")
    with without_references(scene) as tx:
        tx.connection.execute(delete(manifest_group))


def no_state(scene: Scene) -> None:
    declare(scene, "load")
    with scene.store.writing() as tx:
        tx.connection.execute(delete(manifest_state))


def nonsense(scene: Scene) -> None:
    declare(scene, "load")
    change(scene, manifest, exclusions="nonsense")


def a_sleeper(scene: Scene) -> None:
    declare(scene, "load", "other")
    scene.cycle()
    scene.manage()
    key, _ = scene.ids_of("load")
    with scene.store.writing() as tx:
        this = manifest_state.c.manifest_id == key
        tx.connection.execute(update(manifest_state).where(this).values(wake_at=None))
        tx.connection.execute(delete(wake))


def a_circle(scene: Scene) -> None:
    declare(scene, "a", "b", group="etl")
    (a, _), (b, _) = scene.ids_of("a"), scene.ids_of("b")
    add(scene, dependency, child_id=a, parent_id=b)
    add(scene, dependency, child_id=b, parent_id=a)


def a_letter(scene: Scene, name: str = "load") -> None:
    key, _ = scene.ids_of(name)
    about = {"dead_lettered_at": START, "reason": "max retries exceeded", "failures": 3}
    add(scene, dead_letter, manifest_id=key, **about)


def a_letter_twice(scene: Scene) -> None:
    declare(scene, "load")
    tell(scene, "DROP INDEX headway_dead_letter_awaiting")
    a_letter(scene)
    a_letter(scene)


def a_letter_of_the_removed(scene: Scene) -> None:
    """As an earlier version left it: removal resolves dead letters now."""
    declare(scene, "load")
    a_letter(scene)
    tell(scene, "UPDATE headway_manifest SET removed_at = scheduled_since")


def old_history(scene: Scene) -> None:
    scene.pending("work")
    scene.run()
    scene.clock.advance(days=31)


def two_leases(scene: Scene) -> None:
    a_server(scene, "one", expires_in=10, lease=15)
    a_server(scene, "two", expires_in=5, lease=6)


def no_index(scene: Scene) -> None:
    tell(scene, "DROP INDEX headway_execution_pending")


def no_unique_index(scene: Scene) -> None:
    tell(scene, "DROP INDEX headway_work_queue_one_held")
    tell(scene, "CREATE INDEX headway_work_queue_one_held ON headway_work_queue (manifest_id)")


def an_older_sequence(scene: Scene) -> None:
    """As after restoring one table of a backup."""
    for _ in range(3):
        scene.pending("work")
    scene.run()
    if scene.store.on_postgresql:
        tell(scene, "SELECT setval(pg_get_serial_sequence('headway_execution', 'id'), 1)")
    else:
        tell(scene, "UPDATE sqlite_sequence SET seq = 1 WHERE name = 'headway_execution'")


def settled_in_the_future(scene: Scene) -> None:
    declare(scene, "load")
    scene.cycle()
    scene.manage()
    change(scene, manifest_state, settled_until=START + timedelta(days=400))


def a_manager_without_objective(scene: Scene) -> None:
    a_server(scene, "boss", expires_in=10)
    change(scene, server, roles='["manager"]')


def unreadable_artifacts(scene: Scene) -> None:
    with scene.store.writing() as tx:
        objectives.ensure_standing(tx, "tests", "tests")
    add(
        scene,
        pause_state,
        pause_id="by-hand",
        objective_id="standing",
        azolla_id="tests",
        reason="RUN_COMPLETE",
        prioritized_actions="look at it",
        created_at=START,
    )
    change(scene, objective, blocked_on='["gone"]')


def a_parked_event(scene: Scene) -> None:
    add(
        scene,
        event,
        event_id="event-1",
        type="MANIFEST_REQUESTED",
        resource_id="tests",
        azolla_id="tests",
        created_at=START,
        attempts=5,
        parked_at=START,
        last_error="query_azollas: RuntimeError: no",
    )


@dataclass(frozen=True)
class Case:
    """How a database is broken, and what the doctor says about which rows."""

    check: str
    breaking: Break
    rows: tuple[str, ...]
    mended: bool = True


CASES = [
    Case("ids-behind", an_older_sequence, ("headway_execution: last id 1, used 3",)),
    Case(
        "settled-ahead",
        settled_in_the_future,
        ("manifest load: settled until 2031-02-11 12:00:00",),
    ),
    Case("unburied-servers", a_dead_server, ("server gone, silent since 2030-01-07 10:59:45",)),
    Case("orphans", an_orphan, ("execution 1 of load, owner me",)),
    Case("unreadable-parents", unreadable_notes, ("entry 2 (dependent) of manifest 2, work",)),
    Case("queued-twice", an_entry_twice, ("entry 2 (schedule) of manifest 1, work",)),
    Case("running-twice", a_run_twice, ("execution 2 of load, pending",)),
    Case(
        "entries-of-nobody", an_entry_of_nobody, (f"entry 1 (trigger) of manifest {NOBODY}, work",)
    ),
    Case("entries-of-nobody", an_entry_of_the_removed, ("entry 1 (trigger) of manifest 1, work",)),
    Case("held-for-the-free", a_held_activation, ("entry 1 (activation) of manifest 2, work",)),
    Case("group-over-cap", a_group_over_its_cap, ("group etl: 2 at once, cap 1",), mended=False),
    Case("over-limit", too_many, ("2 at once, max_active_jobs 1",), mended=False),
    Case(
        "pending-for-nobody",
        a_strange_execution,
        ("execution 1 of strange, workflow strange",),
        mended=False,
    ),
    Case("queued-for-nobody", a_strange_entry, ("workflow strange: 1 queued",), mended=False),
    Case("manifests-without-group", no_group, ("manifest load, group 1",), mended=False),
    Case("manifests-without-state", no_state, ("manifest load",)),
    Case("unreadable-manifests", nonsense, ("manifest load: ",), mended=False),
    Case(
        "sleeping-too-long",
        a_sleeper,
        ("manifest load: looked at never, due 2030-01-07 13:00:00",),
    ),
    Case("circles", a_circle, ("manifest a", "manifest b"), mended=False),
    Case("dead-letters-twice", a_letter_twice, ("dead letter 1",)),
    Case("dead-letters-of-the-removed", a_letter_of_the_removed, ("dead letter 1 of load",)),
    Case("no-standing-objective", a_manager_without_objective, ("server boss",), mended=False),
    Case(
        "unreadable-artifacts",
        unreadable_artifacts,
        ("objective standing: there is no blocker gone", "pause state by-hand: Expecting value"),
        mended=False,
    ),
    Case(
        "parked-events",
        a_parked_event,
        ("event-1: query_azollas: RuntimeError: no",),
        mended=False,
    ),
    Case("retention-behind", old_history, ("1 finished executions, from 2030-01-07 12:00 on",)),
    Case("different-leases", two_leases, ("server one: 15 s", "server two: 6 s"), mended=False),
    Case("broken-indexes", no_index, ("index headway_execution_pending is missing",)),
    Case("broken-indexes", no_unique_index, ("index headway_work_queue_one_held is not unique",)),
]
BY_NAME = [pytest.param(case, id=f"{case.check}-{case.breaking.__name__}") for case in CASES]


@pytest.mark.parametrize("case", BY_NAME)
def test_what_was_broken_by_hand_is_found_and_said_in_a_sentence(scene: Scene, case: Case) -> None:
    assert found(scene) == {}, "green before"
    case.breaking(scene)
    report = examine(scene)
    assert not report.healthy
    [finding] = [one for one in report.findings if one.check == case.check]
    assert len(finding.rows) == len(case.rows)
    for row, expected in zip(finding.rows, case.rows, strict=True):
        assert row.startswith(expected)
    assert finding.sentence == CHECK[case.check].sentence
    assert finding.fix == CHECK[case.check].fix
    assert report.repaired == {}, "looking changes nothing"
    assert case.check in found(scene)


@pytest.mark.parametrize("case", BY_NAME)
def test_what_can_be_repaired_is_and_all_is_green_afterwards(scene: Scene, case: Case) -> None:
    case.breaking(scene)
    report = examine(scene, fix=True)
    if case.mended:
        assert report.repaired[case.check] >= 1
        assert found(scene) == {}
        assert examine(scene, fix=True).repaired == {}, "nothing is repaired twice"
    else:
        assert case.check not in report.repaired
        assert case.check in found(scene), "a person has to see to it"


# What the deployment itself may be about to see to.
MOVING = {
    "ids-behind",
    "unburied-servers",
    "orphans",
    "entries-of-nobody",
    "held-for-the-free",
    "pending-for-nobody",
    "queued-for-nobody",
    "sleeping-too-long",
}


@pytest.mark.parametrize("case", BY_NAME)
def test_only_what_may_be_in_motion_is_looked_at_twice(sqlite_scene: Scene, case: Case) -> None:
    case.breaking(sqlite_scene)
    waits: list[float] = []
    told = found(sqlite_scene, wait=waits.append)
    assert case.check in told
    assert waits == ([3.0] if MOVING & told.keys() else [])


def a_settled(scene: Scene, minutes: int) -> None:
    declare(scene, "load")
    scene.cycle()
    scene.manage()
    change(scene, manifest_state, settled_until=START + timedelta(minutes=minutes))


def a_finished_run(scene: Scene) -> None:
    scene.pending("work")
    scene.run()


def a_strange_pending(scene: Scene) -> None:
    scene.pending("strange")


def a_strange_queued(scene: Scene) -> None:
    scene.enqueue(NewEntry("strange", Source.AD_HOC, "null"))


LEASE, MINUTE = 15, 60
LIMITS: list[tuple[str, Break, int]] = [
    ("orphans", a_run, LEASE + 2),
    ("unburied-servers", lambda scene: a_server(scene, "gone", expires_in=0), 2 * LEASE),
    ("pending-for-nobody", a_strange_pending, LEASE + MINUTE),
    ("queued-for-nobody", a_strange_queued, LEASE + MINUTE),
]


@pytest.mark.parametrize(("check", "breaking", "limit"), LIMITS, ids=[one[0] for one in LIMITS])
def test_the_deployment_has_some_time_to_see_to_it_itself(
    scene: Scene, check: str, breaking: Break, limit: int
) -> None:
    scene.configure(server_lease=timedelta(seconds=LEASE))
    breaking(scene)
    scene.clock.advance(seconds=limit - 1)
    assert check not in found(scene)
    scene.clock.advance(seconds=2)
    assert check in found(scene)


def test_an_occurrence_in_the_next_hour_may_be_settled(scene: Scene) -> None:
    a_settled(scene, minutes=59)
    assert "settled-ahead" not in found(scene)
    change(scene, manifest_state, settled_until=START + timedelta(minutes=61))
    assert "settled-ahead" in found(scene)


def test_two_clean_ups_may_be_missed(scene: Scene) -> None:
    a_finished_run(scene)
    settings = scene.app.settings
    late = settings.retention_period + 2 * settings.cleanup_interval
    scene.clock.advance(seconds=late.total_seconds() - 1)
    assert "retention-behind" not in found(scene)
    scene.clock.advance(seconds=2)
    assert "retention-behind" in found(scene)


def test_all_that_is_overdue_is_deleted_and_nothing_younger(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployment, "BATCH", 2)
    for _ in range(5):
        a_finished_run(scene)
    scene.clock.advance(days=31)
    a_finished_run(scene)
    assert examine(scene, fix=True).repaired["retention-behind"] == 5
    assert [one.id for one in scene.history.executions.all()] == [6]


def test_all_that_sleep_too_long_are_woken(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions, "PAGE", 2)
    declare(scene, *(f"load-{number}" for number in range(5)))
    scene.cycle()
    scene.manage()
    change(scene, manifest_state, wake_at=None)
    tell(scene, "DELETE FROM headway_wake")
    assert len(found(scene)["sleeping-too-long"]) == 5
    assert examine(scene, fix=True).repaired["sleeping-too-long"] == 5
    assert found(scene) == {}


def test_a_repair_goes_on_until_a_page_of_it_is_empty(scene: Scene) -> None:
    pages = [3, 2, 0, 7]
    repair = page_by_page(lambda look: pages.pop(0))
    assert repair(Doctor(scene.store)) == 5
    assert pages == [7]


def test_servers_with_the_same_lease_are_no_finding(scene: Scene) -> None:
    a_server(scene, "one", expires_in=10, lease=15)
    a_server(scene, "two", expires_in=5, lease=15)
    assert found(scene) == {}


def test_an_orphan_is_queued_again(scene: Scene) -> None:
    an_orphan(scene)
    examine(scene, fix=True)
    assert names(scene.history.queue.all()) == ["load"]
    [ended] = scene.ended(ExecutionState.FAILED)
    assert ended.failure is not None
    assert ended.failure.type == "WorkerLost"


def test_a_long_run_of_a_living_server_is_no_orphan(scene: Scene) -> None:
    a_run(scene)
    scene.clock.advance(minutes=10)
    assert "orphans" in found(scene)
    a_server(scene, "me", expires_in=10)
    assert found(scene) == {}


def test_a_buried_servers_runs_start_again_in_the_same_repair(scene: Scene) -> None:
    a_server(scene, "me", expires_in=10)
    a_run(scene)
    scene.clock.advance(hours=1)
    report = examine(scene, fix=True)
    assert dict(report.repaired) == {"unburied-servers": 1, "orphans": 1}
    assert names(scene.history.queue.all()) == ["load"]


def test_of_what_is_queued_twice_the_older_one_stays(scene: Scene) -> None:
    an_entry_twice(scene)
    report = examine(scene, fix=True)
    assert dict(report.repaired) == {"queued-twice": 1, "broken-indexes": 1}
    assert [one.id for one in scene.history.queue.all()] == [1]


def test_no_activation_is_cancelled_for_it_has_an_input_of_its_own(scene: Scene) -> None:
    tell(scene, "DROP INDEX headway_work_queue_one_activation")
    chain = scene.app.schedule("work", "extract", None, every(hours=1))
    chain.include("work", "dormant", None, dormant=True)
    scene.apply()
    key, group = scene.ids_of("dormant")
    for input in ("1", "2"):
        entry = NewEntry("work", Source.ACTIVATION, input, manifest_id=key, group_id=group)
        scene.enqueue(entry)
    report = examine(scene, fix=True)
    assert dict(report.repaired) == {}
    assert {"queued-twice", "broken-indexes"} <= {one.check for one in report.findings}
    assert [one.input for one in scene.history.queue.all()] == ["1", "2"]
    scene.dispatch()
    scene.run()
    assert dict(examine(scene, fix=True).repaired) == {"broken-indexes": 1}
    assert found(scene) == {}


def test_a_sleeper_is_woken_and_runs(scene: Scene) -> None:
    a_sleeper(scene)
    examine(scene, fix=True)
    scene.clock.advance(hours=1)
    scene.manage()
    assert sorted(filter(None, names(scene.history.queue.all()))) == ["load", "other"]


def test_ids_that_were_set_back_rise_again(scene: Scene) -> None:
    an_older_sequence(scene)
    examine(scene, fix=True)
    assert scene.pending("work") == 4


def test_a_manifest_settled_ahead_runs_at_its_next_occurrence(scene: Scene) -> None:
    settled_in_the_future(scene)
    examine(scene, fix=True)
    scene.manage()
    assert scene.history.queue.all() == []
    scene.clock.advance(hours=1)
    scene.manage()
    assert names(scene.history.queue.all()) == ["load"]


def test_a_manifest_without_state_runs_again(scene: Scene) -> None:
    no_state(scene)
    examine(scene, fix=True)
    scene.manage()
    assert names(scene.history.queue.all()) == ["load"]


def test_unreadable_notes_of_a_run_are_cleared_so_that_it_can_end(scene: Scene) -> None:
    a_run(scene)
    change(scene, execution, parents_seen='["no", "object"]')
    a_server(scene, "me", expires_in=3600)
    assert found(scene) == {"unreadable-parents": ("execution 1 of load",)}
    assert dict(examine(scene, fix=True).repaired) == {"unreadable-parents": 1}
    assert found(scene) == {}


def test_what_is_about_to_be_woken_does_not_sleep_too_long(scene: Scene) -> None:
    a_sleeper(scene)
    scene.wake("load")
    assert found(scene) == {}


def test_what_passes_between_two_looks_is_no_finding(scene: Scene) -> None:
    an_orphan(scene)
    waits: list[float] = []

    def sweep_meanwhile(seconds: float) -> None:
        waits.append(seconds)
        change(scene, execution, owner="lives")
        a_server(scene, "lives", expires_in=3600)

    assert "orphans" in found(scene)
    assert found(scene, wait=sweep_meanwhile) == {}
    assert waits == [3.0]


def test_a_long_look_tells_how_far_it_has_come(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(definitions, "PAGE", 2)
    monkeypatch.setattr(definitions, "TOLD_EVERY", 4)
    declare(scene, *(f"load-{number}" for number in range(5)))
    told: list[str] = []
    assert found(scene, tell=told.append) == {}
    assert set(told) == {"looked at 4 manifests"}
