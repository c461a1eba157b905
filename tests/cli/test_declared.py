"""What an application declares, as check, preview, plan, apply and db tell it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from headway.store.migrate import migrations_for
from tests.surface.test_cli import CommandLine

SHOP = """
from datetime import UTC, datetime, timedelta
from headway import Group, Headway, cron, every, exclude, once

hw = Headway("shop", database_url="sqlite:///shop.db")

@hw.workflow
def load(table: str) -> None: ...

@hw.workflow
def unused() -> None: ...

night = exclude.window("00:30", "05:00", then="defer")
etl = Group("etl", max_active_jobs=2)
hw.schedule(
    load, "hourly", "h", every(hours=1), group=etl, variance=timedelta(minutes=10), exclude=[night]
)
hw.schedule(load, "early", "e", cron("0 3 * * *"), exclude=[night])
hw.schedule(load, "off", "o", every(hours=1), enabled=False)
hw.schedule(load, "resting", "r", every(hours=1), group=Group("rest", enabled=False))
hw.schedule(load, "future", "f", once(datetime(2090, 1, 1, tzinfo=UTC)))
monday = hw.schedule(load, "monday", "m", cron("0 9 * * 1", tz="Europe/Berlin"))
monday.then_include(load, "after", "a")
hw.schedule(load, "manual", "m")
"""
EVERY_DAY = r"\w{3} \d{4}-\d\d-\d\d"
MOMENT = rf"{EVERY_DAY} \d\d:\d\d:\d\d"
MIGRATIONS = [f"{one.version:04d} {one.name}" for one in migrations_for("sqlite")]
NEWEST = migrations_for("sqlite")[-1].version


@pytest.fixture
def shop(headway: CommandLine) -> CommandLine:
    headway.write("shop.py", SHOP)
    return headway


def read(command: CommandLine, *arguments: str, code: int = 0, err: str = "") -> Any:
    ended, out, told = command(*arguments, "--json")
    assert (ended, told) == (code, err)
    return json.loads(out)


def test_check_shows_each_manifest_with_its_next_run_by_the_clock(shop: CommandLine) -> None:
    code, out, err = shop("check", "shop:hw")

    assert (code, err) == (0, "")
    told = re.sub(r"20[2-7]\d-\d\d-\d\d", "DAY", out.replace("CEST", "CET"))
    future = "2090-01-01 00:00:00 UTC"
    assert [re.split(r" {2,}", line.strip()) for line in told.splitlines()] == [
        ["external id", "workflow", "group", "schedule", "next by the clock"],
        ["hourly", "load", "etl", "every 1 hour"],
        ["early", "load", "early", "At 03:00 every day", "DAY 03:00:00 UTC"],
        ["off", "load", "off", "disabled"],
        ["resting", "load", "rest", "every 1 hour"],
        ["future", "load", "future", f"once at {future}", future],
        ["monday", "load", "monday", "At 09:00 on Monday (Europe/Berlin)", "DAY 09:00:00 CET"],
        ["after", "load", "after", "after monday"],
        ["manual", "load", "manual", "only when triggered"],
        ["workflows without a manifest: unused"],
        ["shop:hw is fine: 8 manifests, database sqlite:///shop.db"],
    ]


def test_check_tells_programs_all_of_it(shop: CommandLine) -> None:
    told = read(shop, "check", "shop:hw")

    hourly, _, off, *_ = told.pop("manifests")
    assert told == {
        "application": "shop",
        "database": "sqlite:///shop.db",
        "remarks": ["workflows without a manifest: unused"],
    }
    about = {"workflow": "load", "schedule": "every 1 hour"}
    assert hourly == {"external_id": "hourly", "group": "etl", "enabled": True, **about}
    assert off == {"external_id": "off", "group": "off", "enabled": False, **about}


def test_check_of_a_single_manifest(headway: CommandLine) -> None:
    headway.write("shop.py", SHOP.partition("night =")[0] + 'hw.schedule(unused, "one")\n')
    code, out, _ = headway("check", "shop:hw")
    assert code == 0
    assert out.endswith("shop:hw is fine: 1 manifest, database sqlite:///shop.db\n")
    for options, days in (((), "7 days"), (("--days", "1"), "day")):
        _, out, _ = headway("preview", "shop:hw", *options)
        assert re.search(rf"^1 manifest, the next {days} from {MOMENT} UTC, if", out, re.M)


def test_preview_says_what_moves_or_stops_a_run(shop: CommandLine) -> None:
    code, out, err = shop("preview", "shop:hw", "--days", "2", "--limit", "2")

    assert (code, err) == (0, "")
    blocks: dict[str, list[str]] = {}
    title = ""
    for line in out.splitlines()[:-1]:
        if line.startswith(" "):
            blocks[title].append(line.strip())
        else:
            title = line
            blocks[title] = []
    excluded = "not between 00:30 and 05:00 (defer)"
    assert [*blocks] == [
        f"hourly  every 1 hour, up to 0:10:00 later, {excluded}",
        f"early  At 03:00 every day, {excluded}",
        "off  every 1 hour",
        "resting  every 1 hour",
        "future  once at 2090-01-01 00:00:00 UTC",
        "monday  At 09:00 on Monday (Europe/Berlin)",
        "after  after monday",
        "manual  only when triggered",
    ]
    hourly, early, off, resting, future, monday, after, manual = blocks.values()
    assert len(hourly) == 3 and hourly[2] == "and more; --limit 20 shows more of them"
    # By its variance a run may come later, or just in time.
    assert re.fullmatch(rf"{MOMENT} UTC   first run(, at once)?", hourly[0])
    assert re.fullmatch(rf"{MOMENT} UTC(   for {MOMENT} UTC)?", hourly[1])
    deferred = rf"{EVERY_DAY} 05:00:00 UTC   for {EVERY_DAY} 03:00:00 UTC"
    assert re.fullmatch(deferred, early[1])
    assert off == ["switched off: enabled=False"]
    assert resting == ["switched off with its group rest"]
    [never] = future
    assert re.fullmatch(rf"no run before {MOMENT} UTC", never)
    assert re.fullmatch(rf"{MOMENT} CES?T   {MOMENT} UTC   first run, at once", monday[0])
    assert after == manual == []
    assert re.match(rf"8 manifests, the next 2 days from {MOMENT} UTC", out.splitlines()[-1])


def test_preview_tells_programs_the_same(shop: CommandLine) -> None:
    told = read(shop, "preview", "shop:hw", "--days", "14", "--limit", "2")

    assert {one["external_id"]: len(one["runs"]) for one in told} == {
        "hourly": 2,
        "early": 2,
        "off": 0,
        "resting": 0,
        "future": 0,
        "monday": 2,
        "after": 0,
        "manual": 0,
    }
    early = told[1]
    assert early["schedule"] == "At 03:00 every day, not between 00:30 and 05:00 (defer)"
    assert early["runs"][1]["at"].endswith("T05:00:00Z")
    assert early["runs"][1]["stands_for"].endswith("T03:00:00Z")


def test_plan_apply_and_status_tell_programs_what_they_tell_people(shop: CommandLine) -> None:
    about = {"database": "sqlite:///shop.db", "needed": NEWEST}
    assert read(shop, "db", "status", "shop:hw", code=3) == {
        "version": 0,
        "pending": MIGRATIONS,
        **about,
    }
    planned = read(shop, "plan", "shop:hw", code=3)
    assert len(planned["created"]) == 8 and len(planned["groups"]) == 2
    assert read(
        shop, "apply", "shop:hw", err="shop: 8 to add, 2 group changes, 0 as declared\n"
    ) == {
        "created": 8,
        "changed": 0,
        "unchanged": 0,
        "removed": 0,
        "kept_back": 0,
        "outdated": False,
    }
    assert read(shop, "plan", "shop:hw")["unchanged"] == 8
    assert read(shop, "db", "status", "shop:hw") == {"version": NEWEST, "pending": [], **about}


def test_migrating_tells_programs_what_was_applied(headway: CommandLine) -> None:
    address = ("--database-url", "sqlite:///new.db")
    about = {"database": "sqlite:///new.db", "version": NEWEST}
    assert read(headway, "db", "migrate", *address) == {"applied": MIGRATIONS, **about}
    assert read(headway, "db", "migrate", *address) == {"applied": [], **about}
    assert headway("db", "status", *address).out.splitlines() == [
        "database  sqlite:///new.db",
        f"version   {NEWEST} (this headway needs {NEWEST})",
        "pending   nothing",
    ]


def test_migrating_says_each_migration_and_the_version(headway: CommandLine) -> None:
    address = ("--database-url", "sqlite:///new.db")
    assert headway("db", "migrate", *address).out.splitlines() == [
        *(f"applied {label}" for label in MIGRATIONS),
        f"migrated sqlite:///new.db: version {NEWEST}",
    ]
    assert headway("db", "migrate", *address).out == (
        f"sqlite:///new.db is up to date: version {NEWEST}\n"
    )


def test_an_application_without_a_database_is_planned_against_nothing(shop: CommandLine) -> None:
    """And the address of the option goes before its own."""
    assert shop("apply", "shop:hw", "--yes", "--database-url", "sqlite:///other.db").code == 0
    code, out, err = shop("plan", "shop:hw")
    assert (code, err) == (3, "")
    assert out.splitlines()[0] == "shop:hw on sqlite:///shop.db"
    assert shop("plan", "shop:hw", "--database-url", "sqlite:///other.db").out.splitlines() == [
        "shop:hw on sqlite:///other.db",
        "shop: nothing to change, 8 as declared",
    ]
    assert not (shop.folder / "shop.db").exists()
