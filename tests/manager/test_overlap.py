"""Runs by time, or after parents, that overlap: nothing is queued twice, and nothing is lost."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from headway import cron, every
from headway.config import Settings
from headway.domain.due import MisfirePolicy
from headway.domain.execution import Execution, Outcome
from headway.domain.manifest import ManifestDispatchView
from headway.domain.schedule import Schedule
from headway.domain.time_options import TimeOptions
from headway.manager.decide import Verdict, decide
from headway.store import outcomes
from headway.store.tables import manifest_state
from tests.builders import OWNER, START, Scene, reasons
from tests.manager.test_guards_of_seed_000 import VIEW
from tests.overlaps import (
    CANCELLED,
    DONE,
    FAILED,
    HANDED_BACK,
    LATER,
    declare,
    end,
    go_on,
    running,
)

NOTHING = MisfirePolicy.DO_NOTHING
TEN = timedelta(minutes=10)
ON_THE_CLOCK: dict[str, Schedule] = {
    "fixed rate": every(minutes=10, fixed_rate=True),
    "cron": cron("*/10 * * * *"),
}


def occurrences(scene: Scene) -> list[datetime | None]:
    return [one.scheduled_for for one in running(scene)]


@pytest.mark.parametrize("schedule", ON_THE_CLOCK.values(), ids=ON_THE_CLOCK)
def test_an_occurrence_starts_while_the_one_before_it_runs(
    scene: Scene, schedule: Schedule
) -> None:
    declare(scene, schedule)
    go_on(scene)
    assert occurrences(scene) == [START]

    for number in range(1, 4):
        assert go_on(scene).queued == 0, "what a run stands for is not queued again"
        scene.clock.advance(minutes=10)
        go_on(scene)
        assert occurrences(scene) == [START + TEN * past for past in range(number + 1)]


def test_it_waits_in_the_queue_like_all_others_and_goes_on_when_it_has_left(scene: Scene) -> None:
    declare(scene, ON_THE_CLOCK["cron"])
    scene.manage()
    scene.clock.advance(minutes=12)
    scene.manage()
    assert len([one for one in scene.history.queue.all() if one.external_id == "free"]) == 1

    scene.dispatch()
    go_on(scene)

    assert occurrences(scene) == [START, START + TEN]


@pytest.mark.parametrize(
    ("schedule", "options", "reason"),
    [
        (every(minutes=10), {}, "the next run is counted from its end"),
        (ON_THE_CLOCK["cron"], {"misfire": "catch_up"}, "made up for one after another"),
    ],
    ids=["pause", "catch up"],
)
def test_what_is_counted_from_the_end_or_made_up_for_in_order_waits(
    scene: Scene, schedule: Schedule, options: dict[str, Any], reason: str
) -> None:
    declare(scene, schedule, **options)
    go_on(scene)
    [first] = running(scene)
    scene.clock.advance(minutes=15)
    scene.wake("free")

    assert reason in reasons(go_on(scene))["free"]
    assert running(scene) == [first]
    scene.trigger("free")
    scene.dispatch()
    assert len(running(scene)) == 2, "a run that is asked for does not wait"


def overlapped(scene: Scene) -> tuple[Execution, Execution]:
    """The run of twelve o'clock and that of ten past, both going on at 12:25."""
    declare(scene, ON_THE_CLOCK["cron"])
    go_on(scene)
    scene.clock.advance(minutes=10)
    go_on(scene)
    first, second = running(scene)
    scene.clock.advance(minutes=5)
    return first, second


def settled(scene: Scene) -> datetime | None:
    return scene.manifest("free").settled_until


def test_a_late_success_settles_its_own_occurrence_alone(scene: Scene) -> None:
    first, second = overlapped(scene)

    end(scene, DONE, first)
    assert settled(scene) == START
    end(scene, FAILED, second)
    scene.manage()
    scene.clock.advance(minutes=4)
    scene.dispatch()

    assert occurrences(scene) == [START + TEN], "the one that failed is tried again"


