"""No page reads a table whole, whatever the values: the plans of every statement it sends."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, event

from headway.history import History, Tallying
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.reading import queue_pages
from headway.store.tables import (
    audit,
    dead_letter,
    execution_history,
    manifest,
    manifest_state,
    tally,
    work_queue,
)
from tests.history.calls import calls, depths
from tests.history.seeding import Size, seed
from tests.pgbouncer import create_schema, drop_schema, with_setting
from tests.store.factories import Clock
from tests.store.test_hot_verbs import generic_plan

SIZE = Size(manifests=20_000, groups=2_000, executions=50_000, queued=5_000)
# All but the groups: where thousands of entries are sorted by theirs, these are looked up at once.
NEVER_WHOLE = (
    manifest,
    manifest_state,
    execution_history,
    work_queue,
    dead_letter,
    audit,
    tally,
)


@pytest.fixture(scope="module")
def large_url(postgres_database: str) -> Iterator[str]:
    """One large database for all these tests, under generic plans."""
    name = f"large_{os.urandom(6).hex()}"
    address = create_schema(postgres_database, name)
    store = Store(address, clock=Clock(), durable=False)
    migrate(store)
    seed(store, SIZE)
    while Tallying(store).run_once():
        pass
    store.close()
    yield with_setting(address, "plan_cache_mode", "force_generic_plan")
    drop_schema(postgres_database, name)


@pytest.fixture(scope="module")
def large(large_url: str) -> Iterator[Store]:
    store = Store(large_url, clock=Clock(), durable=False)
    yield store
    store.close()


@contextmanager
def noted() -> Iterator[list[tuple[str, Any]]]:
    """Every statement that is sent meanwhile, with its values."""
    sent: list[tuple[str, Any]] = []

    def note(_c: Any, _cursor: Any, statement: str, values: Any, *_more: Any) -> None:
        sent.append((statement, values))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(Engine, "before_cursor_execute", note)


@pytest.mark.long
@pytest.mark.parametrize("names", ["", "queue"])
def test_no_page_reads_a_table_whole(
    large: Store, names: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once more for the queue as if it were too long to be sorted."""
    if names:
        monkeypatch.setattr(queue_pages, "SORTED", 0)
    found: list[str] = []
    asked = calls(History(large), Clock().now) | depths(large)
    for name, call in asked.items():
        if not name.startswith(names):
            continue
        with noted() as sent:
            call()
        with large.reading() as tx:
            for statement, values in sent:
                if statement.lstrip().startswith(("SELECT set_config", "BEGIN")):
                    continue
                plan = generic_plan(tx, statement, values)
                found += [f"{name}: {line.strip()}" for line in _whole(plan)]
    assert found == [], "\n".join(found)


def _whole(plan: str) -> list[str]:
    scans = "|".join(f"Seq Scan on {table.name}\\b" for table in NEVER_WHOLE)
    return [line for line in plan.splitlines() if re.search(scans, line)]
