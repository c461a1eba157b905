"""Stories of servers that are dead, were taken for dead, or come back from the dead."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.exc import IntegrityError

from headway import every
from headway.definition.runtime import Runtime
from headway.domain.execution import Execution, ExecutionState
from headway.domain.work_queue import NewEntry, Source
from headway.lease import BEATS_PER_LEASE, new_id
from headway.store import executions, outcomes, work_queue
from headway.store.engine import Store
from headway.store.tables import execution
from tests.builders import OWNER, Scene, names, reasons
from tests.store.factories import everything
from tests.stories.servers import COMPLETED, Server

CROWD = 10_000
QUICK = timedelta(seconds=6)


def declare(scene: Scene, *external_ids: str, **options: Any) -> None:
    for external_id in external_ids:
        scene.app.schedule("work", external_id, None, every(hours=1), group="loads", **options)
    scene.apply()
    scene.manage()


def claim_for(scene: Scene, owner: str, limit: int) -> list[Execution]:
    """Start what is pending in the name of a server, whether or not it has a row."""
    with scene.store.writing() as tx:
        return executions.claim_pending(tx, owner, limit, ["work"])


@pytest.mark.story(1)
def test_a_zombie_that_wakes_after_three_leases_frees_no_slot_a_second_time(scene: Scene) -> None:
    scene.configure(max_active_jobs=1)
    declare(scene, "first", "second", "third")
    zombie, survivor = Server(scene, "zombie"), Server(scene, "survivor")
    scene.dispatch()
    [taken] = zombie.claim()
    assert scene.dispatch().dispatched == ()

    survivor.live_through(3)
    assert survivor.sweep().ended == 1
    assert len(scene.dispatch().dispatched) == 1, "the slot is free, once"
    [again] = survivor.claim()
    assert again.entry_id == taken.entry_id

    assert not zombie.renew()
    assert zombie.finish(taken) == set()
    assert zombie.finish(again) == set()
    assert survivor.sweep().ended == 0
    assert scene.dispatch().dispatched == (), "the only slot is the survivor's"
    assert survivor.finish(again) == {again.id}
    assert len(scene.dispatch().dispatched) == 1
    assert names(scene.ended(ExecutionState.COMPLETED)) == ["first"]


@pytest.mark.story(5)
def test_a_reaper_that_is_slow_between_reading_and_writing_leaves_what_has_ended(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Scene(postgres_url) as scene:
        declare(scene, "load")
        scene.dispatch()
        [one] = scene.claim()
        scene.clock.now += scene.app.settings.default_job_timeout + timedelta(seconds=1)
        assert scene.manage().cancelled == 1  # else the reaper's own flag would hold the row
        scene.clock.advance(hours=24)
        reap, elsewhere = outcomes.fail_stale_in_progress, Store(postgres_url, clock=scene.clock)
        reaped: list[list[Execution]] = []

        def reap_too_late(tx: Any, execution_ids: Any, backoff: Any) -> list[Execution]:
            assert list(execution_ids) == [one.id], "it was stale when it was read"
            with elsewhere.writing() as other:
                assert outcomes.finish(other, OWNER, {one.id: COMPLETED})
            reaped.append(reap(tx, execution_ids, backoff))
            return reaped[-1]

        monkeypatch.setattr(outcomes, "fail_stale_in_progress", reap_too_late)
        scene.manage()
        elsewhere.close()

        assert reaped == [[]]
        assert scene.execution(one.id).state is ExecutionState.COMPLETED
        assert scene.ended(ExecutionState.FAILED) == []


@pytest.mark.story(8)
def test_one_orphan_among_ten_thousand_healthy_runs_is_found_in_one_sweep(scene: Scene) -> None:
    healthy = Server(scene, "healthy")
    with scene.store.writing() as tx:
        entries = [NewEntry("work", Source.AD_HOC, "null") for _ in range(CROWD + 1)]
        work_queue.dispatch(tx, work_queue.enqueue(tx, entries))
    assert len(healthy.claim(CROWD)) == CROWD
    [orphan] = claim_for(scene, "gone", 2)

    assert healthy.sweep().ended == 1

    [lost] = scene.ended(ExecutionState.FAILED)
    assert (lost.id, lost.lost) == (orphan.id, True)


@pytest.mark.story(9)
def test_a_run_of_ten_minutes_whose_owner_beats_is_nobodys_business(scene: Scene) -> None:
    declare(scene, "load")
    worker, other = Server(scene, "worker", QUICK), Server(scene, "other", QUICK)
    scene.dispatch()
    [long] = worker.claim()
    began = scene.clock.now
    while scene.clock.now < began + timedelta(minutes=10):
        for _ in range(BEATS_PER_LEASE):
            scene.clock.advance(seconds=(QUICK / BEATS_PER_LEASE).total_seconds())
            assert worker.renew() and other.renew()
        swept = other.sweep()
        assert (swept.buried, swept.ended) == (0, 0)

    assert worker.finish(long) == {long.id}
    assert [one.crashes for one in scene.history.executions.all()] == [0]


@pytest.mark.story(10)
def test_a_process_with_the_host_and_pid_of_a_dead_one_is_another_server(scene: Scene) -> None:
    declare(scene, "load")
    scene.dispatch()
    before = Server(scene, new_id())
    [taken] = before.claim()

    after = Server(scene, new_id())  # as this very process would after a restart

    assert after.id != before.id
    assert after.id.rpartition("-")[0] == before.id.rpartition("-")[0], "the same host and pid"
    assert after.finish(taken) == set(), "what the dead one ran is not its own"
    after.live_through()
    assert after.sweep().ended == 1
    scene.dispatch()
    assert [one.entry_id for one in after.claim()] == [taken.entry_id]


@pytest.mark.story(12)
def test_recovery_takes_no_slot_and_no_entry_of_the_queue(scene: Scene) -> None:
    """The dead hold every slot there is, and more waits behind them."""
    scene.configure(max_active_jobs=2)
    declare(scene, "first", "second", "third")
    dead, survivor = Server(scene, "dead"), Server(scene, "survivor")
    scene.dispatch()
    assert len(dead.claim()) == 2
    survivor.live_through()
    assert scene.dispatch().dispatched == ()
    waiting = len(scene.history.queue.all())

    assert survivor.sweep().ended == 2

    assert len(scene.history.queue.all()) == waiting + 2
    assert len(scene.dispatch().dispatched) == 2


@pytest.mark.story(23)
@pytest.mark.parametrize("by", ["exception", "crash"])
def test_a_dead_letter_is_the_same_to_dependents_however_it_came(scene: Scene, by: str) -> None:
    chain = scene.app.schedule("work", "parent", None, every(hours=1), max_retries=1)
    chain.then_include("work", "child", None)
    scene.apply()
    survivor = Server(scene, "survivor")
    scene.manage()
    scene.dispatch()
    if by == "crash":
        claim_for(scene, "dead", 1)
        assert survivor.sweep(max_crashes=1).dead_lettered == 1
    else:
        scene.failing.add("parent")
        scene.run()
        scene.failing.clear()
        scene.manage()

    scene.wake("child")
    assert reasons(scene.manage())["child"] == "waits for the first success of 'parent'"
    [letter] = scene.history.dead_letters.awaiting()
    assert (letter.external_id, letter.failures) == ("parent", 1)
    Runtime("tests", scene.app.registry, scene.store).dead_letters.requeue(letter.id)
    scene.cycle()
    scene.cycle()
    completed = scene.ended(ExecutionState.COMPLETED)
    assert names(completed) == ["parent", "child"]


@pytest.mark.story(35)
def test_the_late_success_of_a_zombie_changes_no_row_and_wakes_no_dependent(scene: Scene) -> None:
    chain = scene.app.schedule("work", "parent", None, every(hours=1))
    chain.then_include("work", "child", None)
    scene.apply()
    survivor = Server(scene, "survivor")
    scene.manage()
    scene.dispatch()
    [taken] = claim_for(scene, "zombie", 1)
    assert survivor.sweep().ended == 1
    scene.manage()
    before, told = everything(scene.store), len(scene.events.events)

    with scene.store.writing() as tx:
        assert outcomes.finish(tx, "zombie", {taken.id: COMPLETED}) == []

    assert everything(scene.store) == before
    assert scene.events.events[told:] == []


@pytest.mark.story(36)
def test_a_run_always_names_its_owner(scene: Scene) -> None:
    scene.pending("work")
    [running] = scene.claim()
    nameless = update(execution).where(execution.c.id == running.id).values(owner=None)

    with pytest.raises(IntegrityError), scene.store.writing() as tx:
        tx.connection.execute(nameless)


@pytest.mark.story(36)
def test_a_run_whose_owner_was_killed_before_its_first_beat_is_found(scene: Scene) -> None:
    """There never was a row of it, or one without any renewal."""
    declare(scene, "first", "second")
    scene.dispatch()
    newborn, survivor = Server(scene, "newborn"), Server(scene, "survivor")
    [first] = newborn.claim(1)
    [second] = claim_for(scene, "unborn", 1)

    survivor.live_through()
    assert survivor.sweep().ended == 2

    assert {one.id for one in scene.ended(ExecutionState.FAILED)} == {first.id, second.id}
