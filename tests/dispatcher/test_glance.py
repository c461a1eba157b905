"""A short queue is seen in one statement, and what is seen so is what the longer way finds.

Whoever dispatches takes the longer way as soon as others live than before, or there is more than a
few. Only on PostgreSQL: SQLite is no way away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select, text, update

from headway import Group
from headway.config import Settings
from headway.dispatcher import cycle
from headway.dispatcher.cycle import DispatchResult, JobDispatcher
from headway.domain.admission import Verdict
from headway.domain.work_queue import NewEntry, Source
from headway.store import executions, leases
from headway.store.engine import Store
from headway.store.glance import FEW, Glance, glance
from headway.store.servers import living_workers
from headway.store.tables import execution, server
from headway.store.tables import work_queue as entries
from headway.store.transaction import Transaction
from tests.builders import START, Scene
from tests.dispatcher.test_started_at_once import (
    IN_PROGRESS,
    LEASE,
    PENDING,
    Workers,
    alive,
    dispatcher,
    queue,
    states,
)
from tests.dispatcher.world import (
    FAILS,
    FATES,
    GOES,
    HOUR,
    KINDS,
    KNOWN,
    LIMITED,
    QUEUED,
    Limited,
    Queued,
    World,
    leading,
    made_world,
    of_verdict,
    outcome,
    put_in,
    undone,
)
from tests.statements import sent_statements

pytestmark = pytest.mark.postgresql


@pytest.fixture
def scene(postgres_url: str) -> Iterator[Scene]:
    with Scene(postgres_url) as scene:
        yield scene


@pytest.fixture
def glances(monkeypatch: pytest.MonkeyPatch) -> list[Glance | None]:
    """What each glance of a cycle from now on has seen; None where that was not enough."""
    all_seen: list[Glance | None] = []

    def noted(*asked: Any) -> Glance | None:
        all_seen.append(glance(*asked))
        return all_seen[-1]

    monkeypatch.setattr(cycle, "glance", noted)
    return all_seen


def rested(scene: Scene, workers: Workers, cycles: int = 1) -> JobDispatcher:
    """A dispatcher that has just found next to nothing, and glances from now on."""
    made = dispatcher(scene, workers)
    for _ in range(cycles):
        assert made.run_once().dispatched == ()
    return made


def seen_by(
    tx: Transaction, owner: str = "me", per_group: int | None = 100, excluded: Sequence[str] = ()
) -> Glance | None:
    return glance(tx, living_workers(tx), owner, per_group, excluded)


# What the one way and the other make of the same queue


@pytest.fixture
def world(scene: Scene) -> World:
    return made_world(scene)


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_it_is_a_glance_gives_it_the_fate_it_has_anyway(
    world: World, glances: list[Glance | None], kind: str
) -> None:
    workers = Workers(free=4, takes=KNOWN)
    cycles = rested(world.scene, workers)
    [one], [neighbour] = world.queue(kind), world.queue("ad hoc")
    foreseen = world.foresee(workers)

    result = cycles.run_once()

    assert glances[-1] is not None
    found = {run.entry_id for run in world.scene.history.executions.all() if run.failure is None}
    assert (one in found) is (FATES.get(kind, GOES) == GOES)
    assert (one in result.failed) is (FATES.get(kind) == FAILS)
    assert neighbour in found
    assert of_verdict(Verdict.DISPATCH, result.admissions) == foreseen.admitted
    assert list(result.failed) == foreseen.failed
    assert world.left() == foreseen.left


def test_what_goes_after_a_glance_starts_at_once(
    world: World, glances: list[Glance | None]
) -> None:
    workers = Workers(free=4)
    cycles = rested(world.scene, workers)
    ids = world.queue("ad hoc", "in an open group", "in a group with room")

    cycles.run_once()

    assert glances[-1] is not None
    [started] = workers.given
    assert sorted(one.entry_id or 0 for one in started) == ids
    assert {one.owner for one in started} == {"me"}


def test_of_two_entries_of_one_manifest_the_better_goes(
    world: World, glances: list[Glance | None]
) -> None:
    cycles = rested(world.scene, Workers(free=4))
    [worse] = world.queue("in an open group")
    [better] = world.queue("in an open group", priority=5)

    result = cycles.run_once()

    assert glances[-1] is not None
    assert of_verdict(Verdict.DISPATCH, result.admissions) == [better]
    assert [one.id for one in world.left()] == [worse]


def test_the_best_are_first_whatever_group_they_are_in(
    world: World, glances: list[Glance | None]
) -> None:
    cycles = rested(world.scene, Workers(free=4))
    low, [middle] = world.queue("ad hoc", "in an open group"), world.queue("ad hoc", priority=9)
    [high] = world.queue("in another open group")

    result = cycles.run_once()

    assert glances[-1] is not None
    assert of_verdict(Verdict.DISPATCH, result.admissions) == [high, middle, *low]


@pytest.mark.parametrize("limit", [4, 5, 6])
def test_the_global_limit_counts_what_runs_already(
    world: World, glances: list[Glance | None], limit: int
) -> None:
    world.scene.configure(max_active_jobs=limit, exclude_from_max_active_jobs=("internal",))
    cycles = rested(world.scene, Workers(free=4, takes=KNOWN))
    world.queue("ad hoc", "ad hoc", "ad hoc", "outside the limit")

    result = cycles.run_once()

    assert glances[-1] is not None
    assert len(result.dispatched) == limit - 4 + 1, "four hold a slot, and one needs none"


def test_what_rests_is_put_off_until_it_may_run(world: World, glances: list[Glance | None]) -> None:
    cycles = rested(world.scene, Workers(free=4))
    [one] = world.queue("by time, at rest")

    result = cycles.run_once()

    assert glances[-1] is not None
    assert (result.dispatched, result.due_in) == ((), HOUR)
    [row] = world.left()
    assert (row.id, row.delayed, row.scheduled_at) == (one, True, START + HOUR)


def test_a_manifest_that_moved_to_another_group_costs_no_other_its_slot(
    scene: Scene, glances: list[Glance | None]
) -> None:
    """What was queued before stays in the group it was queued in."""
    limits = Settings(max_active_jobs=2)
    scene.app.settings = limits
    alive(scene, slots=4)
    workers = Workers(free=4)
    cycles = rested(scene, workers)
    for group in ("before", "since"):
        scene.new_app().schedule("work", "moved", group=Group(group))
        scene.apply()
        scene.trigger("moved")
    queue(scene, 1)
    with leading(scene) as tx:
        foreseen = outcome(tx, limits, living_workers(tx), workers.free, None)
    assert len(foreseen.dispatched) == 2

    result = cycles.run_once()

    assert None not in glances
    assert entries_of(scene, result) == sorted(foreseen.dispatched)


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(limited=LIMITED, mixture=st.lists(QUEUED, min_size=3, max_size=FEW))
def test_of_any_short_queue_the_same_goes_and_fails_and_stays(
    world: World, limited: Limited, mixture: list[Queued]
) -> None:
    limits = Settings(max_active_jobs=limited.active, exclude_from_max_active_jobs=limited.excluded)
    with leading(world.scene) as tx, undone(tx):
        put_in(tx, world, limited, mixture)
        workers = replace(living_workers(tx), slots=limited.slots)

        seen = glance(tx, workers, "me", limits.max_queued_jobs_per_cycle, limited.excluded)

        assert seen is not None
        assert seen.active == executions.count_active(tx, limited.excluded)
        assert outcome(tx, limits, workers, limited.free, seen) == outcome(
            tx, limits, workers, limited.free, None
        )


def test_in_a_capped_group_all_that_can_never_run_fails_in_the_end_either_way(
    world: World,
) -> None:
    """A glance sees all of it, and the longer way no more at once than there is room for."""
    _, full = world.ids["full"]
    bad = world.queue(*["with too much input"] * 3, group_id=full)
    with leading(world.scene) as tx:
        workers, limits = living_workers(tx), world.scene.app.settings
        at_once = outcome(tx, limits, workers, 4, seen_by(tx))
        assert at_once.failed == bad
    failed: list[int] = []
    for _ in bad:
        failed += dispatcher(world.scene, Workers(free=4)).run_once().failed
    assert sorted(failed) == bad


# When it takes the longer way


def test_who_comes_is_dispatched_for(scene: Scene, glances: list[Glance | None]) -> None:
    alive(scene, slots=4)
    cycles = rested(scene, Workers())
    alive(scene, "other", roles=["worker"], workflows=["other"])
    [one] = scene.enqueue(NewEntry("other", Source.AD_HOC, "null"))

    result = cycles.run_once()

    assert glances == [None]
    assert entries_of(scene, result) == [one]


def test_what_only_one_knew_who_is_gone_stays_queued(
    scene: Scene, glances: list[Glance | None]
) -> None:
    alive(scene, slots=4)
    alive(scene, "other", roles=["worker"], workflows=["other"])
    cycles = rested(scene, Workers())
    with scene.store.writing() as tx:
        leases.leave(tx, "other")
    lost, known = scene.enqueue(
        NewEntry("other", Source.AD_HOC, "null"), NewEntry("work", Source.AD_HOC, "null")
    )

    result = cycles.run_once()

    assert glances == [None]
    assert entries_of(scene, result) == [known]
    assert [one.id for one in scene.history.queue.all()] == [lost]


def test_who_has_not_renewed_its_lease_is_gone(scene: Scene, glances: list[Glance | None]) -> None:
    alive(scene, slots=4)
    alive(scene, "other", roles=["worker"], workflows=["other"])
    cycles = rested(scene, Workers())
    for _ in range(2):
        scene.clock.advance(seconds=10)
        with scene.store.writing() as tx:
            assert leases.renew(tx, "me", LEASE)
    scene.enqueue(NewEntry("other", Source.AD_HOC, "null"))

    assert cycles.run_once().dispatched == ()
    assert glances == [None]


def test_once_it_is_known_who_lives_one_glance_is_enough_again(
    scene: Scene, glances: list[Glance | None]
) -> None:
    alive(scene, slots=4)
    cycles = rested(scene, Workers())
    alive(scene, "other")
    cycles.run_once()
    ids = queue(scene, 1)

    result = cycles.run_once()

    assert [one is None for one in glances] == [True, False]
    assert entries_of(scene, result) == ids


@pytest.mark.parametrize("more", [0, 1])
def test_more_than_a_few_take_a_closer_look(
    scene: Scene, glances: list[Glance | None], more: int
) -> None:
    scene.configure(max_active_jobs=None)
    alive(scene, slots=2 * FEW)
    cycles = rested(scene, Workers(free=2 * FEW))
    ids = queue(scene, FEW + more)

    result = cycles.run_once()

    assert [one is None for one in glances] == [more > 0]
    assert entries_of(scene, result) == ids


def test_after_a_full_page_nobody_glances(scene: Scene, glances: list[Glance | None]) -> None:
    alive(scene, slots=2)
    cycles = rested(scene, Workers(free=2))
    queue(scene, 3 * FEW)
    cycles.run_once()
    assert glances == [None]

    cycles.run_once()

    assert glances == [None]


def test_what_is_delayed_takes_a_closer_look_once_it_is_due(
    scene: Scene, glances: list[Glance | None]
) -> None:
    alive(scene, slots=4)
    cycles = rested(scene, Workers())
    soon = scene.clock.now + timedelta(seconds=5)
    [one] = scene.enqueue(NewEntry("work", Source.AD_HOC, "null", scheduled_at=soon))
    before = cycles.run_once()
    assert (before.dispatched, before.due_in) == ((), timedelta(seconds=5))
    scene.clock.advance(seconds=5)

    result = cycles.run_once()

    assert [seen is None for seen in glances] == [False, True]
    assert entries_of(scene, result) == [one]


@pytest.mark.parametrize("of_one", [3, 4])
def test_more_of_one_group_than_a_cycle_takes_take_a_closer_look(
    scene: Scene, glances: list[Glance | None], of_one: int
) -> None:
    scene.configure(max_active_jobs=None, max_queued_jobs_per_cycle=3)
    alive(scene, slots=20)
    scene.app.schedule("work", "one", group=Group("crowded", priority=9))
    scene.apply()
    _, group_id = scene.ids_of("one")
    cycles = rested(scene, Workers(free=20))
    crowd = scene.enqueue(*[NewEntry("work", Source.AD_HOC, "null", group_id=group_id)] * of_one)
    others = queue(scene, 3)

    result = cycles.run_once()

    assert [one is None for one in glances] == [of_one > 3]
    assert entries_of(scene, result) == sorted([*crowd[:3], *others])
    assert [one.id for one in scene.history.queue.all()] == crowd[3:]


def entries_of(scene: Scene, result: DispatchResult) -> list[int]:
    """The entries that were dispatched, by id."""
    return sorted(scene.execution(one).entry_id or 0 for one in result.dispatched)


# The lease


@pytest.mark.parametrize("virtual_time", [True, False])
def test_the_lease_is_held_from_the_glance_on(postgres_url: str, virtual_time: bool) -> None:
    with Scene(postgres_url, virtual_time=virtual_time) as scene:
        alive(scene)
        queue(scene, 1)
        other = Store(postgres_url)
        free = select(server.c.id).where(server.c.id == "me").with_for_update(skip_locked=True)
        with leading(scene) as tx:
            with other.writing() as beside:
                assert beside.connection.execute(free).scalars().all() == ["me"]
            seen = seen_by(tx)
            assert seen is not None
            assert seen.holder == "me"
            with other.writing() as beside:
                assert beside.connection.execute(free).scalars().all() == []
        other.close()


def test_nobody_holds_a_lease_while_nothing_is_queued(scene: Scene) -> None:
    alive(scene)
    scene.enqueue(NewEntry("work", Source.AD_HOC, "null", scheduled_at=START + HOUR))
    with leading(scene) as tx:
        seen = seen_by(tx)
    assert seen is not None
    assert (seen.entries, seen.queued, seen.holder, seen.next_at) == ([], False, None, START + HOUR)


def test_nothing_starts_at_once_while_something_waits_to_be_claimed(
    scene: Scene, glances: list[Glance | None]
) -> None:
    alive(scene, slots=4)
    workers = Workers()
    cycles = rested(scene, workers)
    scene.pending("work")
    queue(scene, 1)

    cycles.run_once()

    [seen] = glances
    assert seen is not None
    assert (seen.queued, seen.holder) == (True, None)
    assert (workers.reserved, states(scene)) == (0, [PENDING, PENDING])


def test_what_waits_for_another_task_server_keeps_nobody_from_starting(
    scene: Scene, glances: list[Glance | None]
) -> None:
    alive(scene, slots=4)
    workers = Workers()
    cycles = rested(scene, workers)
    sent = scene.pending("work")
    with scene.store.writing() as tx:
        elsewhere = update(execution).where(execution.c.id == sent).values(task_server="celery")
        tx.connection.execute(elsewhere)
    queue(scene, 1)

    cycles.run_once()

    [seen] = glances
    assert seen is not None
    assert seen.holder == "me"
    assert sorted(states(scene)) == [IN_PROGRESS, PENDING]


@pytest.mark.parametrize("lost", ["no lease", "an expired lease"])
def test_without_a_living_lease_nothing_starts_after_a_glance(
    scene: Scene, glances: list[Glance | None], lost: str
) -> None:
    if lost == "an expired lease":
        alive(scene)
        scene.clock.advance(seconds=15)
    alive(scene, "other")
    workers = Workers()
    cycles = rested(scene, workers)
    queue(scene, 1)

    cycles.run_once()

    [seen] = glances
    assert seen is not None
    assert (seen.queued, seen.holder) == (True, None)
    assert (workers.reserved, workers.given, states(scene)) == (0, [], [PENDING])


@pytest.mark.parametrize("count", [0, 1])
def test_a_glance_at_an_empty_queue_writes_nothing(scene: Scene, count: int) -> None:
    alive(scene)
    queue(scene, count)
    written = text("SELECT pg_current_xact_id_if_assigned() IS NOT NULL")
    with leading(scene) as tx:
        assert seen_by(tx) is not None
        assert tx.connection.execute(written).scalar_one() is (count > 0), "a lock is written"


# What the database refuses


@pytest.mark.parametrize("limited", ["in all", "in its group"])
def test_the_slot_of_one_that_is_refused_goes_to_the_next_and_to_no_other(
    scene: Scene, glances: list[Glance | None], limited: str
) -> None:
    cap = 2 if limited == "in its group" else None
    scene.configure(max_active_jobs=None if cap else 2)
    alive(scene, slots=8)
    scene.app.schedule("work", "one", group=Group("etl", max_active_jobs=cap))
    scene.apply()
    _, group_id = scene.ids_of("one")
    cycles = rested(scene, Workers(free=8))
    bad, *good = scene.enqueue(*[NewEntry("work", Source.AD_HOC, "null", group_id=group_id)] * 4)
    with scene.store.writing() as tx:
        broken = update(entries).where(entries.c.id == bad).values(attempts=2**31 - 1)
        tx.connection.execute(broken)

    result = cycles.run_once()

    assert glances and None not in glances
    assert result.failed == (bad,)
    assert entries_of(scene, result) == good[:2]
    with scene.store.reading() as tx:
        counted = tx.connection.execute(select(func.count()).select_from(execution)).scalar_one()
    assert counted == 2
    assert [one.id for one in scene.history.queue.all()] == good[2:]


# How often it goes to the database


def test_at_rest_one_job_takes_the_lock_a_glance_and_the_fold(scene: Scene) -> None:
    alive(scene, slots=4)
    workers = Workers()
    cycles = rested(scene, workers, cycles=2)
    queue(scene, 1)

    with sent_statements() as sent:
        result = cycles.run_once()

    assert (len(result.dispatched), [len(one) for one in workers.given]) == (1, [1])
    lock, look, fold = (statement for _, statement in sent)
    assert "advisory" in lock
    assert "few AS MATERIALIZED" in look
    assert "INSERT INTO headway_execution" in fold


def test_at_rest_with_nothing_to_do_the_glance_is_all(scene: Scene) -> None:
    alive(scene)
    cycles = rested(scene, Workers(), cycles=2)

    with sent_statements() as sent:
        cycles.run_once()

    assert len(sent) == 2


def test_the_first_cycle_has_to_ask_more(scene: Scene, glances: list[Glance | None]) -> None:
    alive(scene, slots=4)
    queue(scene, 1)

    with sent_statements() as sent:
        dispatcher(scene, Workers()).run_once()

    assert glances == []
    assert len(sent) > 3
