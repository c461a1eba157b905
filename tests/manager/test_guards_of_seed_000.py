"""Seed 000: "Both passes apply the same per-manifest guards before evaluating the schedule"."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import update

from headway import Group, cron, every
from headway.config import Settings
from headway.domain.manifest import ManifestDispatchView
from headway.domain.readiness import held_by
from headway.manager.decide import Verdict, decide
from headway.store.tables import manifest
from tests.builders import START, Scene, reasons

VIEW: dict[str, Any] = {
    "manifest_id": 7,
    "external_id": "load-users",
    "workflow": "work",
    "input": "null",
    "input_type": "None",
    "schedule": every(hours=1),
    "enabled": True,
    "max_retries": None,
    "group_id": 1,
    "group_name": "users",
    "group_priority": 0,
    "group_enabled": True,
    "settled_until": None,
    "wake_at": START,
}

GUARDS: dict[str, tuple[dict[str, bool], list[int], str]] = {
    "group disabled": ({"group_enabled": False}, [], "group 'users' is disabled"),
    "just dead-lettered this cycle": ({}, [7], "dead-lettered in this cycle"),
    "awaiting dead letter": (
        {"has_awaiting_dead_letter": True},
        [],
        "a dead letter awaits intervention",
    ),
    "queued entry": ({"has_queued_work": True}, [], "already queued"),
    "pending or in-progress execution": ({"has_active_execution": True}, [], "already running"),
}


@pytest.mark.parametrize(("changes", "dead_lettered", "reason"), GUARDS.values(), ids=GUARDS)
def test_each_guard_alone_holds_a_due_manifest(
    changes: dict[str, bool], dead_lettered: list[int], reason: str
) -> None:
    view = ManifestDispatchView(**(VIEW | changes))

    assert held_by(view, dead_lettered) == reason
    decision = decide(view, dead_lettered, START, Settings().manifest_defaults)
    assert (decision.verdict, decision.reason) == (Verdict.SKIP, reason)
    assert decision.wake_at is None, "whatever lifts the guard wakes it"


def test_without_a_guard_a_due_manifest_is_queued() -> None:
    view = ManifestDispatchView(**VIEW)

    assert held_by(view, []) is None
    decision = decide(view, [], START, Settings().manifest_defaults)
    assert (decision.verdict, decision.reason) == (Verdict.QUEUE, "first run")


def test_a_manifest_switched_off_is_held_like_one_of_a_disabled_group() -> None:
    view = ManifestDispatchView(**(VIEW | {"enabled": False}))

    assert (
        decide(view, [], START, Settings().manifest_defaults).reason == "the manifest is disabled"
    )


def test_another_manifest_dead_lettered_this_cycle_holds_nobody_else() -> None:
    assert held_by(ManifestDispatchView(**VIEW), [6, 8]) is None


def test_of_several_guards_the_first_in_the_seeds_order_is_named() -> None:
    guards = list(GUARDS.values())
    for first, (_, _, reason) in enumerate(guards):
        changes = {name: on for flags, _, _ in guards[first:] for name, on in flags.items()}
        dead_lettered = [key for _, keys, _ in guards[first:] for key in keys]
        assert held_by(ManifestDispatchView(**(VIEW | changes)), dead_lettered) == reason


def declare(scene: Scene, group: Group | None = None, **options: Any) -> None:
    scene.app.schedule(
        "work", "load-users", None, every(hours=1), group=group or Group("users"), **options
    )
    scene.apply()


def test_group_disabled(scene: Scene) -> None:
    declare(scene, Group("users", enabled=False))

    result = scene.manage()

    assert (result.candidates, result.queued) == (1, 0)
    assert reasons(result) == {"load-users": "group 'users' is disabled"}
    assert scene.history.queue.all() == []


def test_just_dead_lettered_in_this_cycle(scene: Scene) -> None:
    declare(scene, max_retries=1)
    scene.failing.add("load-users")
    scene.cycle()

    result = scene.manage()

    assert (result.dead_lettered, result.queued) == (1, 0)
    assert reasons(result) == {"load-users": "dead-lettered in this cycle"}


def test_awaiting_dead_letter(scene: Scene) -> None:
    declare(scene, max_retries=1)
    scene.failing.add("load-users")
    scene.cycle()
    scene.manage()
    scene.clock.advance(days=1)
    scene.wake("load-users")

    result = scene.manage()

    assert reasons(result) == {"load-users": "a dead letter awaits intervention"}
    assert (result.dead_lettered, result.queued) == (0, 0)
    assert len(scene.history.dead_letters.awaiting()) == 1, "never two for one manifest"


def test_queued_entry(scene: Scene) -> None:
    declare(scene)
    assert scene.manage().queued == 1
    scene.wake("load-users")

    result = scene.manage()

    assert reasons(result) == {"load-users": "already queued"}
    assert result.skipped == {"already queued": 1}
    assert len(scene.history.queue.all()) == 1


def test_pending_execution(scene: Scene) -> None:
    declare(scene)
    scene.manage()
    scene.dispatch()
    scene.wake("load-users")

    assert reasons(scene.manage()) == {"load-users": "already running"}
    assert scene.history.queue.all() == []


def test_in_progress_execution(scene: Scene) -> None:
    declare(scene)
    scene.manage()
    scene.dispatch()
    scene.claim()
    scene.wake("load-users")

    assert reasons(scene.manage()) == {"load-users": "already running"}
    assert scene.history.queue.all() == []


# The same guards for every kind of manifest

HOURLY = every(hours=1)


def declare_kind(scene: Scene, kind: str, enabled: bool = True) -> None:
    options: dict[str, Any] = {"group": Group("users", enabled=enabled), "max_retries": 1}
    if kind == "dependent":
        chain = scene.app.schedule("work", "extract", None, HOURLY)
        chain.then_include("work", "load-users", None, **options)
    else:
        schedule = HOURLY if kind == "interval" else cron("*/5 * * * *")
        scene.app.schedule("work", "load-users", None, schedule, **options)
    scene.apply()


def make_due(scene: Scene, kind: str) -> None:
    declare_kind(scene, kind)
    if kind == "dependent":
        scene.cycle()


def disable_its_group(scene: Scene, kind: str) -> None:
    scene.new_app()
    declare_kind(scene, kind, enabled=False)


def fail_it(scene: Scene, kind: str) -> None:
    scene.failing = {"load-users"}
    scene.cycle()


def dead_letter_it(scene: Scene, kind: str) -> None:
    fail_it(scene, kind)
    assert scene.manage().dead_lettered == 1


def queue_it(scene: Scene, kind: str) -> None:
    assert scene.manage().queued == 1


def dispatch_it(scene: Scene, kind: str) -> None:
    queue_it(scene, kind)
    scene.dispatch()


def start_it(scene: Scene, kind: str) -> None:
    dispatch_it(scene, kind)
    assert len(scene.claim()) == 1


# Guard → what brings it about, the flag of the view it is read from, the reason given.
ARRANGED: dict[str, tuple[Callable[[Scene, str], None], dict[str, object], str]] = {
    "group disabled": (
        disable_its_group,
        {"group_enabled": False},
        "group 'users' is disabled",
    ),
    "just dead-lettered this cycle": (
        fail_it,
        {"failed_count": 1, "has_awaiting_dead_letter": False},
        "dead-lettered in this cycle",
    ),
    "awaiting dead letter": (
        dead_letter_it,
        {"has_awaiting_dead_letter": True},
        "a dead letter awaits intervention",
    ),
    "queued entry": (queue_it, {"has_queued_work": True}, "already queued"),
    "pending execution": (dispatch_it, {"has_active_execution": True}, "already running"),
    "execution in progress": (start_it, {"has_active_execution": True}, "already running"),
}
KINDS = ["interval", "cron", "dependent"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("guard", ARRANGED)
def test_the_guards_hold_every_kind_of_manifest(scene: Scene, kind: str, guard: str) -> None:
    arrange, flags, reason = ARRANGED[guard]
    make_due(scene, kind)
    arrange(scene, kind)
    before = scene.history.queue.all()
    scene.wake("load-users")

    result = scene.manage()

    assert reasons(result)["load-users"] == reason
    [view] = [one.view for one in result.decisions if one.view.external_id == "load-users"]
    assert {name: getattr(view, name) for name in flags} == flags
    assert (result.queued, scene.history.queue.all()) == (0, before)


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_guard_every_kind_is_queued(scene: Scene, kind: str) -> None:
    make_due(scene, kind)

    assert scene.manage().queued == 1
    assert [entry.external_id for entry in scene.history.queue.all()] == ["load-users"]


@pytest.mark.parametrize("kind", KINDS)
def test_guards_come_before_the_schedule(scene: Scene, kind: str) -> None:
    """What is not due is told to be held, too."""
    make_due(scene, kind)
    scene.cycle()
    scene.manage()
    scene.wake("load-users")
    assert reasons(scene.manage())["load-users"].startswith(("not due before", "waits for"))
    disable_its_group(scene, kind)
    scene.wake("load-users")

    assert reasons(scene.manage())["load-users"] == "group 'users' is disabled"


def test_a_held_manifest_holds_up_no_other(scene: Scene) -> None:
    scene.app.schedule("work", "held", None, every(hours=1), group=Group("off", enabled=False))
    scene.app.schedule("work", "free", None, every(hours=1), group="on")
    scene.apply()

    result = scene.manage()

    assert reasons(result) == {"held": "group 'off' is disabled", "free": "first run"}
    assert [entry.external_id for entry in scene.history.queue.all()] == ["free"]


def test_a_row_that_cannot_be_read_holds_up_itself_and_nothing_else(scene: Scene) -> None:
    scene.app.schedule("work", "edited", None, cron("0 9 * * *"))
    scene.app.schedule("work", "sound", None, every(hours=1))
    scene.apply()
    with scene.store.writing() as tx:
        edited = manifest.c.external_id == "edited"
        tx.connection.execute(update(manifest).where(edited).values(time_zone="Mars/Olympus"))

    result = scene.manage()

    assert [entry.external_id for entry in scene.history.queue.all()] == ["sound"]
    assert reasons(result)["edited"].startswith("its row cannot be read: time zone 'Mars/Olympus'")
