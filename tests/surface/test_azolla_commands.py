"""headway azolla: notes, objectives and pauses on the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.builders import Scene
from tests.surface.test_cli import CommandLine, assert_brief, headway

__all__ = ["headway"]

SHOP = """
from headway import Headway, Run

hw = Headway("shop", database_url={url!r}, default_max_retries=1)

@hw.workflow
def load(run: Run) -> None:
    raise ValueError("bad row")

@hw.workflow
def report(run: Run) -> None:
    run.hand_over("check the figures", "publish them")

hw.schedule(load, "load-users")
hw.schedule(report, "report-users")
"""


@pytest.fixture
def shop(headway: CommandLine, database_url: str) -> CommandLine:
    headway.write("shop.py", SHOP.format(url=database_url))
    assert headway("db", "migrate", "shop:hw").code == 0
    return headway


def ran(command: CommandLine, *arguments: str) -> str:
    code, out, err = command("azolla", *arguments)
    assert (code, err) == (0, "")
    return out


def test_captures(shop: CommandLine) -> None:
    assert ran(shop, "captures", "shop:hw") == "no captures wait\n"
    first = ran(shop, "capture", "shop:hw", "orders look [bold]low\x1b[31m").strip()
    ran(shop, "capture", "shop:hw", "so do sales", "--source", "standup")
    out = ran(shop, "captures", "shop:hw")
    assert first in out and r"orders look [bold]low\x1b[31m" in out and "standup" in out
    told = ran(shop, "processed", "shop:hw", first, "nobody")
    assert told == "1 of 2 were pending and are processed now\n"
    assert first not in ran(shop, "captures", "shop:hw")
    listed = json.loads(ran(shop, "captures", "shop:hw", "--all", "--json"))
    assert {one["capture_id"]: one["status"] for one in listed}[first] == "PROCESSED"
    assert len(listed) == 2
    assert len(json.loads(ran(shop, "captures", "shop:hw", "--all", "--limit", "1", "--json"))) == 1


def test_what_is_done_is_told_to_programs_too(shop: CommandLine) -> None:
    def read(*arguments: str) -> Any:
        return json.loads(ran(shop, *arguments, "--json"))

    note = read("capture", "shop:hw", "orders look low")
    assert read("captures", "shop:hw") == [note]
    assert read("processed", "shop:hw", note["capture_id"]) == {"processed": 1, "asked": 1}
    added = read("objective", "add", "shop:hw", "clean up", "--id", "clean")
    assert added in read("objective", "list", "shop:hw")
    blocker = read("objective", "block", "shop:hw", "clean", "user_input", "which?")
    resolved = read("objective", "resolve", "shop:hw", blocker["blocker_id"])
    assert resolved == {"blocker_id": blocker["blocker_id"], "resolved": True}
    changed = read("objective", "set", "shop:hw", "clean", "--status", "done")
    assert (changed["objective_id"], changed["status"]) == ("clean", "DONE")
    assert read("request-manifest", "shop:hw")["event_id"].startswith("event-")
    assert set(read("keygen")) == {"secret"}


def test_objectives(shop: CommandLine) -> None:
    options = ("--urgency", "3", "--importance", "2", "--criteria", "no old rows")
    added = ran(shop, "objective", "add", "shop:hw", "clean up", "--id", "clean", *options)
    assert added == "clean\n"
    blocker = ran(shop, "objective", "block", "shop:hw", "clean", "user_input", "which?").strip()
    out = ran(shop, "objective", "list", "shop:hw")
    assert f"which? ({blocker})" in out and "BLOCKED" in out and "standing" in out
    assert ran(shop, "objective", "resolve", "shop:hw", blocker) == f"{blocker} is resolved\n"
    changed = ran(shop, "objective", "set", "shop:hw", "clean", "--status", "in_progress")
    assert changed == "clean: IN_PROGRESS, urgency 3, importance 2, clean up\n"
    ran(shop, "objective", "set", "shop:hw", "clean", "--title", "x", "--because", "no access")
    [one] = json.loads(
        ran(
            shop,
            "objective",
            "list",
            "shop:hw",
            "--status",
            "in_progress",
            "--json",
            "--limit",
            "1",
        )
    )
    assert (one["title"], one["blocked_reason"]) == ("x", "no access")
    listed = ("objective", "list", "shop:hw", "--json")
    assert len(json.loads(ran(shop, *listed))) == 2, "with the standing one"
    assert len(json.loads(ran(shop, *listed, "--limit", "1"))) == 1
    assert one["blocked_on"][0]["resolved"] is True


def test_pauses(shop: CommandLine, database_url: str) -> None:
    assert ran(shop, "pauses", "shop:hw") == "nothing rests\n"
    ran(shop, "capture", "shop:hw", "so that there is a standing objective")
    with Scene(database_url) as scene:
        scene.configure(default_max_retries=1)
        scene.failing.add("load-users")
        scene.app.schedule("work", "load-users", None)
        scene.apply()
        scene.trigger("load-users")
        scene.dispatch()
        scene.run()
        scene.manage()
    out = ran(shop, "pauses", "shop:hw")
    assert "GATE_FAILED" in out
    assert "of load-users: RuntimeError: told to fail" in out
    assert "headway dead-letters requeue " in out
    [pause] = json.loads(ran(shop, "pauses", "shop:hw", "--reason", "gate_failed", "--json"))
    assert (pause["azolla_id"], len(pause["prioritized_actions"])) == ("shop", 3)
    assert json.loads(ran(shop, "pauses", "shop:hw", "--reason", "run_complete", "--json")) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("capture", "shop:hw", " "), "capture text = ' ': must be a text that says something"),
        (("captures", "shop:hw", "--limit", "0"), "limit = 0: must be a whole number from 1"),
        (("pauses", "shop:hw", "--reason", "tired"), "reason = 'tired': must be RUN_COMPLETE"),
        (("objective", "add", "shop:hw", "x", "--urgency", "9"), "urgency = 9: must be a whole"),
        (("objective", "add", "shop:hw", "x", "--status", "open"), "status = 'open': must be NEW"),
        (("objective", "set", "shop:hw", "x", "--status", "done"), "objective = 'x': there is non"),
        (("objective", "set", "shop:hw", "x"), "objective 'x': nothing to change; for example"),
        (("objective", "block", "shop:hw", "x", "rain", "x"), "kind = 'rain': must be USER_INPUT"),
        (("objective", "resolve", "shop:hw", "x"), "blocker = 'x': there is none of this id"),
        (("captures", "nothere:hw"), "run this in the folder that holds nothere.py"),
    ],
)
def test_wrong_input_is_told_in_one_line(
    headway: CommandLine, arguments: tuple[str, ...], said: str
) -> None:
    headway.write("shop.py", SHOP.format(url="sqlite:///shop.db"))
    code, out, err = headway("azolla", *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert_brief(err, lines=1)


@pytest.mark.parametrize("arguments", [("azolla",), ("azolla", "objective")])
def test_without_a_command_the_help_is_shown(
    headway: CommandLine, arguments: tuple[str, ...]
) -> None:
    code, out, err = headway(*arguments)
    assert (code, err) == (2, "")
    assert "Usage: headway azolla" in out
