"""The runtime API: the same words at run time, effective at once or with the caller's commit."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

from headway import Group, Headway, Item, every, once
from headway.errors import (
    DatabaseUnavailable,
    DefinitionError,
    ExecutionNotFound,
    GroupNotFound,
    HeadwayError,
    InputError,
    ManifestNotFound,
    ParentNotFound,
)
from headway.store import engine
from headway.testing import Sandbox
from tests.builders import Scene, reasons
from tests.runtime_verbs import runtime_of

START = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.fixture
def ran() -> list[int]:
    return []


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url) as scene:
        yield scene


@pytest.fixture
def box(database_url: str, ran: list[int]) -> Iterator[Sandbox]:
    hw = Headway("shop", database_url=database_url)

    @hw.workflow
    def load(number: int) -> None:
        ran.append(number)

    hw.schedule(load, "daily", 1, every(days=1), group="loads")
    hw.schedule(load, "by-hand", 2, group="loads")
    with Sandbox(hw, start=START, database_url=database_url) as box:
        box.run_until_idle()
        ran.clear()
        yield box


def test_a_trigger_runs_any_number_of_times_with_its_own_or_another_input(
    box: Sandbox, ran: list[int]
) -> None:
    box.runtime.trigger("by-hand")
    box.runtime.trigger("by-hand")
    box.runtime.trigger("by-hand", 20)
    box.run_until_idle()
    assert sorted(ran) == [2, 2, 20]


def test_a_delayed_trigger_waits_and_holds_back_nobody(box: Sandbox, ran: list[int]) -> None:
    box.runtime.trigger("daily", 10, delay=timedelta(hours=30))
    box.advance(hours=24)
    assert ran == [1]
    box.advance(hours=6)
    assert ran == [1, 10]


def test_a_group_is_triggered_as_far_as_it_is_enabled(box: Sandbox, ran: list[int]) -> None:
    box.runtime.disable("daily")
    assert box.runtime.trigger_group("loads") == 1
    box.run_until_idle()
    assert ran == [2]


def test_a_disabled_manifest_rests_until_it_is_enabled(box: Sandbox, ran: list[int]) -> None:
    box.runtime.disable("daily")
    box.advance(days=3)
    assert ran == []
    box.runtime.enable("daily")
    box.run_until_idle()
    assert ran == [1]


def test_what_is_unscheduled_leaves_its_history_and_frees_its_id(box: Sandbox) -> None:
    box.runtime.trigger("by-hand")
    box.runtime.unschedule("by-hand")
    box.run_until_idle()
    assert [one.external_id for one in box.manifests()] == ["daily"]
    assert box.queued() == []
    box.runtime.schedule("load", "by-hand", 3, every(hours=1))
    assert len(box.manifests()) == 2


def test_manifests_made_at_run_time_run_and_survive_the_next_start(
    box: Sandbox, ran: list[int]
) -> None:
    box.runtime.schedule("load", "extra", 30, every(hours=1))
    box.runtime.schedule_dependent("load", "after-extra", 31, "extra")
    box.runtime.schedule_once("load", "late", 32, once(START + timedelta(hours=2)))
    box.advance(hours=2)
    assert sorted(ran) == [30, 30, 30, 31, 31, 31, 32]
    late = next(one for one in box.manifests() if one.external_id == "late")
    assert not late.enabled, "it stays for the record"


def test_a_batch_is_pruned_only_when_asked(box: Sandbox) -> None:
    def named() -> set[str]:
        return {one.external_id for one in box.manifests()} - {"daily", "by-hand"}

    items = [Item(number, number) for number in range(3)]
    box.runtime.schedule("load", "load-extra-1", 1, every(hours=1))
    box.runtime.schedule_many("load", "load", items, every(hours=1))
    box.runtime.schedule_many("load", "load", items[:2], every(hours=1))
    assert named() == {"load-0", "load-1", "load-2", "load-extra-1"}
    box.runtime.schedule_many("load", "load", items[:2], every(hours=1), prune=True)
    assert named() == {"load-0", "load-1", "load-extra-1"}


def test_a_batch_of_dependents_that_fails_on_item_57_of_100_leaves_no_row(box: Sandbox) -> None:
    before = box.manifests()
    items = [
        Item(number, number, depends_on="nobody" if number == 57 else "daily")
        for number in range(100)
    ]
    with pytest.raises(ParentNotFound, match="batch-57: depends on 'nobody'"):
        box.runtime.schedule_many_dependent("load", "batch", items)
    assert box.manifests() == before


def test_a_rolled_back_trigger_leaves_no_entry_and_a_committed_one_exactly_one(
    box: Sandbox, ran: list[int]
) -> None:
    engine = create_engine(box.store.url)
    with engine.connect() as connection:
        box.runtime.trigger("by-hand", 40, connection=connection)
        connection.rollback()
    assert box.queued() == []
    with engine.connect() as connection:
        box.runtime.trigger("by-hand", 41, connection=connection)
        connection.commit()
    assert len(box.queued()) == 1
    with Session(engine) as session:
        box.runtime.trigger("by-hand", 42, connection=session)
        box.runtime.enqueue("load", 43, connection=session)
        session.commit()
    engine.dispose()
    box.run_until_idle()
    assert sorted(ran) == [41, 42, 43]


def test_a_connection_to_another_database_is_refused(box: Sandbox) -> None:
    engine = create_engine("sqlite://")
    with engine.connect() as connection, pytest.raises(DatabaseUnavailable, match="headway's"):
        box.runtime.trigger("by-hand", connection=connection)
    engine.dispose()


def test_misuse_is_told_in_one_line(box: Sandbox) -> None:
    runtime = box.runtime
    with pytest.raises(ManifestNotFound, match="'nobody'"):
        runtime.trigger("nobody")
    with pytest.raises(ManifestNotFound, match="'nobody'"):
        runtime.trigger("nobody", 1)
    with pytest.raises(InputError, match="by-hand: input = 'many'"):
        runtime.trigger("by-hand", "many")
    with pytest.raises(DefinitionError, match="delay"):
        runtime.trigger("by-hand", delay=timedelta(days=-1))
    with pytest.raises(GroupNotFound, match="'nothing'"):
        runtime.trigger_group("nothing")
    for change in (runtime.enable, runtime.disable, runtime.unschedule):
        with pytest.raises(ManifestNotFound, match="'nobody'"):
            change("nobody")
    with pytest.raises(DefinitionError, match="needs a parent"):
        runtime.schedule_dependent("load", "lonely", 1, None)


def test_a_group_changed_at_run_time_stays_so_across_redeployments(scene: Scene) -> None:
    def deploy(**code: Any) -> None:
        scene.new_app().schedule("work", "load", None, every(hours=1), group=Group("etl", **code))
        scene.apply()

    deploy(max_active_jobs=4)
    runtime_of(scene).set_group("etl", max_active_jobs=None, priority=7, enabled=False)
    assert reasons(scene.manage())["load"] == "group 'etl' is disabled"
    deploy(max_active_jobs=4)
    [group] = scene.history.groups.all()
    assert (group.max_active_jobs, group.priority, group.enabled) == (None, 7, False)
    deploy(max_active_jobs=5)
    [group] = scene.history.groups.all()
    assert (group.max_active_jobs, group.priority, group.enabled) == (5, 7, False)
    runtime_of(scene).set_group("etl", enabled=True)
    assert scene.manage().queued == 1, "switching it on wakes its manifests"


@pytest.mark.parametrize(
    ("group", "values", "error"),
    [
        ("nobody", {"priority": 1}, "nobody"),
        ("loads", {}, "nothing to change"),
        ("loads", {"priority": 32}, "priority = 32"),
        ("loads", {"max_active_jobs": 0}, "max_active_jobs = 0"),
        ("loads", {"enabled": "yes"}, "enabled = 'yes': must be True or False"),
        ("", {"priority": 1}, "''"),
    ],
)
def test_nonsense_about_a_group_is_refused(
    box: Sandbox, group: str, values: dict[str, Any], error: str
) -> None:
    with pytest.raises(HeadwayError, match=error):
        box.runtime.set_group(group, **values)


def test_a_rerun_has_the_input_of_the_run_it_repeats(box: Sandbox, ran: list[int]) -> None:
    box.runtime.trigger("by-hand", 20)
    box.run_until_idle()
    [first] = box.executions("by-hand")
    entry = box.runtime.rerun(first.id)
    box.run_until_idle()
    assert ran == [20, 20]
    [again] = [one for one in box.executions("by-hand") if one.entry_id == entry]
    assert again.source == "rerun"


def test_a_run_without_a_manifest_can_be_repeated(box: Sandbox, ran: list[int]) -> None:
    box.runtime.enqueue("load", 7)
    box.run_until_idle()
    [first] = [one for one in box.executions() if one.manifest_id is None]
    box.runtime.rerun(first.id)
    box.run_until_idle()
    assert ran == [7, 7]


def test_a_rerun_has_the_priority_of_its_manifest(scene: Scene) -> None:
    """Not that of the run, which is its group's where it was not asked for by hand."""
    group = Group("loads", priority=9)
    scene.app.schedule("work", "daily", None, every(days=1), group=group, priority=3)
    scene.apply()
    scene.cycle()
    [first] = scene.history.executions.all("daily")
    entry = runtime_of(scene).rerun(first.id)

    [again] = [one for one in scene.history.queue.all() if one.id == entry]
    assert (first.priority, again.priority) == (9, 3)


