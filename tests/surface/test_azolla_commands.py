"""headway azolla: notes, objectives and pauses on the command line."""

from __future__ import annotations

import json
import re
import stat
from typing import Any

import pytest

from tests.builders import Scene
from tests.federation.sites import EXECUTOR, EXECUTORS_KEY, KEY, NEXT_KEY, write_registry
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


def cells(table: str) -> list[list[str]]:
    return [re.split(r" {2,}", line.strip()) for line in table.splitlines()]


def test_every_column_of_the_lists(shop: CommandLine) -> None:
    note = ran(shop, "capture", "shop:hw", "orders look low", "--source", "standup").strip()
    titles, row = cells(ran(shop, "captures", "shop:hw"))
    assert titles == ["id", "written (UTC)", "status", "source", "text"]
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d", row.pop(1))
    assert row == [note, "PENDING", "standup", "orders look low"]

    options = ("--urgency", "3", "--importance", "2", "--criteria", "no old rows")
    new = ("objective", "add", "shop:hw", "clean up", "--id", "clean", "--status", "todo", *options)
    added = json.loads(ran(shop, *new, "--json"))
    assert (added["acceptance_criteria"], added["status"]) == ("no old rows", "TODO")
    first = ran(shop, "objective", "block", "shop:hw", "clean", "user_input", "which?").strip()
    again = ran(shop, "objective", "block", "shop:hw", "clean", "dependency_change", "v2").strip()
    gone = ran(shop, "objective", "block", "shop:hw", "clean", "user_input", "when?").strip()
    ran(shop, "objective", "resolve", "shop:hw", gone)
    ran(shop, "objective", "add", "shop:hw", "rest", "--id", "rest")
    blocked = ("objective", "set", "shop:hw", "rest", "--status", "blocked", "--because", "strike")
    told = json.loads(ran(shop, *blocked, "--urgency", "1", "--importance", "4", "--json"))
    assert (told["urgency"], told["importance"]) == (1, 4)
    titles, *rows = cells(ran(shop, "objective", "list", "shop:hw"))
    assert titles == [
        *("id", "status", "urgency", "importance", "touched (UTC)", "title", "waits for")
    ]
    found = {row[0]: [*row[1:4], *row[5:]] for row in rows}
    assert found["clean"] == [*("BLOCKED", "3", "2", "clean up", f"which? ({first}); v2 ({again})")]
    assert found["rest"] == ["BLOCKED", "1", "4", "rest", "strike"]
    changed = ("objective", "set", "shop:hw", "clean", "--criteria", "no rows at all")
    told = json.loads(ran(shop, *changed, "--json"))
    assert (told["acceptance_criteria"], told["title"]) == ("no rows at all", "clean up")


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
    titles, *rows = cells(out)
    assert titles == ["since (UTC)", "reason", "what to do"]
    assert re.fullmatch(r"2030-01-07 12:\d\d", rows[0][0]) and rows[0][1] == "GATE_FAILED"
    assert [len(row) for row in rows] == [3, 1, 1], "moment and reason are told once"
    [pause] = json.loads(ran(shop, "pauses", "shop:hw", "--reason", "gate_failed", "--json"))
    assert [rows[0][2], rows[1][0], rows[2][0]] == pause["prioritized_actions"]
    assert (pause["azolla_id"], len(pause["prioritized_actions"])) == ("shop", 3)
    assert json.loads(ran(shop, "pauses", "shop:hw", "--reason", "run_complete", "--json")) == []


PEERS = """
from headway import Headway

hw = Headway("sales", database_url="sqlite:///shop.db", azolla_registry="azolla.toml")
"""