def test_a_later_success_settles_one_that_failed_before(scene: Scene) -> None:
    first, second = overlapped(scene)

    end(scene, FAILED, first)
    scene.clock.advance(minutes=2)
    assert go_on(scene).queued == 0, "a newer run is going on"
    end(scene, DONE, second)

    assert go_on(scene).queued == 0
    assert settled(scene) == START + TEN


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("outcome", [DONE, CANCELLED], ids=["done", "cancelled"])
def test_settled_is_never_taken_back(
    scene: Scene, order: tuple[int, int], outcome: Outcome
) -> None:
    runs = overlapped(scene)

    end(scene, outcome, runs[order[0]])
    end(scene, DONE, runs[order[1]])

    assert settled(scene) == START + TEN


def test_ends_at_the_same_moment_all_count(scene: Scene) -> None:
    first, second = overlapped(scene)
    scene.trigger("free")
    scene.dispatch()
    [third] = [one for one in running(scene) if one not in (first, second)]

    with scene.store.writing() as tx:
        ends = {first.id: DONE, second.id: CANCELLED, third.id: DONE}
        outcomes.finish(tx, OWNER, ends)
        manifest_id, _ = scene.ids_of("free")
        chosen = manifest_state.c.manifest_id == manifest_id
        state = tx.connection.execute(select(manifest_state).where(chosen)).one()

    assert state.success_seq == 2
    assert state.settled_until == START + TEN


def test_two_that_are_handed_back_are_both_done_again(scene: Scene) -> None:
    first, second = overlapped(scene)

    end(scene, HANDED_BACK, first, second)
    for _ in range(2):
        scene.dispatch()
        scene.manage()
    scene.dispatch()

    assert occurrences(scene) == [START, START + TEN]


def test_of_two_that_fail_the_newer_is_tried_again(scene: Scene) -> None:
    first, second = overlapped(scene)
    end(scene, DONE, first, second)
    for _ in range(2):
        scene.clock.advance(minutes=10)
        go_on(scene)
    newest = START + 3 * TEN
    assert occurrences(scene) == [newest - TEN, newest]

    end(scene, FAILED, *running(scene))
    scene.manage()
    scene.clock.advance(minutes=1)
    go_on(scene)
    assert occurrences(scene) == [newest]
    end(scene, DONE, *running(scene))

    assert go_on(scene).queued == 0
    assert settled(scene) == newest


def family(scene: Scene, **options: Any) -> None:
    parent = scene.app.schedule("work", "parent", None, LATER, first_run="at_first_occurrence")
    parent.include("work", "free", None, **options)
    scene.apply()


def parent_succeeds(scene: Scene) -> None:
    scene.trigger("parent")
    scene.dispatch()
    end(scene, DONE, *running(scene, "parent"))


@pytest.mark.parametrize("allowed", [True, False])
def test_each_success_of_its_parent_starts_a_dependent_that_may_overlap(
    scene: Scene, allowed: bool
) -> None:
    family(scene, allow_overlap=allowed)
    for _ in range(3):
        parent_succeeds(scene)
        for _ in range(2):
            go_on(scene)

    assert len(running(scene)) == (3 if allowed else 1)
    end(scene, DONE, *running(scene))
    go_on(scene)
    assert len(running(scene)) == (0 if allowed else 1), "no success is dealt with twice, or lost"


def test_a_dependent_that_failed_runs_again_after_the_newer_run(scene: Scene) -> None:
    family(scene, allow_overlap=True)
    for _ in range(2):
        parent_succeeds(scene)
        go_on(scene)
    _first, second = running(scene)

    end(scene, FAILED, second)
    scene.manage()
    scene.clock.advance(minutes=5)
    scene.dispatch()
    assert len(running(scene)) == 2, "its success of the parent is nobody else's"
    end(scene, DONE, *running(scene))
    go_on(scene)

    assert running(scene) == []


@pytest.mark.parametrize("active", [True, False])
def test_occurrences_are_not_settled_beyond_one_whose_run_may_still_fail(active: bool) -> None:
    """What was missed meanwhile is skipped for good once that run has ended."""
    noon, missed = START, START + timedelta(hours=3, minutes=30)
    view = ManifestDispatchView(
        **VIEW
        | {"schedule": cron("0 * * * *"), "time": TimeOptions(misfire_policy=NOTHING)}
        | {"settled_until": noon, "may_overlap": True, "has_active_execution": active}
    )

    decision = decide(view, (), missed, Settings().manifest_defaults)

    assert (decision.verdict, decision.wake_at) == (Verdict.SKIP, noon + timedelta(hours=4))
    assert decision.settle_until == (None if active else noon + timedelta(hours=3))
