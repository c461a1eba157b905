"""Seed 003, the layers against queueing twice: the lock, the guards, the unique index.

Where a test is of the lock itself it runs on PostgreSQL alone: SQLite has one writer and no lock.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy import event, select, text

from headway import every
from headway.manager.cycle import ManagerResult, ManifestManager
from headway.manager.decide import Verdict
from headway.service import Service
from headway.store import engine, manifests, wakes, work_queue
from headway.store.engine import Store
from headway.store.locks import Lock
from headway.store.tables import manifest, manifest_state
from headway.store.transaction import Transaction
from headway.wakeups import Role
from tests.builders import Recorder, Scene, eventually, names
from tests.pgbouncer import create_schema, drop_schema
from tests.store.factories import at_once

ROUNDS = 10
MANY = 8


def declare(scene: Scene, count: int = MANY) -> None:
    for number in range(count):
        scene.app.schedule("work", f"load-{number}", None, every(hours=1), max_retries=1)
    scene.apply()


def queued_once(scene: Scene) -> bool:
    counts = Counter(names(scene.history.queue.all()))
    return counts == {f"load-{number}": 1 for number in range(MANY)}


@pytest.fixture
def second(scene: Scene) -> Iterator[Store]:
    """The same database as another process has it open."""
    store = Store(scene.url, clock=scene.clock, durable=False)
    yield store
    store.close()


@pytest.fixture
def on_postgresql(postgres_url: str) -> Iterator[tuple[Scene, Store]]:
    with Scene(postgres_url) as scene:
        store = Store(postgres_url, clock=scene.clock)
        yield scene, store
        store.close()


# The outer layer: one leader


def statements_of(store: Store, act: Callable[[], object]) -> list[str]:
    sent: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        sent.append(statement)

    event.listen(store._writer, "before_cursor_execute", note)
    act()
    event.remove(store._writer, "before_cursor_execute", note)
    return sent


def test_the_lock_is_tried_before_anything_is_read(on_postgresql: tuple[Scene, Store]) -> None:
    scene, _ = on_postgresql
    declare(scene)

    [first, *others] = statements_of(scene.store, scene.manage)

    assert "pg_try_advisory_xact_lock" in first and " FROM " not in first
    assert others and not any("advisory" in statement for statement in others)


def test_on_sqlite_no_lock_is_asked_for(sqlite_url: str) -> None:
    with Scene(sqlite_url) as scene:
        declare(scene)
        sent = statements_of(scene.store, scene.manage)
        assert sent and not any("lock" in statement for statement in sent)
        assert queued_once(scene)


def test_a_server_that_is_not_the_leader_skips_the_cycle_quietly(
    on_postgresql: tuple[Scene, Store], caplog: pytest.LogCaptureFixture
) -> None:
    scene, second = on_postgresql
    declare(scene)
    caplog.set_level(logging.DEBUG)
    told = len(scene.events.events)
    with scene.store.leading(Lock.MANAGE) as leader:
        assert leader is not None
        caplog.clear()
        sent = statements_of(second, lambda: scene.manage(second))
        assert scene.manage(second) == ManagerResult(led=False)

    assert "pg_try_advisory_xact_lock" in sent[0]
    assert not any("headway_" in statement for statement in sent), "not a table was looked at"
    assert (len(scene.events.events), caplog.records) == (told, [])


def test_a_server_that_was_not_the_leader_tries_again_at_its_next_poll(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Scene(postgres_url, virtual_time=False) as scene:
        app = scene.new_app(manager_polling_interval="0.1s")
        for number in range(MANY):
            app.schedule("work", f"load-{number}", None, every(hours=1))
        events, led = Recorder(app.observer), list[bool]()
        cycle = ManifestManager.run_once

        def noted(manager: ManifestManager) -> ManagerResult:
            result = cycle(manager)
            led.append(result.led)
            return result

        monkeypatch.setattr(ManifestManager, "run_once", noted)
        service = Service(app, {Role.MANAGER}, Store(postgres_url))
        try:
            with scene.store.leading(Lock.MANAGE, seconds=60):
                service.start()
                eventually(lambda: len(led) >= 3)
                assert not any(led)
            eventually(lambda: queued_once(scene))
        finally:
            service.stop()
        assert events.named("loop.failed") == []


def test_two_deployments_in_one_database_lead_at_the_same_time(
    on_postgresql: tuple[Scene, Store], postgres_database: str
) -> None:
    scene, _ = on_postgresql
    name = f"other_{os.urandom(6).hex()}"
    address = create_schema(postgres_database, name)
    try:
        with Scene(address) as other:
            declare(other)
            with scene.store.leading(Lock.MANAGE) as leader:
                assert leader is not None
                assert other.manage().queued == MANY
    finally:
        drop_schema(postgres_database, name)


@pytest.mark.parametrize("fails", [False, True], ids=["commit", "rollback"])
def test_the_lock_ends_with_the_transaction(
    on_postgresql: tuple[Scene, Store], monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    scene, second = on_postgresql
    declare(scene)

    enqueue = work_queue.enqueue

    def look_and_enqueue(tx: Transaction, entries: Any) -> list[int]:
        with second.leading(Lock.MANAGE) as other:
            assert other is None, "held until the very last step"
        if fails:
            raise ConnectionError("the cable is out")
        return enqueue(tx, entries)

    with monkeypatch.context() as watched:
        watched.setattr(work_queue, "enqueue", look_and_enqueue)
        if fails:
            with pytest.raises(Exception, match="create_work_queue_entries"):
                scene.manage()
        else:
            scene.manage()

    assert queued_once(scene) is not fails, "all of it or nothing"
    with second.leading(Lock.MANAGE) as other:
        assert other is not None


def test_nobody_sees_anything_of_a_cycle_before_all_of_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(scene)
    scene.failing = {"load-0"}
    scene.cycle()
    scene.clock.advance(hours=1)
    seen: list[tuple[int, int]] = []
    settle = wakes.settle

    def look(tx: Transaction, times: Any) -> None:
        settle(tx, times)
        seen.append((len(scene.history.queue.all()), len(scene.history.dead_letters.awaiting())))

    monkeypatch.setattr(wakes, "settle", look)
    result = scene.manage()

    assert (result.queued, result.dead_lettered) == (MANY - 1, 1)
    assert seen == [(0, 0)]
    assert (len(scene.history.queue.all()), len(scene.history.dead_letters.awaiting())) == (
        MANY - 1,
        1,
    )


@pytest.mark.story(26)
def test_of_two_managers_at_once_each_job_is_queued_by_one(scene: Scene, second: Store) -> None:
    """On SQLite without a lock: its one writer lets the second see what the first has queued."""
    scene.configure(max_active_jobs=None)
    declare(scene)
    for _ in range(ROUNDS):
        both = at_once(scene.manage, partial(scene.manage, second))
        assert sorted(result.queued for result in both) == [0, MANY]
        assert queued_once(scene)
        scene.dispatch()
        scene.run()
        scene.clock.advance(hours=1)


# Without the outer layer


def test_without_the_lock_a_second_manager_finds_the_rows_taken(
    on_postgresql: tuple[Scene, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, second = on_postgresql
    scene.configure(max_active_jobs=None)
    declare(scene)
    monkeypatch.setattr(engine, "_try_lock", lambda *arguments: datetime.now(UTC))
    for _ in range(ROUNDS):
        both = at_once(scene.manage, partial(scene.manage, second))
        assert all(result.led for result in both)
        assert sum(result.queued for result in both) == MANY
        assert queued_once(scene)
        scene.dispatch()
        scene.run()
        scene.clock.advance(hours=1)


def test_where_two_managers_both_see_not_queued_the_index_keeps_the_second_entry_out(
    on_postgresql: tuple[Scene, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guards are no replacement for the lock; the unique partial index is the backstop."""
    scene, second = on_postgresql
    declare(scene)
    both_have_looked = Barrier(2)
    load_views = manifests.load_views

    def all_unlocked(tx: Transaction, limit: int) -> list[int]:
        due = select(manifest_state.c.manifest_id).where(manifest_state.c.wake_at <= tx.now)
        return list(tx.connection.execute(due).scalars())

    def look_together(tx: Transaction, ids: Any) -> Any:
        views = load_views(tx, ids)
        both_have_looked.wait(30)
        return views

    with monkeypatch.context() as bypassed:
        bypassed.setattr(engine, "_try_lock", lambda *arguments: datetime.now(UTC))
        bypassed.setattr(manifests, "due_candidates", all_unlocked)
        bypassed.setattr(manifests, "load_views", look_together)
        both = at_once(scene.manage, partial(scene.manage, second))

    for result in both:
        assert {one.verdict for one in result.decisions} == {Verdict.QUEUE}, "both would queue all"
        assert result.refused == 0
    assert sorted(result.queued for result in both) == [0, MANY]
    assert queued_once(scene)
    scene.wake("load-0")
    assert scene.manage().skipped == {"already queued": 1}, "and everything goes on as ever"


def test_an_entry_another_way_brought_in_between_costs_no_other(
    on_postgresql: tuple[Scene, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, second = on_postgresql
    declare(scene)
    load_views = manifests.load_views

    def look_and_be_overtaken(tx: Transaction, ids: Any) -> Any:
        views = load_views(tx, ids)
        with second.writing() as other:
            row = select(manifest.c.id, manifest.c.group_id).where(
                manifest.c.external_id == "load-3"
            )
            found = other.connection.execute(row).one()
            other.connection.execute(
                text(
                    "INSERT INTO headway_work_queue"
                    " (manifest_id, group_id, workflow, input_type, input, source, created_at)"
                    " VALUES (:manifest, :group, 'work', 'None', 'null', 'schedule', :now)"
                ),
                {"manifest": found.id, "group": found.group_id, "now": other.now},
            )
        return views

    with monkeypatch.context() as overtaken:
        overtaken.setattr(manifests, "load_views", look_and_be_overtaken)
        assert scene.manage().queued == MANY - 1
    assert queued_once(scene)
