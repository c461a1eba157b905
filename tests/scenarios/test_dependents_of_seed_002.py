"""Seed 002's sentences about chains, fan-out, batches and fan-in, driven end to end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from headway import Group, Headway, Item, RetryPolicy, every
from headway.applying import apply_declarations
from headway.domain.execution import Execution, ExecutionState, Outcome
from headway.store import outcomes
from tests.builders import OWNER, START, Scene, names, reasons

DAILY = every(days=1)


def done(scene: Scene) -> list[str | None]:
    """What has succeeded so far, in order."""
    return names(scene.ended(ExecutionState.COMPLETED))


def chain(scene: Scene, *external_ids: str, **options: object) -> None:
    """Manifests each after the one before."""
    first, *rest = external_ids
    links = scene.app.schedule("work", first, None, DAILY, group="etl")
    for one in rest:
        links = links.then_include("work", one, group="etl", **options)  # type: ignore[arg-type]
    scene.apply()


def fan_in(scene: Scene, join: str, *parents: str) -> None:
    for one in parents:
        scene.app.schedule("work", one)
    scene.app.schedule("work", "nobody").include_many(
        "work", "load", [Item("all", depends_on=parents, join=join)]
    )
    scene.apply()


def runs(scene: Scene, *external_ids: str) -> None:
    """These run because somebody asked for it; what follows from it is not looked at."""
    for one in external_ids:
        scene.trigger(one)
    scene.dispatch()
    scene.run()


def succeed(scene: Scene, running: Execution) -> None:
    with scene.store.writing() as tx:
        outcomes.finish(tx, OWNER, {running.id: Outcome(ExecutionState.COMPLETED)})


# Chains


def test_after_a_succeeds_only_b_is_queued(scene: Scene) -> None:
    chain(scene, "A", "B", "C")
    scene.cycle()
    assert reasons(scene.manage()) | {"A": ""} == {"A": "", "B": "new success of 'A'"}
    assert names(scene.history.queue.all()) == ["B"]
    scene.dispatch()
    scene.run()
    scene.cycle()
    assert done(scene) == ["A", "B", "C"]
    scene.cycle()
    assert done(scene) == ["A", "B", "C"], "each link once for each success before it"


def test_if_extract_fails_neither_downstream_workflow_fires(scene: Scene) -> None:
    scene.failing = {"extract"}
    chain(scene, "extract", "transform", "load")
    for _ in range(4):
        scene.cycle()
        scene.clock.advance(hours=2)
    assert {one.external_id for one in scene.history.executions.all()} == {"extract"}


def test_a_dead_lettered_b_leaves_c_idle(scene: Scene) -> None:
    scene.failing = {"B"}
    chain(scene, "A", "B", "C", max_retries=1)
    for _ in range(3):
        scene.cycle()
        scene.clock.advance(days=1)
    assert [one.external_id for one in scene.history.dead_letters.awaiting()] == ["B"]
    scene.wake("C")
    assert reasons(scene.manage())["C"] == "waits for the first success of 'B'"
    assert "C" not in names(scene.history.executions.all())


# Fan-out and batches


def test_if_transform_fails_validate_is_unaffected(scene: Scene) -> None:
    scene.failing = {"transform"}
    (
        scene.app.schedule("work", "extract", None, DAILY)
        .include("work", "transform")
        .include("work", "validate")
    )
    scene.apply()
    scene.cycle()
    scene.cycle()
    assert done(scene) == ["extract", "validate"]
    assert names(scene.ended(ExecutionState.FAILED)) == ["transform"]


def test_when_extract_42_succeeds_only_load_42_gets_queued(scene: Scene) -> None:
    hundred = range(100)
    extracts = [Item(number) for number in hundred]
    loads = [Item(number, depends_on=f"extract-{number}") for number in hundred]
    (
        scene.app.schedule_many(
            "work", "extract", extracts, DAILY, first_run="at_first_occurrence"
        ).include_many("work", "load", loads)
    )
    scene.apply()
    assert scene.manage().queued == 0
    runs(scene, "extract-42")
    assert scene.manage().queued == 1
    assert names(scene.history.queue.all()) == ["load-42"]


def test_one_root_sets_a_whole_batch_going(scene: Scene) -> None:
    loads = [Item(number) for number in range(10)]
    scene.app.schedule("work", "extract-all", None, DAILY).include_many("work", "load", loads)
    scene.apply()
    scene.cycle()
    assert scene.manage().queued == 10


# Successes are never lost (W16), and never consumed twice


def test_a_parent_success_while_the_child_runs_is_kept(scene: Scene) -> None:
    chain(scene, "extract", "load")
    scene.cycle()
    scene.manage()
    scene.dispatch()
    [child] = scene.claim()
    runs(scene, "extract")
    assert done(scene) == ["extract", "extract"]
    succeed(scene, child)
    assert reasons(scene.manage())["load"] == "new success of 'extract'"
    scene.dispatch()
    scene.run()
    assert reasons(scene.manage())["load"] == "waits for the next success of 'extract'"


def test_a_parent_success_while_the_child_is_queued_belongs_to_that_run(scene: Scene) -> None:
    chain(scene, "extract", "load")
    scene.cycle()
    scene.trigger("extract")
    scene.dispatch()
    [again] = scene.claim()
    assert reasons(scene.manage())["load"] == "new success of 'extract'"
    succeed(scene, again)
    scene.dispatch()
    scene.run()
    assert done(scene) == ["extract", "extract", "load"]
    assert reasons(scene.manage())["load"] == "waits for the next success of 'extract'"


def test_a_manual_run_of_a_dependent_consumes_what_it_saw(scene: Scene) -> None:
    chain(scene, "extract", "load")
    scene.cycle()
    runs(scene, "load")
    assert reasons(scene.manage())["load"] == "waits for the next success of 'extract'"
    runs(scene, "extract")
    assert reasons(scene.manage())["load"] == "new success of 'extract'"


def test_a_failed_dependent_is_tried_again_with_backoff(scene: Scene) -> None:
    scene.failing = {"load"}
    policy = RetryPolicy(timedelta(minutes=1), 2.0, timedelta(hours=1))
    chain(scene, "extract", "load", retry=policy)
    scene.cycle()
    for attempt, minutes in enumerate((1, 2)):
        scene.cycle()
        assert reasons(scene.manage())["load"] == f"retry {attempt + 1} after 0:0{minutes}:00"
        [entry] = scene.history.queue.all()
        assert entry.scheduled_at == scene.clock.now + timedelta(minutes=minutes)
        scene.clock.advance(minutes=minutes)
    scene.failing = set()
    scene.cycle()
    assert done(scene) == ["extract", "load"]


def test_a_new_edge_starts_with_the_successes_the_child_came_after_consumed(scene: Scene) -> None:
    scene.app.schedule("work", "extract")
    scene.app.schedule("work", "load")
    scene.apply()
    runs(scene, "extract")
    scene.clock.advance(minutes=1)
    runs(scene, "load")
    scene.new_app().schedule("work", "extract").then_include("work", "load")
    scene.apply()
    assert reasons(scene.manage())["load"] == "waits for the next success of 'extract'"
    scene.clock.advance(minutes=1)
    runs(scene, "extract")
    assert reasons(scene.manage())["load"] == "new success of 'extract'"


# Parents that are switched off, removed and declared again


def test_enabling_a_parent_wakes_its_children(scene: Scene) -> None:
    def deploy(enabled: bool, *more: str) -> None:
        parent = scene.new_app().schedule("work", "extract", enabled=enabled)
        parent.then_include("work", "load")
        for one in more:
            scene.app.schedule("work", one)
        scene.apply()

    deploy(enabled=True)
    runs(scene, "extract")
    deploy(enabled=False)
    assert reasons(scene.manage())["load"] == "parent disabled: 'extract'"
    deploy(True, "another")
    assert reasons(scene.manage())["load"] == "new success of 'extract'"


def test_a_parent_declared_again_is_linked_again(scene: Scene) -> None:
    def upstream(*external_ids: str) -> None:
        app = Headway("upstream", database_url=scene.url)
        app.workflow("work")(lambda: None)
        for one in external_ids:
            app.schedule("work", one)
        apply_declarations(app, scene.store)

    upstream("extract", "other")
    scene.app.schedule("work", "mine").include_many(
        "work", "load", [Item("x", depends_on="extract")]
    )
    scene.apply()
    scene.manage()
    upstream("other")
    assert reasons(scene.manage())["load-x"] == "a parent was removed"
    upstream("other", "another", "extract")
    assert reasons(scene.manage())["load-x"] == "waits for the first success of 'extract'"
    runs(scene, "extract")
    assert reasons(scene.manage())["load-x"] == "new success of 'extract'"


# Fan-in


@pytest.mark.parametrize(
    ("join", "succeeded", "reason"),
    [
        ("all", ["a"], "waits for the first success of 'b'"),
        ("all", ["a", "b"], "new success of 'a', 'b'"),
        ("any", [], "waits for the first success of 'a', 'b' (one is enough)"),
        ("any", ["b"], "new success of 'b'"),
        ("any", ["a", "b"], "new success of 'a', 'b'"),
    ],
)
def test_a_child_of_several_parents_waits_for_all_or_any(
    scene: Scene, join: str, succeeded: Sequence[str], reason: str
) -> None:
    fan_in(scene, join, "a", "b")
    runs(scene, *succeeded)
    assert reasons(scene.manage())["load-all"] == reason


def test_all_waits_for_a_new_success_of_each_parent_every_time(scene: Scene) -> None:
    fan_in(scene, "all", "a", "b")
    runs(scene, "a", "b")
    scene.cycle()
    assert done(scene)[-1] == "load-all"
    runs(scene, "a", "a")
    assert reasons(scene.manage())["load-all"] == "waits for the next success of 'b'"
    runs(scene, "b")
    assert reasons(scene.manage())["load-all"] == "new success of 'a', 'b'"


# Priority


@pytest.mark.parametrize(("group", "entry"), [(5, 21), (20, 31), (0, 16), (15, 31)])
def test_dependents_are_boosted_and_clamped(scene: Scene, group: int, entry: int) -> None:
    parent = scene.app.schedule("work", "extract", None, DAILY, group=Group(priority=group))
    parent.then_include("work", "load", group=Group(priority=group))
    scene.apply()
    scene.manage()
    assert [one.priority for one in scene.history.queue.all()] == [group], "by time: no boost"
    scene.dispatch()
    scene.run()
    scene.manage()
    [queued] = scene.history.queue.all()
    assert (queued.external_id, queued.priority, queued.created_at) == ("load", entry, START)
