"""Rules of seed 002 that no other test shows, through the real manager, dispatcher and runner."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import select

from headway import Group, Headway, Item, Run, every
from headway.domain.execution import ExecutionState
from headway.errors import (
    CircularDependencyError,
    DefinitionError,
    InputError,
    ManifestNotFound,
    NoParentRunError,
    NotDormantError,
    NotYourDependentError,
)
from headway.store.tables import manifest
from headway.testing import Sandbox
from tests.builders import Scene, reasons

HOURLY = every(hours=1)


class Etl:
    """An application whose one workflow fails where it is told to and activates what it is told.

    ``refused`` collects the errors that activations raised.
    """

    def __init__(self) -> None:
        self.hw = Headway("etl", default_retry_delay="1s", max_retry_delay="1s")
        self.failing: set[str | None] = set()
        self.activating: dict[str | None, list[tuple[str, Any]]] = {}
        self.refused: list[Exception] = []
        self.hw.workflow("work")(self._work)

    def _work(self, value: int, run: Run) -> None:
        if run.manifest in self.failing:
            raise RuntimeError("told to fail")
        if run.manifest in self.activating:
            try:
                run.activate_many(self.activating[run.manifest])
            except Exception as error:
                self.refused.append(error)

    def schedule(self, external_id: str, **options: Any) -> Any:
        return self.hw.schedule("work", external_id, 0, HOURLY, **options)

    @contextmanager
    def running(self, database_url: str) -> Iterator[Sandbox]:
        with Sandbox(self.hw, database_url=database_url) as box:
            yield box


@pytest.fixture
def etl() -> Etl:
    return Etl()


def completed(box: Sandbox) -> Counter[str | None]:
    states = [ExecutionState.COMPLETED]
    return Counter(one.external_id for one in box.history.executions.all(states=states))


# Chains and fan-out


def test_each_link_has_its_own_retries(etl: Etl, database_url: str) -> None:
    etl.schedule("a").then_include("work", "b", 0, max_retries=5).then_include("work", "c", 0)
    etl.failing = {"b"}
    with etl.running(database_url) as box:
        box.advance(seconds=2)
        etl.failing = set()
        box.advance(seconds=2)
        assert completed(box) == {"a": 1, "b": 1, "c": 1}
        assert [one.attempt for one in box.executions("b")] == [1, 2, 3, 4]


def test_no_event_bus_the_next_cycle_sees_the_success(database_url: str) -> None:
    with Scene(database_url) as scene:
        scene.app.schedule("work", "extract", None, HOURLY).include("work", "load", None)
        scene.apply()
        scene.cycle()
        assert scene.history.queue.all() == []  # the success itself queued nothing
        assert reasons(scene.manage())["load"] == "new success of 'extract'"
        assert [one.external_id for one in scene.history.queue.all()] == ["load"]


def test_a_dependent_has_no_schedule(etl: Etl) -> None:
    etl.schedule("extract").include("work", "load", 0)
    load = etl.hw.declaration().manifests[-1]
    assert (load.kind, load.schedule.kind) == ("dependent", "none")
    with pytest.raises(DefinitionError, match="is about time, and a dependent has none"):
        etl.schedule("extract-2").include("work", "load-2", 0, misfire="do_nothing")


# Batches


def test_several_dependents_may_name_one_parent(etl: Etl, database_url: str) -> None:
    etl.schedule("extract").include_many(
        "work", "load", [Item(i, 0, depends_on="extract") for i in range(3)]
    )
    with etl.running(database_url) as box:
        box.run_until_idle()
        assert completed(box) == {"extract": 1, "load-0": 1, "load-1": 1, "load-2": 1}


# Run time


def test_the_run_time_calls_create_and_then_change(etl: Etl, database_url: str) -> None:
    etl.schedule("extract")
    with etl.running(database_url) as box:
        box.runtime.schedule_dependent("work", "load", 1, "extract")
        box.runtime.schedule_dependent("work", "load", 2, "extract")
        batch = [Item(i, i, depends_on="extract") for i in range(3)]
        assert box.runtime.schedule_many_dependent("work", "copy", batch) == 3
        assert box.runtime.schedule_many_dependent("work", "copy", batch) == 0
        box.run_until_idle()
        assert completed(box) == {"extract": 1, "load": 1, "copy-0": 1, "copy-1": 1, "copy-2": 1}
        assert [one.input for one in box.history.executions.all("load")] == ["2"]


def test_a_batch_of_dependents_that_fails_on_item_57_leaves_no_row(
    etl: Etl, database_url: str
) -> None:
    etl.schedule("extract")
    parents = ["missing" if i == 57 else "extract" for i in range(100)]
    inputs = ["no number" if i == 57 else i for i in range(100)]
    with etl.running(database_url) as box:
        for batch in (
            [Item(i, i, depends_on=parent) for i, parent in enumerate(parents)],
            [Item(i, value, depends_on="extract") for i, value in enumerate(inputs)],
        ):
            with pytest.raises(DefinitionError, match="load-57"):
                box.runtime.schedule_many_dependent("work", "load", batch)
            assert [one.external_id for one in box.manifests()] == ["extract"]
            assert [one.name for one in box.history.groups.all()] == ["extract"]


# Circles

CIRCLE = (
    "Circular dependency detected among manifest groups: [group-a, group-b, group-c]. "
    "Manifest groups must form a directed acyclic graph (DAG)."
)


def test_a_circle_of_groups_is_refused_at_run_time_and_leaves_nothing(
    etl: Etl, database_url: str
) -> None:
    chain = etl.schedule("a", group="group-a").then_include("work", "b", 0, group="group-b")
    chain.then_include("work", "c", 0, group="group-c")
    with etl.running(database_url) as box:
        with pytest.raises(CircularDependencyError) as refused:
            box.runtime.schedule_dependent("work", "d", 0, "c", group="group-a")
        assert str(refused.value) == CIRCLE
        assert [one.external_id for one in box.manifests()] == ["a", "b", "c"]


# Dormant dependents


def dormant(etl: Etl, *names: str, parent: str = "delta", **options: Any) -> None:
    chain = etl.schedule(parent)
    for name in names:
        chain = chain.include("work", name, 0, dormant=True, **options)


def test_a_dormant_dependent_runs_neither_by_time_nor_by_its_parents_success(
    etl: Etl, database_url: str
) -> None:
    dormant(etl, "bronze")
    with etl.running(database_url) as box:
        box.advance(hours=2)
        assert completed(box) == {"delta": 3}
        kinds = {one.external_id: one.schedule_kind for one in box.manifests()}
        assert kinds == {"delta": "interval", "bronze": "dormant_dependent"}


def test_the_parent_chooses_which_run_and_with_which_input(etl: Etl, database_url: str) -> None:
    dormant(etl, "bronze-1", "bronze-2", "bronze-3")
    etl.activating = {"delta": [("bronze-1", 10), ("bronze-3", 30)]}
    with etl.running(database_url) as box:
        box.run_until_idle()
        ran = {one.external_id: one for one in box.executions() if one.external_id != "delta"}
        assert {name: one.input for name, one in ran.items()} == {
            "bronze-1": "10",
            "bronze-3": "30",
        }
        assert {one.source for one in ran.values()} == {"activation"}


@pytest.mark.parametrize(("group_priority", "priority"), [(0, 16), (5, 21), (20, 31)])
def test_the_dependents_boost_is_applied_and_clamped(
    etl: Etl, database_url: str, group_priority: int, priority: int
) -> None:
    dormant(etl, "bronze", group=Group("bronze", priority=group_priority))
    etl.activating = {"delta": [("bronze", 1)]}
    with etl.running(database_url) as box:
        box.run_until_idle()
        [ran] = box.executions("bronze")
        assert ran.priority == priority


def activating_scene(database_url: str, **group: Any) -> Scene:
    """A parent with three dormant dependents, all of which each of its runs activates."""
    scene = Scene(database_url)
    names = [f"bronze-{number}" for number in range(3)]

    def delta(run: Run) -> None:
        run.activate_many((name, None) for name in names)

    scene.app.workflow("delta")(delta)
    chain = scene.app.schedule(
        "delta", "delta", None, every(minutes=1), group=Group("delta", priority=31)
    )
    shared: Any = Group("bronze", **group)
    for name in names:
        chain = chain.include("work", name, None, dormant=True, group=shared)
    scene.apply()
    return scene


def test_the_cap_of_the_group_applies_to_activations(database_url: str) -> None:
    with activating_scene(database_url, max_active_jobs=2) as scene:
        scene.cycle()
        assert len(scene.history.queue.all()) == 3
        assert len(scene.dispatch().dispatched) == 2
        assert scene.dispatch().dispatched == ()


@pytest.mark.parametrize("busy", ["queued", "pending", "in_progress"])
def test_an_activation_of_what_is_queued_or_active_is_skipped_with_a_warning(
    database_url: str, busy: str, caplog: pytest.LogCaptureFixture
) -> None:
    stays_queued = busy == "queued"
    scene = activating_scene(database_url, enabled=not stays_queued)
    with scene, caplog.at_level(logging.WARNING, "headway"):
        scene.cycle()
        scene.dispatch()
        if busy == "in_progress":
            scene.claim()
        scene.clock.advance(minutes=1)
        scene.manage()
        scene.dispatch()
        scene.with_runner(lambda runner: runner.run_once(limit=1))  # delta has the best priority
        assert [one.external_id for one in scene.ended(ExecutionState.COMPLETED)] == ["delta"] * 2
        assert caplog.messages == [
            f"bronze-{number} is busy: this activation is skipped" for number in range(3)
        ]
        assert len(scene.history.queue.all()) == 3 * stays_queued
        live = [one for one in scene.history.executions.all() if not one.state.terminal]
        assert [str(one.state) for one in live] == [busy] * (0 if stays_queued else 3)


def refusal(etl: Etl, database_url: str) -> Exception:
    """What the activation by "delta" raised; nothing of it may have been written."""
    with etl.running(database_url) as box:
        box.run_until_idle()
        assert {one.source for one in box.executions()} == {"schedule"}
    [error] = etl.refused
    return error


def test_a_dormant_dependent_of_another_parent_is_refused(etl: Etl, database_url: str) -> None:
    dormant(etl, "bronze")
    dormant(etl, "silver", parent="other")
    etl.activating = {"delta": [("bronze", 1), ("silver", 1)]}
    assert isinstance(refusal(etl, database_url), NotYourDependentError)


@pytest.mark.parametrize("name", ["other", "delta"])
def test_what_is_no_dormant_dependent_is_refused(etl: Etl, database_url: str, name: str) -> None:
    dormant(etl, "bronze")
    etl.schedule("other")
    etl.activating = {"delta": [("bronze", 1), (name, 1)]}
    assert isinstance(refusal(etl, database_url), NotDormantError)


def test_an_unknown_dependent_activates_nothing(etl: Etl, database_url: str) -> None:
    dormant(etl, "bronze")
    etl.activating = {"delta": [("bronze", 1), ("bronse", 1)]}
    assert isinstance(refusal(etl, database_url), ManifestNotFound)


def test_an_input_of_the_wrong_type_activates_nothing(etl: Etl, database_url: str) -> None:
    dormant(etl, "bronze", "silver")
    etl.activating = {"delta": [("bronze", 1), ("silver", "no number")]}
    assert isinstance(refusal(etl, database_url), InputError)


def test_a_run_without_a_manifest_activates_nothing(etl: Etl, database_url: str) -> None:
    dormant(etl, "bronze")
    etl.activating = {None: [("bronze", 1)]}
    with etl.running(database_url) as box:
        box.enqueue("work", 0)
        box.run_until_idle()
        assert box.executions("bronze") == []
    assert [type(error) for error in etl.refused] == [NoParentRunError]


# Under the hood


def test_dependents_of_both_kinds_store_no_schedule(etl: Etl, database_url: str) -> None:
    etl.schedule("extract").include("work", "load", 0).include("work", "bronze", 0, dormant=True)
    columns = (
        manifest.c.external_id,
        manifest.c.schedule_kind,
        manifest.c.cron_expression,
        manifest.c.interval_seconds,
    )
    with etl.running(database_url) as box, box.store.reading() as tx:
        stored = tx.connection.execute(select(*columns).order_by(manifest.c.id)).all()
    assert [tuple(row) for row in stored] == [
        ("extract", "interval", None, 3600),
        ("load", "dependent", None, None),
        ("bronze", "dormant_dependent", None, None),
    ]


def test_a_removed_parent_leaves_its_dependent_skipped_and_unbroken(
    etl: Etl, database_url: str
) -> None:
    etl.schedule("extract").include("work", "load", 0)
    with etl.running(database_url) as box:
        box.run_until_idle()
        box.runtime.unschedule("extract")
        box.advance(hours=3)
        assert completed(box) == {"extract": 1, "load": 1}
        assert [one.external_id for one in box.manifests()] == ["load"]
        box.runtime.trigger("load")
        box.run_until_idle()
        assert completed(box) == {"extract": 1, "load": 2}
