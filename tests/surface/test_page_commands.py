"""headway azolla request-manifest, show, events and unpark."""

from __future__ import annotations

import json
import re
from contextlib import closing

import pytest
from sqlalchemy import update

from headway.cli.narration import Narrator
from headway.domain.azolla.ids import workorder_of
from headway.observe import Event as Told
from headway.store import tables, workorders
from headway.store.engine import Store
from tests.builders import eventually
from tests.surface.command_line import finish, start
from tests.surface.test_cli import CommandLine, assert_brief, headway

__all__ = ["headway"]

SHOP = """
from headway import Headway

hw = Headway("shop", database_url={url!r})

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


@pytest.mark.full
def test_what_was_requested_is_listed_until_a_page_is_there(
    shop: CommandLine, database_url: str
) -> None:
    assert ran(shop, "events", "shop:hw") == "nothing was requested\n"
    code, out, err = shop("azolla", "show", "shop:hw")
    assert (code, out) == (1, "")
    assert_brief(err)
    assert "there is no page yet; ask for one: headway azolla request-manifest shop:hw" in err
    first, hint = ran(shop, "request-manifest", "shop:hw").splitlines()
    event_id = first.removeprefix("requested: ")
    assert hint == "A running headway builds the page: headway azolla show shop:hw"
    listed = ran(shop, "events", "shop:hw")
    assert event_id in listed and "waits" in listed
    ran(shop, "capture", "shop:hw", "the scanner beeps twice\x1b[31m")

    running = start(shop.folder, "run", "shop:hw")
    try:
        with closing(Store(database_url)) as store:
            eventually(lambda: judged(store, event_id))
        page = ran(shop, "show", "shop:hw", "--event", event_id)
        assert page.startswith("# Where was I?") and "1. shop: sort 1 capture" in page
        again = ran(shop, "request-manifest", "shop:hw", "--wait", "30")
        assert again.startswith("# Where was I?")
    finally:
        running.terminate()
        finish(running)
    told = json.loads(ran(shop, "show", "shop:hw", "--event", event_id, "--json"))
    assert told["session_manifest"]["queried_azolla_ids"] == ["shop"]
    assert told["run_record"]["work_order_id"] == workorder_of(event_id)
    assert "SCHEDULED" in ran(shop, "events", "shop:hw")


def judged(store: Store, event_id: str) -> bool:
    with store.reading() as tx:
        return workorders.newest_judged(tx, event_id) is not None


def test_when_nobody_runs_waiting_ends_with_a_sentence(shop: CommandLine) -> None:
    code, out, err = shop("azolla", "request-manifest", "shop:hw", "--wait", "0.3")
    assert (code, out) == (1, "")
    assert_brief(err)
    assert "no page within 0.3 s; is a headway running on this database?" in err


def test_a_parked_request_says_why_and_is_put_back(shop: CommandLine, database_url: str) -> None:
    event_id = ran(shop, "request-manifest", "shop:hw").split()[1]
    code, _, err = shop("azolla", "unpark", "shop:hw", event_id)
    assert code == 1 and f"event '{event_id}' is not parked" in err
    assert_brief(err)
    with closing(Store(database_url)) as store, store.writing() as tx:
        parked = {"parked_at": tx.now, "attempts": 5, "last_error": "query_azollas: no\x1b[31m"}
        tx.connection.execute(update(tables.event).values(parked))
    listed = ran(shop, "events", "shop:hw")
    assert "parked" in listed and r"query_azollas: no\x1b[31m" in listed
    assert ran(shop, "unpark", "shop:hw", event_id) == f"{event_id} is back in the line\n"
    assert "waits" in ran(shop, "events", "shop:hw")


def test_every_state_of_a_request_is_listed(shop: CommandLine, database_url: str) -> None:
    first = ran(shop, "request-manifest", "shop:hw").split()[1]

    def listed(**values: object) -> tuple[list[str], dict[str, object]]:
        with closing(Store(database_url)) as store, store.writing() as tx:
            if values:
                now = {key: tx.now if key.endswith("_at") else one for key, one in values.items()}
                tx.connection.execute(update(tables.event).values(now))
        titles, row = ran(shop, "events", "shop:hw").splitlines()
        assert titles.split("  ")[0] == "requested (UTC)" and titles.split()[2:] == [
            *("event", "state", "why")
        ]
        requested, *cells = re.split(r" {2,}", row.strip())
        assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d", requested)
        assert cells[0] == first
        [told] = json.loads(ran(shop, "events", "shop:hw", "--json"))
        assert (told["event_id"], told["azolla_id"]) == (first, "shop")
        return cells[1:], {key: told[key] for key in ("state", "attempts", "error")}

    assert listed() == (["waits"], {"state": "waits", "attempts": 0, "error": None})
    tried = {"state": "waits, tried 2 times", "attempts": 2, "error": "query_azollas: no"}
    assert listed(attempts=2, last_error="query_azollas: no") == (
        ["waits, tried 2 times", "query_azollas: no"],
        tried,
    )
    cells, told = listed(parked_at=True, attempts=5)
    assert cells[0] == told["state"] == "parked"
    assert "query_azollas: no" in cells[1]
    code, out, err = shop("azolla", "request-manifest", "shop:hw", "--wait", "0.1", "--json")
    assert (code, out) == (1, "") and "no page within 0.1 s" in err


def test_the_page_of_one_request_is_asked_for(shop: CommandLine) -> None:
    code, out, err = shop("azolla", "show", "shop:hw", "--event", "event-1")
    assert (code, out) == (1, "")
    assert "there is no page of event-1; ask for one: headway azolla request-manifest" in err


def test_a_request_that_fails_or_is_put_aside_is_told(caplog: pytest.LogCaptureFixture) -> None:
    narrator = Narrator()
    with caplog.at_level("INFO", "headway.cli"):
        narrator(Told("azolla.failed", {"step": "query_azollas", "error": "OSError: no\x1b"}))
        narrator(Told("azolla.parked", {"event": "event-1", "attempts": 5, "error": "OSError: no"}))
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("WARNING", r"no page     a requested manifest failed in query_azollas: OSError: no\x1b"),
        (
            "ERROR",
            "put aside   request event-1 after 5 attempts: OSError: no; put it back with headway "
            "azolla unpark",
        ),
    ]


@pytest.mark.parametrize("arguments", [("show", "nowhere:hw"), ("events", "shop:nothing")])
def test_a_wrong_target_is_told_in_one_line(shop: CommandLine, arguments: tuple[str, ...]) -> None:
    code, out, err = shop("azolla", *arguments)
    assert (code, out) == (2, "")
    assert_brief(err)
