"""One thing in detail: every field of it, as people read it and as programs do."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from headway.cli.target import load
from headway.store import executions, work_queue
from headway.store.engine import Store
from headway.testing import Sandbox
from tests.builders import Scene
from tests.cli.conftest import Shop
from tests.surface.test_cli import CommandLine

PLANT = """
from datetime import timedelta
from headway import Group, Headway, Run, every, exclude

hw = Headway("plant", database_url={url!r}, default_retry_delay="1m")

@hw.workflow(keep_output=True)
def press(part: dict, run: Run) -> dict:
    if part.get("broken"):
        raise ValueError("jammed")
    run.progress(0.5, "half way")
    return {{"pieces": 3}}

line = Group("line", max_active_jobs=2, priority=7)
night = exclude.window("00:30", "05:00", then="defer")
pressing = hw.schedule(
    press, "press", {{"name": "a"}}, every(hours=1), group=line, priority=3,
    timeout=timedelta(minutes=5), max_retries=4, exclude=[night],
)
pressing.then_include(press, "pack", {{"broken": True}}, group="packing", max_retries=2)
"""
BEGAN = "2026-01-05 00:00:00Z  (long ago)"
AGAIN = "2026-01-05 00:01:00Z  (long ago)"


@pytest.fixture
def plant(headway: CommandLine, database_url: str) -> Shop:
    """A manifest that has run, and one after it that was tried twice and is dead-lettered."""
    headway.write("plant.py", PLANT.format(url=database_url))
    with Sandbox(load("plant:hw"), database_url=database_url) as box:
        box.run_until_idle()
        box.advance(minutes=20)
    return Shop(headway, database_url)


def shown(shop: Shop, *arguments: str) -> tuple[dict[str, str], dict[str, list[list[str]]]]:
    """The fields of what is shown, and the tables below them by their titles.

    How long ago something was depends on today, and how long a step took on the machine.
    """
    told = shop.said(*arguments)
    told = re.sub(r"\(\d+ d ago\)", "(long ago)", re.sub(r"\b\d\.\d\d s\b", "quick", told))
    first, *others = told.rstrip("\n").split("\n\n")
    fields = dict(re.split(r" {2,}", line, maxsplit=1) for line in first.splitlines())
    tables = {}
    for other in others:
        title, *rows = other.splitlines()
        tables[title] = [re.split(r" {2,}", row.strip()) for row in rows]
    return fields, tables


def test_all_of_a_manifest(plant: Shop) -> None:
    fields, tables = shown(plant, "manifests", "show", "press", "--app", "plant:hw")

    assert fields == {
        "external id": "press",
        "state": "idle",
        "enabled": "yes",
        "group": "line",
        "workflow": "press",
        "schedule": "every 1 hour",
        "excluded": "between 00:30 and 05:00 (defer)",
        "input": '{"name": "a"}',
        "priority": "3",
        "timeout": "5 min",
        "retries": "4",
        "last success": BEGAN,
        "declared by": "plant",
    }
    assert len(tables.pop("next runs")) == 5
    assert tables == {
        "before (1)": [["external id", "state", "last success"], ["pack", "failed"]],
        "last executions": [
            ["run", "state", "started", "failure"],
            ["1", "completed", "2026-01-05 00:00:00Z"],
        ],
    }


def test_all_of_a_dependent_manifest(plant: Shop) -> None:
    plant.said("manifests", "disable", "pack")
    plant.said("groups", "set", "packing", "--disable")
    plant.said("dead-letters", "requeue", "1")
    fields, tables = shown(plant, "manifests", "show", "pack", "--app", "plant:hw")

    assert fields == {
        "external id": "pack",
        "state": "disabled",
        "enabled": "no",
        "group": "packing (disabled)",
        "workflow": "press",
        "schedule": "after press",
        "input": '{"broken": true}',
        "priority": "0",
        "retries": "2",
        "declared by": "plant",
        "queued": "entry 4 by requeue",
    }
    failure = "press: ValueError: jammed"
    assert tables == {
        "next runs": [["none by the clock; headway why pack"]],
        "runs after (1)": [
            ["external id", "state", "last success"],
            ["press", "idle", "2026-01-05 00:00:00Z"],
        ],
        "last executions": [
            ["run", "state", "started", "failure"],
            ["3", "failed", "2026-01-05 00:01:00Z", failure],
            ["2", "failed", "2026-01-05 00:00:00Z", failure],
        ],
    }


def test_all_of_a_group(plant: Shop) -> None:
    plant.said("trigger", "press")
    plant.said("trigger", "press")
    dispatch(plant, 4)
    plant.said("groups", "set", "packing", "--priority", "9")
    fields, tables = shown(plant, "groups", "show", "line")

    assert fields == {
        "group": "line",
        "state": "running",
        "enabled": "yes",
        "cap": "2",
        "priority": "7",
        "active": "1",
        "queued": "1",
        "manifests": "1",
        "dead letters": "0",
        "last 24 h": "0 completed, 0 failed, 0 cancelled",
        "before": "packing",
        "changed": BEGAN,
    }
    [holders] = tables.values()
    assert holders[0] == ["execution", "manifest", "state", "since", "step"]
    assert holders[1][:3] == ["4", "press", "pending"]
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ", holders[1][3])
    plant.said("groups", "set", "packing", "--disable")
    assert [line.split() for line in plant.said("groups", "list").splitlines()[1:]] == [
        ["line", "running", "1", "of", "2", "1", "7", "yes", "1", "0", "0", "0"],
        ["packing", "failed", "0", "0", "9", "no", "1", "0", "0", "1"],
    ]
    plant.said("groups", "set", "packing", "--enable")

    fields, _ = shown(plant, "groups", "show", "packing")
    assert fields["changed"].endswith(("(now)", " s ago)"))
    assert fields | {"changed": "now"} == {
        "group": "packing",
        "state": "failed",
        "enabled": "yes",
        "cap": "no cap",
        "priority": "9",
        "active": "0",
        "queued": "0",
        "manifests": "1",
        "dead letters": "1",
        "last 24 h": "0 completed, 0 failed, 0 cancelled",
        "runs after": "line",
        "changed": "now",
    }


def test_what_a_group_did_in_the_last_day(headway: CommandLine, database_url: str) -> None:
    with Scene(database_url, virtual_time=False) as scene:
        scene.failing |= {"b-1", "b-2"}
        for name in ("a-1", "a-2", "a-3", "b-1", "b-2", "c-1"):
            scene.app.schedule("work", name, group="etl", max_retries=1)
        scene.apply()
        for name in ("a-1", "a-2", "a-3", "b-1", "b-2"):
            scene.trigger(name)
        scene.dispatch()
        scene.run()
        scene.trigger("c-1")
        scene.dispatch()
    site = Shop(headway, database_url)
    site.said("cancel", "c-1")

    fields, _ = shown(site, "groups", "show", "etl")
    assert fields["last 24 h"] == "3 completed, 2 failed, 1 cancelled"
    assert (fields["manifests"], fields["dead letters"]) == ("6", "0")
    _, etl = site.said("groups", "list").splitlines()
    assert etl.split() == ["etl", "idle", "0", "0", "0", "yes", "6", "3", "2", "0"]


def test_all_of_an_execution_that_completed(plant: Shop) -> None:
    fields, tables = shown(plant, "executions", "show", "1", "--app", "plant:hw")

    assert fields == {
        "execution": "1",
        "state": "completed",
        "manifest": "press",
        "workflow": "press",
        "group": "line",
        "entry": "1, by schedule",
        "for": BEGAN,
        "queued": BEGAN,
        "dispatched": BEGAN,
        "started": BEGAN,
        "finished": BEGAN,
        "took": "quick",
        "worker": "sandbox",
        "task server": "local",
        "progress": "50% half way",
        "input": '{"name": "a"}',
        "output": '{"pieces":3}',
    }
    assert tables == {
        "steps": [["step", "started", "took"], ["press", "2026-01-05 00:00:00Z", "quick"]]
    }
    told = plant.read("executions", "show", "1", "--app", "plant:hw")["execution"]
    assert (told["input"], told["output"]) == ({"name": "a"}, {"pieces": 3})


def test_all_of_an_execution_that_failed(plant: Shop) -> None:
    fields, tables = shown(plant, "executions", "show", "3")

    masked = "********  (--app MODULE:APP shows what its workflow does not call secret)"
    assert fields == {
        "execution": "3",
        "state": "failed",
        "manifest": "pack",
        "workflow": "press",
        "group": "packing",
        "entry": "3, by dependent",
        "queued": BEGAN,
        "dispatched": AGAIN,
        "started": AGAIN,
        "finished": AGAIN,
        "took": "quick",
        "worker": "sandbox",
        "task server": "local",
        "input": masked,
        "failure": "press: ValueError: jammed",
    }
    assert tables.keys() == {"steps", "Traceback (most recent call last):"}


def test_an_execution_that_is_asked_to_stop_shows_its_attempt_and_the_reason(
    plant: Shop,
) -> None:
    plant.said("trigger", "press", "--max-attempts", "3")
    dispatch(plant, 4)
    claim(plant)
    assert plant.read("cancel", "--execution", "4", "--reason", "wrong day") == {
        "cancelled": 0,
        "requested": 1,
        "finished": None,
    }
    plant.said("trigger", "press")

    fields, tables = shown(plant, "executions", "show", "4")
    assert (fields["state"], fields["attempt"]) == ("in_progress", "1 of 3")
    assert (fields["entry"], fields["cancelled"]) == ("4, by trigger", "wrong day")
    assert "took" not in fields and "finished" not in fields
    [[title, *steps]] = tables.values()
    assert title == ["step", "started", "took"]
    assert [(name, state) for name, _, state in steps] == [("press", "in_progress")]


def test_all_attempts_of_an_entry_are_listed(headway: CommandLine, database_url: str) -> None:
    headway.write("plant.py", PLANT.format(url=database_url))
    with Sandbox(load("plant:hw"), database_url=database_url) as box:
        box.runtime.trigger("pack", {"broken": True}, max_attempts=2)
        box.advance(minutes=2)
    plant = Shop(headway, database_url)
    second, first = plant.read("executions", "list", "--source", "trigger")
    _, tables = shown(plant, "executions", "show", str(second["id"]))

    failure = "press: ValueError: jammed"
    titles, *attempts = tables[f"attempts of entry {first['entry_id']}"]
    assert titles == ["attempt", "execution", "state", "started", "failure"]
    assert [(*row[:3], row[4]) for row in attempts] == [
        ("1", str(first["id"]), "failed", failure),
        ("2", str(second["id"]), "failed", failure),
    ]


def test_all_of_a_dead_letter(plant: Shop) -> None:
    fields, tables = shown(plant, "dead-letters", "show", "1", "--app", "plant:hw")

    failure = "press: ValueError: jammed"
    assert fields == {
        "dead letter": "1",
        "manifest": "pack",
        "group": "packing",
        "workflow": "press",
        "status": "awaiting_intervention",
        "reason": "failed 2 times in a row (max_attempts 2)",
        "failure": failure,
        "since": AGAIN,
        "execution": "3",
        "input": '{"broken": true}',
    }
    assert tables == {
        "last executions": [
            ["execution", "state", "started", "failure"],
            ["3", "failed", "2026-01-05 00:01:00Z", failure],
            ["2", "failed", "2026-01-05 00:00:00Z", failure],
        ],
        "mend it, then: headway dead-letters requeue 1": [
            ["or leave it:", "headway dead-letters acknowledge 1"]
        ],
    }


def test_a_dead_letter_that_is_resolved_says_when_and_why(plant: Shop) -> None:
    plant.said("dead-letters", "acknowledge", "1", "--note", "the press is sold")
    fields, tables = shown(plant, "dead-letters", "show", "1")

    assert fields["status"] == "acknowledged"
    assert fields["note"] == "the press is sold"
    assert re.match(r"20\d\d-\d\d-\d\d .*Z  \((now|\d s ago)\)$", fields["resolved"])
    assert tables.keys() == {"last executions"}


def dispatch(shop: Shop, entry: int) -> None:
    in_store(shop, lambda tx: work_queue.dispatch(tx, [entry]))


def claim(shop: Shop) -> None:
    """Start what is pending, as a worker does, without ever running it."""
    steps = {"press": "press"}
    in_store(shop, lambda tx: executions.claim_pending(tx, "me", 10, ["press"], steps))


def in_store(shop: Shop, act: Callable[[Any], object]) -> None:
    store = Store(shop.database_url)
    with store.writing() as tx:
        act(tx)
    store.close()
