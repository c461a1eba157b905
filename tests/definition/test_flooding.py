"""Whoever acts by name queues no more where very much waits; others and other groups go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headway.definition.operating import Operator
from headway.errors import ExecutionNotFound, QueueFull
from tests.builders import Scene
from tests.operations import everything, noted
from tests.runtime_verbs import runtime_of

MOST = 3


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    """Of ``load`` in group ``loads`` as much waits as may, and as much without a manifest."""
    with Scene(database_url, max_queued_per_group=MOST) as scene:
        scene.app.schedule("work", "load", group="loads")
        scene.app.schedule("work", "clean", group="loads")
        scene.app.schedule("work", "report", group="reports")
        scene.apply()
        scene.trigger("load")
        scene.cycle()
        for _ in range(MOST):
            scene.trigger("load")
            runtime_of(scene).enqueue("work")
        yield scene


FLOODS: dict[str, tuple[Callable[[Operator], Any], str]] = {
    "a trigger": (lambda on: on.trigger("load"), "in the group of 'load'"),
    "of another manifest beside it": (lambda on: on.trigger("clean"), "in the group of 'clean'"),
    "of the whole group": (lambda on: on.trigger_group("loads"), "in group 'loads'"),
    "a run once more": (lambda on: on.rerun(1), "in the group of execution 1"),
    "without a manifest": (lambda on: on.enqueue("work"), "without a manifest"),
}


@pytest.mark.parametrize("kind", FLOODS)
def test_what_is_too_much_is_refused_and_leaves_nothing(scene: Scene, kind: str) -> None:
    act, where = FLOODS[kind]
    before = everything(scene)
    told = f"3 entries wait already {where}; come back when fewer do (max_queued_per_group)"
    with pytest.raises(QueueFull) as refused:
        act(Operator("alice", runtime_of(scene)))
    assert str(refused.value) == told
    assert (everything(scene), noted(scene)) == (before, [])


def test_others_are_not_refused(scene: Scene) -> None:
    alice = Operator("alice", runtime_of(scene))
    assert alice.trigger("report") > 0
    assert alice.trigger_group("reports") == 1
    with pytest.raises(ExecutionNotFound):
        alice.rerun(2**70)


def test_what_is_done_together_counts_together(scene: Scene) -> None:
    with pytest.raises(QueueFull), Operator("alice", runtime_of(scene)).together() as alice:
        for _ in range(MOST + 1):
            alice.trigger("report")
    assert len(scene.history.queue.all()) == 2 * MOST


def test_there_is_room_again_once_it_was_dispatched(scene: Scene) -> None:
    alice = Operator("alice", runtime_of(scene))
    scene.dispatch()
    assert alice.trigger("load") > 0


def test_none_is_no_limit_and_the_applications_own_calls_have_none(scene: Scene) -> None:
    assert runtime_of(scene).trigger("load") > 0
    scene.configure(max_queued_per_group=None)
    assert Operator("alice", runtime_of(scene)).trigger("load") > 0
