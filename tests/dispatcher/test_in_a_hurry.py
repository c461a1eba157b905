"""What a cycle that has dispatched something leaves to the next, and when that is to follow."""

from __future__ import annotations

from datetime import timedelta

from headway import Group, every
from headway.dispatcher.cycle import JobDispatcher
from headway.domain.work_queue import NewEntry, Source
from headway.servers.local import LocalServer
from headway.store.tables import manifest_group
from tests.builders import Scene


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
