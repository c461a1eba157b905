"""One cycle is one chunk: the next follows at once, and one that takes too long is halved."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from sqlalchemy import text

from headway import Headway, every
from headway.errors import StepFailed
from headway.manager.chunk import GROWTH, LARGEST, ChunkSize
from headway.manager.cycle import ManifestManager
from headway.service import Service
from headway.store import wakes, work_queue
from headway.store.engine import Store, ended_by_timeout
from headway.store.transaction import Transaction
from headway.wakeups import Role
from tests.builders import Recorder, Scene, eventually

MANY = 2500
NEVER = "10m"

Broken = Callable[[Transaction], None]


def declare(app: Headway, count: int = MANY) -> None:
    for number in range(count):
        app.schedule("work", f"load-{number}", None, every(hours=1), group="all")


def test_a_cycle_looks_at_a_thousand_at_most_and_says_that_there_is_more(scene: Scene) -> None:
    scene.configure(max_work_queue_entries_per_cycle=None)
    declare(scene.app)
    scene.apply()

    cycles = [scene.manage() for _ in range(4)]

    assert [one.queued for one in cycles] == [1000, 1000, 500, 0]
    assert [one.due_in for one in cycles] == [timedelta(0), timedelta(0), None, None]


def test_what_one_cycle_left_over_is_queued_without_waiting_for_the_next_poll(
    database_url: str,
) -> None:
    with Scene(database_url, virtual_time=False) as scene:
        app = scene.new_app(manager_polling_interval=NEVER)
        declare(app)
        cycles = Recorder(app.observer)
        service = Service(app, {Role.MANAGER}, Store(database_url, durable=False))
        service.start()
        try:
            eventually(lambda: len(scene.history.queue.all()) == MANY)
        finally:
            service.stop()
        queued = [one.fields["queued"] for one in cycles.named("manager.cycle")]
        assert max(queued) == 200, "the share of a cycle"


def test_a_chunk_is_halved_down_to_one_and_grows_when_full() -> None:
    chunk = ChunkSize()
    for expected in (500, 250, 125, 62, 31, 15, 7, 3, 1, 1):
        chunk.took_too_long()
        assert chunk.size == expected
    chunk.done(candidates=0)
    assert chunk.size == 1, "an empty chunk says nothing about a larger one"
    for _ in range(LARGEST // GROWTH):
        chunk.done(candidates=chunk.size)
    assert chunk.size == LARGEST


def sleep_too_long(tx: Transaction) -> None:
    tx.connection.execute(text("SELECT set_config('statement_timeout', '50ms', true)"))
    tx.connection.execute(text("SELECT pg_sleep(60)"))


def be_idle_too_long(tx: Transaction, setting: str = "idle_in_transaction_session_timeout") -> None:
    """Wait until the server has ended this session, then go on as if nothing had happened."""
    pid = tx.connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
    tx.connection.execute(text(f"SELECT set_config('{setting}', '50ms', true)"))
    alive = text("SELECT count(*) FROM pg_stat_activity WHERE pid = :pid")
    with tx.connection.engine.connect() as other:
        other.execution_options(
            isolation_level="AUTOCOMMIT"
        )  # or it sees the same picture for ever
        eventually(lambda: other.execute(alive, {"pid": pid}).scalar_one() == 0)
    tx.connection.execute(text("SELECT 1"))


def last_too_long(tx: Transaction) -> None:
    version = tx.connection.dialect.server_version_info or (0,)
    if int(version[0]) < 17:  # which has no timeout for whole transactions, only for idle ones
        be_idle_too_long(tx)
    # One that counts already is not shortened, only ended.
    tx.connection.execute(text("SELECT set_config('transaction_timeout', '0', true)"))
    be_idle_too_long(tx, "transaction_timeout")


@pytest.fixture
def crowded(postgres_url: str) -> Iterator[Scene]:
    with Scene(postgres_url, max_work_queue_entries_per_cycle=None) as scene:
        declare(scene.app)
        scene.apply()
        yield scene


@pytest.mark.parametrize("too_long", [sleep_too_long, be_idle_too_long, last_too_long])
def test_a_chunk_killed_by_a_timeout_is_half_as_large_next_time(
    crowded: Scene, monkeypatch: pytest.MonkeyPatch, too_long: Broken
) -> None:
    manager = ManifestManager(crowded.store, crowded.app.settings, crowded.app.observer)

    with monkeypatch.context() as slow:
        slow.setattr(work_queue, "enqueue", lambda tx, entries: too_long(tx))
        with pytest.raises(Exception) as killed:
            manager.run_once()
    assert isinstance(killed.value, StepFailed) and ended_by_timeout(killed.value)
    assert crowded.history.queue.all() == [], "it was rolled back wholly"

    assert [manager.run_once().queued for _ in range(5)] == [500, 600, 700, 700, 0]


def test_any_other_failure_leaves_the_chunk_as_it_is(
    crowded: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = ManifestManager(crowded.store, crowded.app.settings, crowded.app.observer)

    def divide_by_zero(tx: Transaction, times: object) -> None:
        tx.connection.execute(text("SELECT 1 / 0"))

    with monkeypatch.context() as broken:
        broken.setattr(wakes, "set_wake_times", divide_by_zero)
        with pytest.raises(Exception) as failed:
            manager.run_once()
    assert not ended_by_timeout(failed.value)

    assert manager.run_once().queued == LARGEST
