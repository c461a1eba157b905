"""Queued entries that new code can never run: headway plan and headway run say so."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from headway.applying import apply_at_start, apply_declarations
from headway.cli.narration import Narrator
from headway.definition.app import Headway
from headway.definition.stranded import why_stranded
from headway.domain.isolation import Isolation
from headway.domain.work_queue import Source
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.work_queue import enqueue
from tests.builders import Recorder
from tests.store.factories import entry_for
from tests.surface.test_cli import CommandLine, headway

__all__ = ["headway"]

OLD = """
from pydantic import BaseModel
from headway import Headway, every

hw = Headway("shop")

class Table(BaseModel):
    name: str

@hw.workflow
def extract(table: Table) -> None: ...

@hw.workflow
def load(table: Table) -> None: ...

hw.schedule(extract, "extract-orders", Table(name="orders"), every(hours=1))
hw.schedule(load, "load-orders", Table(name="orders"), every(hours=1))
hw.schedule(load, "load-users", Table(name="users"), every(hours=1))
"""
NEW = (
    OLD.replace("def extract(", "def extract_all(")
    .replace("schedule(extract,", "schedule(extract_all,")
    .replace("    name: str\n", "    name: str\n    region: str\n")
    .replace('(name="orders")', '(name="orders", region="eu")')
    .replace('(name="users")', '(name="users", region="eu")')
)


def declared(text: str, url: str) -> Headway:
    names: dict[str, Any] = {"__name__": "shop"}
    exec(text, names)  # noqa: S102 (written above)
    hw: Headway = names["hw"]
    hw.database_url = url
    return hw


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """The first code applied, and entries of it in the queue."""
    store = Store(database_url)
    migrate(store)
    apply_declarations(declared(OLD, database_url), store)
    with store.writing() as tx:
        wanted = [entry_for(tx, "extract-orders"), entry_for(tx, "load-orders")]
        again = entry_for(tx, "load-users", source=Source.TRIGGER)
        fits = {"source": Source.TRIGGER, "input": '{"name":"users","region":"eu"}'}
        enqueue(tx, [*wanted, again, entry_for(tx, "load-users", **fits)])
    yield store
    store.close()


def test_a_plan_says_which_queued_entries_can_never_run(
    headway: CommandLine, store: Store, database_url: str
) -> None:
    headway.write("shop.py", NEW)

    code, out, _ = headway("plan", "shop:hw", "--database-url", database_url)
    assert code == 3
    lines = [line.strip() for line in out.splitlines()]
    # Of load-users two are queued, one of which fits; none of the others does.
    assert [line for line in lines if "run as they were queued" in line] == [
        "1 queued, run as they were queued"
    ]
    assert "1 queued, cannot run: workflow 'extract' is not registered" in out
    assert out.count("1 queued, cannot run: load: input field 'region' is missing") == 2
    assert "3 queued entries cannot run with this code; see them: headway queue list" in out

    told = json.loads(headway("plan", "shop:hw", "--json", "--database-url", database_url).out)
    assert [(one["external_id"], one["count"]) for one in told["stranded"]] == [
        ("extract-orders", 1),
        ("load-orders", 1),
        ("load-users", 1),
    ]


def test_code_that_fits_strands_nothing(
    headway: CommandLine, store: Store, database_url: str
) -> None:
    headway.write("shop.py", OLD)

    code, out, _ = headway("plan", "shop:hw", "--database-url", database_url)
    assert code == 0
    assert "cannot run" not in out


def test_a_start_logs_the_entries_that_can_never_run(
    store: Store, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = declared(NEW, database_url)
    events = Recorder(app.observer)
    app.observer.subscribe(Narrator())
    with caplog.at_level(logging.WARNING, "headway.cli"):
        apply_at_start(app, store)

    told = [event.fields for event in events.named("queue.stranded")]
    assert [(one["workflow"], one["count"]) for one in told] == [("extract", 1), ("load", 2)]
    assert "'region' is missing" in told[1]["reason"]
    lines = [one.getMessage() for one in caplog.records if one.name == "headway.cli"]
    assert any("2 queued entries of workflow load, first entry" in line for line in lines)


def test_an_isolated_workflow_reads_its_inputs_in_its_own_process_only(
    store: Store, database_url: str
) -> None:
    app = declared(OLD, database_url)
    registered = app.registry.find("load")
    assert why_stranded(registered, '{"nothing": 1}')
    assert why_stranded(replace(registered, isolation=Isolation(None)), '{"nothing": 1}') is None
