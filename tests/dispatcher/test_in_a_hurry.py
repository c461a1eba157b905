"""What a cycle that has dispatched something leaves to the next, and when that is to follow."""

from __future__ import annotations

from datetime import timedelta

from headway import Group, every
from headway.dispatcher.cycle import JobDispatcher
from headway.domain.work_queue import NewEntry, Source
from headway.servers.local import LocalServer
from headway.store.dispatch_page import BEYOND
from headway.store.tables import manifest_group
from tests.builders import Scene
from tests.dispatcher import test_started_at_once as started_at_once
from tests.dispatcher.test_started_at_once import Workers, alive


def dispatcher(scene: Scene) -> JobDispatcher:
    return JobDispatcher(
        scene.store, scene.app.settings, scene.app.observer, LocalServer(lambda: None)
    )


def shut_at(scene: Scene) -> object:
    with scene.store.reading() as tx:
        return tx.connection.execute(manifest_group.select()).one().last_shut_at


def full_group(scene: Scene) -> None:
    """A group whose one slot is taken while two of it wait."""
    for number in range(3):
        group = Group("etl", max_active_jobs=1)
        scene.app.schedule("work", f"load-{number}", None, every(hours=1), group=group)
    scene.apply()
    scene.manage()


def test_a_full_page_of_which_nothing_can_go_is_not_looked_at_again_at_once(scene: Scene) -> None:
    """It would be the same page, as fast as the database answers, until one of the runs ends."""
    scene.configure(max_active_jobs=None)
    full = [f"full-{number}" for number in range(2 * BEYOND)]
    for name in full:
        scene.app.schedule("work", name, group=Group(name, max_active_jobs=1))
    scene.apply()
    groups = [scene.ids_of(name)[1] for name in full]
    one_of_each = [NewEntry("work", Source.AD_HOC, "null", group_id=one) for one in groups]
    scene.enqueue(*one_of_each)
    assert len(dispatcher(scene).run_once().dispatched) == len(full)
    scene.enqueue(*one_of_each)
    alive(scene, slots=2 * len(full))

    result = started_at_once.dispatcher(scene, Workers(free=2)).run_once()

    assert (result.loaded, result.dispatched, result.more) == (2 + BEYOND, (), False)


def test_the_moment_of_the_next_delayed_entry_is_told_by_every_cycle(scene: Scene) -> None:
    now = NewEntry("work", Source.AD_HOC, "null")
    later = NewEntry("work", Source.AD_HOC, "null", scheduled_at=scene.clock.now + timedelta(1))
    scene.enqueue(now, later)
    cycles = dispatcher(scene)

    first, second = cycles.run_once(), cycles.run_once()

    assert (len(first.dispatched), first.due_in) == (1, timedelta(days=1))
    assert (second.dispatched, second.due_in) == ((), timedelta(days=1))


def test_a_group_that_is_full_is_noted_by_the_first_and_by_every_idle_cycle(scene: Scene) -> None:
    full_group(scene)
    cycles = dispatcher(scene)
    assert len(cycles.run_once().dispatched) == 1
    first = shut_at(scene)
    assert first == scene.clock.now

    scene.clock.advance(seconds=scene.app.settings.starvation_after.total_seconds() / 10)
    assert cycles.run_once().dispatched == ()

    assert shut_at(scene) == scene.clock.now


def test_an_idle_cycle_notes_a_full_group_however_lately_others_were_noted(scene: Scene) -> None:
    cycles = dispatcher(scene)
    assert cycles.run_once().dispatched == ()
    full_group(scene)
    scene.clock.advance(seconds=1)
    assert len(cycles.run_once().dispatched) == 1
    assert shut_at(scene) is None, "what was dispatched is told first"
    scene.clock.advance(seconds=1)
    assert cycles.run_once().dispatched == ()

    assert shut_at(scene) == scene.clock.now


def test_cycles_that_all_dispatch_something_note_it_as_often_as_is_asked_for(scene: Scene) -> None:
    full_group(scene)
    cycles = dispatcher(scene)
    cycles.run_once()
    tenth = scene.app.settings.starvation_after.total_seconds() / 10
    moments = []
    for _ in range(3):
        scene.clock.advance(seconds=tenth * 0.4)
        scene.enqueue(NewEntry("work", Source.AD_HOC, "null"))
        assert len(cycles.run_once().dispatched) == 1
        moments.append(shut_at(scene))

    assert moments[0] == moments[1] != moments[2] == scene.clock.now
