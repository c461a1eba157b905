"""Whoever looks for live executions passes those that are gone, but for the last few, once noted.

Nothing that lives is ever left out, whatever somebody has written where that is noted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, insert, select, text

from headway.config import Settings
from headway.dispatcher import oldest
from headway.dispatcher.cycle import JobDispatcher
from headway.domain.execution import ExecutionState, Outcome
from headway.domain.work_queue import NewEntry, Source
from headway.servers.local import LocalServer
from headway.store import executions, live, marks, notifications, outcomes, shut_groups
from headway.store.pulse import take_pulse
from headway.store.tables import execution, manifest_group
from headway.store.tables import work_queue as entries
from headway.store.transaction import Transaction
from tests.builders import OWNER, Scene
from tests.dispatcher.test_open_snapshots import GONE, blocks_of, held, leave_dead_rows
from tests.dispatcher.test_started_at_once import Workers, alive, dispatcher
from tests.pgbouncer import in_front

__all__ = ["held"]

pytestmark = pytest.mark.postgresql

COMPLETED = Outcome(ExecutionState.COMPLETED)
# Who passes them all reads 312 and more. Before PostgreSQL 18 an index by priority is gone through
# from end to end, though not the rows it leads to.
FEW_BLOCKS = 120


@pytest.fixture
def scene(postgres_url: str) -> Iterator[Scene]:
    with Scene(postgres_url) as scene:
        yield scene


def a_dispatcher(scene: Scene, at_once: int = 10) -> JobDispatcher:
    limits = Settings(max_active_jobs=at_once)
    return JobDispatcher(scene.store, limits, scene.app.observer, LocalServer(lambda: None))


def queue(scene: Scene, count: int) -> None:
    scene.enqueue(*(NewEntry("work", Source.AD_HOC, "null") for _ in range(count)))


def living(tx: Transaction) -> list[int]:
    return sorted(tx.connection.execute(select(execution.c.id)).scalars())


def not_left_out(tx: Transaction) -> list[int]:
    """Those that whoever looks for live ones finds."""
    found = select(execution.c.id).where(live.may_live(tx))
    return sorted(tx.connection.execute(found).scalars())


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["queue", "cycle", "other", "end", "claim"]), st.integers(1, 4)),
        min_size=3,
        max_size=25,
    )
)
def test_whatever_happens_nothing_that_lives_is_left_out(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, steps: list[tuple[str, int]]
) -> None:
    monkeypatch.setattr(oldest, "STEP", 2)
    dispatchers = {name: a_dispatcher(scene, at_once=5) for name in ("cycle", "other")}
    for what, count in steps:
        if what in dispatchers:
            dispatchers[what].run_once()
        elif what == "queue":
            queue(scene, count)
        elif what == "claim":
            scene.claim()
        else:
            end_the_oldest(scene, count)
        with scene.store.reading() as tx:
            assert not_left_out(tx) == living(tx)
            assert executions.count_active(tx, ()).total == len(living(tx)) <= 5
    with scene.store.writing() as tx:
        tx.connection.execute(delete(entries))
        tx.connection.execute(delete(execution))


def end_the_oldest(scene: Scene, count: int) -> None:
    with scene.store.writing() as tx:
        owned = sorted(one.execution_id for one in executions.owned_by_any(tx, [OWNER]))
        outcomes.finish(tx, OWNER, dict.fromkeys(owned[:count], COMPLETED))


def test_it_is_noted_when_enough_have_ended(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oldest, "STEP", 20)
    dispatcher = a_dispatcher(scene)
    noted = []
    for _ in range(8):
        queue(scene, 10)
        dispatcher.run_once()
        with scene.store.writing() as tx:
            noted.append(live.noted_oldest(tx))
            tx.connection.execute(delete(execution))
    assert noted == sorted(noted)
    assert len(set(noted)) == 4, "of ten cycles with ten each every other one"
    assert noted[-1] > 40


@pytest.mark.skipif(in_front(), reason="behind a pooler nothing starts at once")
def test_what_was_started_without_a_cycle_and_has_ended_is_passed_too(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oldest, "STEP", 5)
    with Scene(postgres_url, virtual_time=False) as scene:
        alive(scene, slots=2)
        dispatching = dispatcher(scene, Workers(free=2))
        dispatching.run_once()
        heard = notifications.listen(scene.store, seconds=0.01)
        line = next(heard).line
        for _ in range(10):
            queue(scene, 1)
            assert dispatching.start_all(line)
            with scene.store.writing() as tx:
                [last] = living(tx)
                tx.connection.execute(delete(execution))
        heard.close()
        queue(scene, 1)
        dispatching.run_once()

        with scene.store.reading() as tx:
            assert live.noted_oldest(tx) == last


@pytest.mark.parametrize(
    "value", ["", "nonsense", "-5", "1e9", "7 OR true", "9" * 30, "999999999", "٣"]
)
def test_whatever_is_noted_there_nothing_is_left_out_for_it(scene: Scene, value: str) -> None:
    """Rows that somebody edited, or ids that began anew after a restore."""
    scene.pending("work")
    with scene.store.writing() as tx:
        marks.write_mark(tx, live.OLDEST, value)
    with scene.store.writing() as tx:
        assert not_left_out(tx) == living(tx) != []
    queue(scene, 3)
    assert len(a_dispatcher(scene).run_once().dispatched) == 3


def test_ids_that_begin_anew_are_noted_anew(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oldest, "STEP", 5)
    with scene.store.writing() as tx:
        live.note_oldest(tx, 1000)
    dispatcher = a_dispatcher(scene)
    for _ in range(2):
        queue(scene, 5)
        dispatcher.run_once()
    with scene.store.reading() as tx:
        assert live.noted_oldest(tx) == min(living(tx))
        assert not_left_out(tx) == living(tx)


LOOKS: dict[str, Callable[[Transaction], Any]] = {
    "count": lambda tx: executions.count_active(tx, ()),
    "oldest": executions.oldest_live,
    "running": executions.running,
    "stale": lambda tx: executions.has_stale_pending(tx, tx.now),
    "owned": lambda tx: executions.owned_by_any(tx, [OWNER]),
    "claim": lambda tx: executions.claim_pending(tx, OWNER, 10, ["work"]),
    "orphans": lambda tx: outcomes.end_orphans(tx, 3),
    "pulse": lambda tx: take_pulse(tx, OWNER),
    "shut groups": lambda tx: note_shut_groups_beside_a_capped_one(tx),
}


def note_shut_groups_beside_a_capped_one(tx: Transaction) -> None:
    """Only where there are caps is it counted what runs of each group."""
    capped = {"name": "capped", "max_active_jobs": 1, "created_at": tx.now, "updated_at": tx.now}
    tx.connection.execute(insert(manifest_group).values(**capped))
    shut_groups.note_shut_groups(tx, timedelta(0))


@pytest.mark.parametrize("look", LOOKS)
def test_beside_an_open_snapshot_what_is_gone_is_in_nobodys_way(
    scene: Scene, held: None, look: str
) -> None:
    leave_dead_rows(scene)
    with scene.store.writing() as tx:
        newest = tx.connection.execute(text("SELECT last_value FROM headway_execution_id_seq"))
        live.note_oldest(tx, newest.scalar_one())
        assert live.noted_oldest(tx) >= GONE
    with scene.store.notifying() as connection:
        connection.execute(text("ANALYZE headway_execution"))
    read = blocks_of(scene, execution.name)
    with scene.store.writing() as tx:
        LOOKS[look](tx)
    assert read() < FEW_BLOCKS


def test_what_was_started_without_a_cycle_is_noted_by_the_next(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing lives any more: then the newest that was started here is known to be gone."""
    monkeypatch.setattr(oldest, "STEP", 1)
    noting = oldest.OldestLive()
    noting.created([41, 42])
    with Scene(postgres_url) as scene, scene.store.writing() as tx:
        noting.note(tx, None)
        assert live.noted_oldest(tx) == 0
        noting.note(tx, executions.count_active(tx, ()))
        assert live.noted_oldest(tx) == 42


def test_a_cycle_that_counted_nothing_notes_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty queue is no reason to count what is live, and nothing is known of it then."""
    monkeypatch.setattr(oldest, "STEP", 1)
    dispatcher = a_dispatcher(scene, at_once=2)
    queue(scene, 2)
    first, second = dispatcher.run_once().dispatched

    assert dispatcher.run_once().loaded == 0
    with scene.store.reading() as tx:
        assert live.noted_oldest(tx) <= first < second
    queue(scene, 1)
    assert dispatcher.run_once().dispatched == (), "both are still live"
