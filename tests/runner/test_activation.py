"""Dormant dependents: activated by the run of their own parent, all of them or none."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from headway import Group, Item, Run, every
from headway.domain.execution import ExecutionState, Outcome
from headway.domain.work_queue import Source
from headway.errors import (
    DependentBusyError,
    HeadwayError,
    InputError,
    JobCancelled,
    ManifestNotFound,
    NoParentRunError,
    NotDormantError,
    NotYourDependentError,
)
from headway.store import outcomes
from tests.builders import OWNER, Scene

Step = Callable[[Run], None]


def family(scene: Scene, act: Step, when_busy: str = "skip", priority: int = 5) -> list[int]:
    """A parent that acts, three dormant children, and what the children were given."""
    given: list[int] = []

    def parent(run: Run) -> None:
        act(run)

    def child(number: int) -> None:
        given.append(number)

    app = scene.app
    app.workflow(parent)
    app.workflow(child)
    items = [Item(number, number) for number in range(3)]
    chain = app.schedule(parent, "delta", None, every(hours=1), group="delta")
    group = Group("bronze", priority=priority)
    chain.include_many(
        child, "bronze", items, group=group, dormant=True, when_busy=when_busy
    ).include(child, "ordinary", 0, group="bronze")
    app.schedule(parent, "other", enabled=False, group="delta").include(
        child, "foreign", 0, group="bronze", dormant=True
    )
    scene.apply()
    return given


def run_all(scene: Scene) -> None:
    while scene.cycle().queued or scene.history.queue.all():
        pass


def test_a_dormant_dependent_never_runs_by_itself(scene: Scene) -> None:
    given = family(scene, lambda run: None)
    run_all(scene)
    assert given == [0], "only the ordinary dependent ran"


def test_activated_children_run_with_their_runtime_input(scene: Scene) -> None:
    def act(run: Run) -> None:
        assert run.activate_many([("bronze-0", 10), ("bronze-2", 12)]) == 2

    given = family(scene, act)
    run_all(scene)
    assert sorted(given) == [0, 10, 12]
    activated = [one for one in scene.history.executions.all() if one.source == Source.ACTIVATION]
    assert {one.priority for one in activated} == {21}, "group 5 and a boost of 16"


def test_the_boost_never_goes_beyond_the_highest_priority(scene: Scene) -> None:
    def act(run: Run) -> None:
        run.activate("bronze-0", 1)

    family(scene, act, priority=20)
    run_all(scene)
    [activated] = [one for one in scene.history.executions.all() if one.source == Source.ACTIVATION]
    assert activated.priority == 31


REFUSED: dict[str, tuple[str, Any, type[HeadwayError]]] = {
    "unknown": ("nobody", 1, ManifestNotFound),
    "not dormant": ("ordinary", 1, NotDormantError),
    "of another parent": ("foreign", 1, NotYourDependentError),
    "wrong input": ("bronze-1", "many", InputError),
}


@pytest.mark.parametrize(("name", "value", "error"), REFUSED.values(), ids=REFUSED)
def test_one_refused_activation_leaves_no_trace_of_the_others(
    scene: Scene, name: str, value: Any, error: type[HeadwayError]
) -> None:
    caught: list[BaseException] = []

    def act(run: Run) -> None:
        try:
            run.activate_many([("bronze-0", 10), (name, value)])
        except HeadwayError as refused:
            caught.append(refused)

    given = family(scene, act)
    run_all(scene)
    assert [type(one) for one in caught] == [error] and name in str(caught[0])
    assert given == [0]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ([("ordinary", 1)], str(NotDormantError("ordinary", "dependent"))),
        ([("foreign", 1)], str(NotYourDependentError("foreign", "delta"))),
        (
            [("bronze-0", 1), ("bronze-1", 1), ("bronze-0", 2)],
            "'bronze-0' is activated twice in one call; once is enough",
        ),
    ],
)
def test_what_is_refused_is_said_with_the_reason(
    scene: Scene, wanted: list[tuple[str, int]], said: str
) -> None:
    family(scene, lambda run: assert_taken(run.activate_many(wanted)))
    scene.cycle()
    [failure] = [one.failure for one in scene.ended(ExecutionState.FAILED)]
    assert failure is not None and failure.message == said
    assert [one.source for one in scene.history.queue.all()] == []


def test_nothing_to_activate_is_nothing_wrong(scene: Scene) -> None:
    taken: list[int] = []
    family(scene, lambda run: taken.append(run.activate_many([])))
    run_all(scene)
    assert taken == [0]


@pytest.mark.parametrize(
    ("when_busy", "expected"), [("skip", [1, 0, 0]), ("keep", [1, 1, 0]), ("replace", [1, 1, 1])]
)
def test_an_activation_is_told_whether_it_will_run(
    scene: Scene, when_busy: str, expected: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "headway")
    taken: list[int] = []

    def act(run: Run) -> None:
        taken.extend(run.activate("bronze-0", number) for number in range(3))

    family(scene, act, when_busy)
    scene.cycle()
    assert taken == expected
    told = [one.getMessage() for one in caplog.records]
    skipped = ["bronze-0 is busy: this activation is skipped"] * 2
    assert told == (skipped if when_busy == "skip" else [])


def twice(run: Run) -> None:
    assert run.activate("bronze-0", 1) == 1
    run.activate("bronze-0", 2)
    run.activate("bronze-0", 3)


@pytest.mark.parametrize(
    ("when_busy", "expected"), [("skip", [0, 1]), ("keep", [0, 1, 2]), ("replace", [0, 1, 3])]
)
def test_what_becomes_of_activations_of_a_busy_child(
    scene: Scene, when_busy: str, expected: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "headway")
    given = family(scene, twice, when_busy)
    run_all(scene)
    assert sorted(given) == expected
    skipped = [record for record in caplog.records if "is busy" in record.getMessage()]
    assert bool(skipped) is (when_busy == "skip")


def test_a_busy_child_may_reject(scene: Scene) -> None:
    given = family(scene, twice, "reject")
    for _ in range(2):
        scene.cycle()
    [failed] = [one for one in scene.ended(ExecutionState.FAILED) if one.external_id == "delta"][:1]
    assert failed.failure is not None
    assert failed.failure.type.endswith(DependentBusyError.__name__)
    assert 1 in given, "what was queued before stays"


def test_a_run_without_a_manifest_has_no_dependents(scene: Scene) -> None:
    caught: list[BaseException] = []

    def alone(run: Run) -> None:
        try:
            run.activate("bronze-0", 1)
        except NoParentRunError as error:
            caught.append(error)

    scene.app.workflow(alone)
    scene.pending("alone")
    scene.run()
    assert len(caught) == 1


def test_a_parent_that_lost_its_execution_activates_nothing(scene: Scene) -> None:
    caught: list[BaseException] = []

    def act(run: Run) -> None:
        with scene.store.writing() as tx:
            outcomes.fail_stale_in_progress(tx, [run.execution_id])
        try:
            run.activate("bronze-0", 1)
        except JobCancelled as error:
            caught.append(error)

    given = family(scene, act)
    scene.cycle()
    assert len(caught) == 1 and given == []
    assert scene.history.queue.all() == []


def test_a_child_triggered_for_later_is_not_busy(scene: Scene) -> None:
    given = family(scene, lambda run: assert_taken(run.activate("bronze-0", 1)))
    scene.trigger("bronze-0", scheduled_at=scene.clock.now + timedelta(hours=9))
    scene.cycle()
    scene.cycle()
    assert sorted(given) == [0, 1]


def assert_taken(taken: int) -> None:
    assert taken == 1


def test_what_is_held_stays_held_behind_an_activation_that_is_queued(scene: Scene) -> None:
    def act(run: Run) -> None:
        assert [run.activate("bronze-0", number) for number in (1, 2)] == [1, 1]

    given = family(scene, act, "keep")
    scene.cycle()
    scene.trigger("bronze-0", priority=31)
    scene.cycle()
    assert (given, scene.history.executions.all("bronze-0")[0].source) == ([0], Source.TRIGGER)
    run_all(scene)
    assert given == [0, 1, 2]
    assert scene.ended(ExecutionState.FAILED) == []


def test_what_is_held_stays_held_behind_a_run_that_was_handed_back(scene: Scene) -> None:
    given = family(scene, lambda run: assert_taken(run.activate("bronze-0", 1)), "keep")
    scene.trigger("bronze-0")
    scene.dispatch()
    [begun] = scene.claim()
    scene.cycle()
    with scene.store.writing() as tx:
        outcomes.hand_back(tx, OWNER, [begun.id])

    scene.dispatch()
    [again] = scene.claim()

    assert (again.entry_id, again.source) == (begun.entry_id, Source.TRIGGER)
    with scene.store.writing() as tx:
        outcomes.finish(tx, OWNER, {again.id: Outcome(ExecutionState.COMPLETED)})
    run_all(scene)
    assert sorted(given) == [0, 1]
