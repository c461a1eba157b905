"""Outcomes on their way into the database: what is told of them, and to whom."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from headway import RetryPolicy
from headway.domain.execution import Ended, Execution, ExecutionState, Failure, Outcome
from headway.observe import Observer
from headway.runner.recording import Recording
from tests.builders import OWNER, START, Scene

COMPLETED = Outcome(ExecutionState.COMPLETED)
FAILED = Outcome(ExecutionState.FAILED, Failure("load", "ValueError", "no rows"))


def started(scene: Scene, count: int, **fields: Any) -> list[int]:
    ids = [scene.pending("work", **fields) for _ in range(count)]
    scene.claim()
    return ids


def test_every_end_of_ours_is_told(scene: Scene) -> None:
    told: list[Sequence[Ended | Execution]] = []
    completed, failed = started(scene, 2)
    scene.clock.advance(seconds=3)
    record = Recording(scene.store, OWNER, scene.app.observer, on_recorded=told.append)

    assert record({completed: COMPLETED, failed: FAILED, 999: COMPLETED}) == {completed, failed}

    ends = {key: scene.execution(key).told() for key in (completed, failed)}
    named = [(one.name, one.fields) for one in scene.events.events]
    assert sorted(named, key=lambda one: one[0]) == [
        ("execution.completed", ends[completed]),
        ("execution.failed", ends[failed]),
    ]
    assert [sorted(one.id for one in ended) for ended in told] == [[completed, failed]]


def test_where_nobody_watches_the_ends_are_recorded_and_passed_on_all_the_same(
    scene: Scene,
) -> None:
    told: list[Sequence[Ended | Execution]] = []
    completed, failed = started(scene, 2)
    record = Recording(scene.store, OWNER, Observer(), on_recorded=told.append)

    assert record({completed: COMPLETED, failed: FAILED}) == {completed, failed}

    assert [sorted(one.id for one in ended) for ended in told] == [[completed, failed]]
    states = [scene.execution(key).state for key in (completed, failed)]
    assert states == [ExecutionState.COMPLETED, ExecutionState.FAILED]


def test_what_is_not_ours_is_not_recorded(scene: Scene) -> None:
    [execution_id] = started(scene, 1)
    told: list[Sequence[Ended | Execution]] = []
    record = Recording(scene.store, "another", scene.app.observer, on_recorded=told.append)
    assert record({execution_id: COMPLETED}) == set()
    assert scene.execution(execution_id).state is ExecutionState.IN_PROGRESS
    assert (scene.events.events, told) == ([], [[]])


def test_what_failed_waits_as_its_policy_says(scene: Scene) -> None:
    [execution_id] = started(scene, 1, max_attempts=2)
    policy = RetryPolicy(delay=timedelta(hours=3), max_delay=timedelta(hours=9))
    Recording(scene.store, OWNER, scene.app.observer, policy)({execution_id: FAILED})
    [entry] = scene.history.queue.all()
    assert entry.scheduled_at == START + timedelta(hours=3)
