"""A due manifest that the next cycle does not queue: its wake-up time, its group's share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from sqlalchemy import delete, update

from headway import Group, every
from headway.domain.gates import GateName, Stage
from headway.store.tables import manifest_state, wake
from tests.builders import Scene
from tests.runtime_verbs import runtime_of
from tests.why.test_gates import ask, the_gate


def declare(scene: Scene, *names: str, group: str = "etl", priority: int = 0) -> None:
    for name in names:
        scene.app.schedule(
            "work", name, None, every(hours=1), group=Group(group, priority=priority)
        )


def look_again_at(scene: Scene, moment: datetime | None) -> None:
    """The manager has looked, and looks again only then."""
    with scene.store.writing() as tx:
        tx.connection.execute(delete(wake))
        tx.connection.execute(update(manifest_state).values(wake_at=moment))


def queued(scene: Scene) -> set[str | None]:
    scene.manage()
    return {one.external_id for one in scene.history.queue.all()}


def test_a_due_manifest_that_is_looked_at_later_says_when(scene: Scene) -> None:
    declare(scene, "load")
    scene.apply()
    later = scene.clock() + timedelta(minutes=40)
    look_again_at(scene, later)

    answer = ask(scene, "load")

    assert str(answer) == (
        "load does not run because the manager looks at it again at 2030-01-07 12:40:00 UTC; "
        "it can then"
    )
    assert the_gate(answer, GateName.WAKE_UP).at == later
    assert not answer.passes(Stage.QUEUE)
    assert queued(scene) == set()
    scene.clock.advance(minutes=40)
    assert ask(scene, "load").passes(Stage.QUEUE)
    assert queued(scene) == {"load"}


def test_one_without_a_wake_up_time_waits_for_the_sweep(scene: Scene) -> None:
    declare(scene, "load")
    scene.apply()
    look_again_at(scene, None)
    assert str(ask(scene, "load")) == (
        "load does not run because the manager has no time at which it looks at it again; "
        "it can when the manager's sweep comes to it"
    )
    assert queued(scene) == set()


def by_itself(scene: Scene) -> None:
    scene.wake("load")


def with_its_group(scene: Scene) -> None:
    runtime_of(scene).set_group("etl", enabled=False)
    runtime_of(scene).set_group("etl", enabled=True)


@pytest.mark.parametrize("wake_it", [by_itself, with_its_group])
def test_a_wake_up_in_the_inbox_counts(scene: Scene, wake_it: Callable[[Scene], None]) -> None:
    declare(scene, "load")
    scene.apply()
    look_again_at(scene, scene.clock() + timedelta(minutes=40))
    wake_it(scene)
    assert str(ask(scene, "load")) == "load is due: the next cycle of the manager queues it"
    assert queued(scene) == {"load"}


def test_a_dependent_is_woken_by_the_success_of_its_parent(scene: Scene) -> None:
    root = scene.app.schedule("work", "load", None, every(hours=1), group="etl")
    root.then_include("work", "report", None, group="etl")
    scene.apply()
    scene.cycle()
    assert str(ask(scene, "report")) == "report is due: the next cycle of the manager queues it"


def test_a_group_that_had_its_share_says_how_large_it_is(scene: Scene) -> None:
    scene.configure(max_work_queue_entries_per_cycle=4)
    declare(scene, *(f"load-{n}" for n in range(5)))
    declare(scene, "other-0", "other-1", group="other")
    scene.apply()
    said = {name: ask(scene, name) for name in ("load-0", "load-1", "load-2", "other-1")}

    assert str(said["load-2"]) == (
        "load-2 does not run because its group 'etl' had its share of 2 in this cycle "
        "(5 of it are due); it can in a later cycle"
    )
    assert [one.passes(Stage.QUEUE) for one in said.values()] == [True, True, False, True]
    [share] = [gate for gate in said["load-0"].gates if gate.name is GateName.SHARE]
    assert share.passed
    assert queued(scene) == {"load-0", "load-1", "other-0", "other-1"}


def test_where_groups_take_turns_that_is_said(scene: Scene) -> None:
    scene.configure(max_work_queue_entries_per_cycle=2)
    for name in ("a", "b", "c"):
        declare(scene, name, group=name)
    scene.apply()
    assert str(ask(scene, "a")) == (
        "a does not run because 3 groups have due manifests, and a cycle queues 2, in turn; "
        "it can when it is the turn of its group 'a'"
    )


def test_a_cycle_with_room_for_all_asks_for_no_share(scene: Scene) -> None:
    declare(scene, "load")
    scene.apply()
    names = [gate.name for gate in ask(scene, "load").gates]
    assert GateName.WAKE_UP in names and GateName.SHARE not in names