def test_peers_and_pings_for_programs(headway: CommandLine) -> None:
    headway.write("shop.py", PEERS)
    away = {"warehouse": "http://127.0.0.1:1", EXECUTOR: "http://127.0.0.1:2"}
    keys = {"warehouse": [KEY], EXECUTOR: [EXECUTORS_KEY, NEXT_KEY]}
    write_registry(headway.folder, "sales", urls=away, keys=keys)

    ours = {
        "blueprint": "task-management",
        "reads": ["objective", "pause_state"],
        "stores": ["objective", "pause_state"],
    }
    theirs = {
        "blueprint": "code-patch",
        "reads": [],
        "stores": ["blocker_ref", "objective", "pause_state"],
    }
    assert json.loads(ran(headway, "peers", "shop:hw", "--json")) == [
        {"azolla": "sales", "address": None, **ours},
        {"azolla": "warehouse", "address": away["warehouse"], **ours},
        {"azolla": EXECUTOR, "address": away[EXECUTOR], **theirs},
    ]
    assert cells(ran(headway, "peers", "shop:hw"))[3] == [
        *(EXECUTOR, away[EXECUTOR], "2026-11, 2026-12", "code-patch", "nothing"),
        "blocker_ref, objective, pause_state",
    ]

    code, out, err = headway("azolla", "ping", "shop:hw", "--json")
    refused = {"ahead": None, "note": "could not be asked: Connection refused"}
    assert (code, err) == (1, "")
    assert json.loads(out) == [{"peer_id": name, **refused} for name in away]
    code, out, _ = headway("azolla", "ping", "shop:hw", EXECUTOR)
    assert (code, out) == (1, f"{EXECUTOR}: could not be asked: Connection refused\n")


def test_a_query_that_is_not_answered(headway: CommandLine) -> None:
    headway.write("shop.py", PEERS)
    write_registry(headway.folder, "sales", urls={"warehouse": "http://127.0.0.1:1"},
                   keys={"warehouse": [KEY]})  # fmt: skip
    asked = ("azolla", "query", "shop:hw", "warehouse", "objective")

    code, out, err = headway(*asked)
    assert (code, out) == (1, "")
    assert err == "headway: warehouse: TARGET_UNAVAILABLE: could not be asked: Connection refused\n"
    code, out, _ = headway(*asked, "--json")
    told = json.loads(out)
    assert (code, told["note"]) == (1, "could not be asked: Connection refused")
    assert (told["response"]["status"], told["response"]["results"]) == ("TARGET_UNAVAILABLE", [])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--filter", "x"), "--filter = 'x': must be KEY=VALUE; for example --filter limit=10"),
        (("--filter", "=1"), "--filter = '=1': must be KEY=VALUE"),
        (("--filter", "limit=0"), "filter.limit = 0"),
        (("--filter", "x=1"), "filter.x = 1: is no key"),
    ],
)
def test_a_filter_that_is_refused(
    headway: CommandLine, options: tuple[str, ...], said: str
) -> None:
    headway.write("shop.py", PEERS)
    write_registry(headway.folder, "sales", urls={"warehouse": "http://127.0.0.1:1"},
                   keys={"warehouse": [KEY]})  # fmt: skip
    code, out, err = headway("azolla", "query", "shop:hw", "warehouse", "objective", *options)
    assert (code, out) == (2, "")
    assert said in err
    assert_brief(err, lines=1)


@pytest.mark.parametrize("command", [("ping",), ("query",)])
def test_a_peer_that_is_not_known_is_refused(
    headway: CommandLine, command: tuple[str, ...]
) -> None:
    headway.write("shop.py", PEERS)
    urls = {name: "http://127.0.0.1:1" for name in ("warehouse", EXECUTOR)}
    keys = {"warehouse": [KEY], EXECUTOR: [EXECUTORS_KEY]}
    write_registry(headway.folder, "sales", urls=urls, keys=keys)
    what = ("objective",) if command == ("query",) else ()
    code, out, err = headway("azolla", *command, "shop:hw", "nobody", *what)
    assert (code, out) == (2, "")
    told = "PEER = 'nobody': must be a peer of the registry, for example one of: warehouse, patches"
    assert told in err


def test_a_secret_is_made_for_a_file_or_for_the_terminal(headway: CommandLine) -> None:
    first, second = ran(headway, "keygen").strip(), ran(headway, "keygen").strip()
    assert first != second and min(len(first), len(second)) >= 32

    assert json.loads(ran(headway, "keygen", "sales.key", "--json")) == {"file": "sales.key"}
    file = headway.folder / "sales.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(file.read_text().strip()) >= 32
    before = file.read_text()
    code, out, err = headway("azolla", "keygen", "sales.key")
    assert (code, out) == (1, "")
    assert err == "headway: cannot write sales.key: File exists; choose a new file\n"
    assert file.read_text() == before
    told = ran(headway, "keygen", "other.key")
    assert told == "wrote other.key; copy it to the other deployment, over a channel you trust\n"


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