def test_a_rerun_without_a_manifest_has_the_priority_of_the_run(scene: Scene) -> None:
    runtime = runtime_of(scene)
    runtime.enqueue("work", priority=5)
    scene.cycle()
    [first] = scene.history.executions.all()
    entry = runtime.rerun(first.id)

    [again] = [one for one in scene.history.queue.all() if one.id == entry]
    assert again.priority == 5


@pytest.mark.parametrize("wrong", [0, -1, 10**6, "1", None, True, 2**63])
def test_a_rerun_of_nothing_is_refused(box: Sandbox, wrong: Any) -> None:
    with pytest.raises(ExecutionNotFound, match="no execution has this id"):
        box.runtime.rerun(wrong)


def test_what_was_unscheduled_cannot_be_repeated(box: Sandbox) -> None:
    [first] = box.executions("daily")[:1]
    box.runtime.unschedule("daily")
    with pytest.raises(ExecutionNotFound):
        box.runtime.rerun(first.id)


def test_a_delay_is_counted_by_the_clock_of_the_database(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by the client's, which is an hour ahead here."""

    class Ahead(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Ahead:
            return super().now(tz) + timedelta(hours=1)

    with Scene(postgres_url, virtual_time=False) as scene:
        scene.app.schedule("work", "by-hand", None)
        scene.apply()
        monkeypatch.setattr(engine, "datetime", Ahead)

        entry = runtime_of(scene).trigger("by-hand", delay=timedelta(minutes=30))

        with scene.store.listening() as connection:
            now = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
        [queued] = scene.history.queue.all()
        assert queued.id == entry and queued.scheduled_at is not None
        assert timedelta(minutes=20) < queued.scheduled_at - now <= timedelta(minutes=30)
