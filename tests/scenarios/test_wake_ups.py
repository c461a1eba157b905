"""Nothing waits for a poll; and where every hint is lost, polling still finds everything."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from typing import Any

import psycopg
import pytest

from headway import Headway, Run, every
from headway.applying import apply_declarations
from headway.domain.work_queue import NewEntry, Source
from headway.service import Service
from headway.store import notifications
from headway.store.engine import Store
from headway.store.migrate import migrate
from tests.builders import Recorder, Scene, eventually
from tests.scenarios.deployment import FAR_APART, Deployment

NEVER = timedelta(hours=1)
RARELY = {
    "manager_polling_interval": NEVER,
    "dispatcher_polling_interval": NEVER,
    "polling_interval": NEVER,
}
OURS = "FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'headway'"
LISTENERS = f"{OURS} AND query LIKE 'LISTEN%'"

ACTORS = {f"headway-{name}" for name in ("manager", "dispatcher", "worker", "listener", "notify")}


@contextmanager
def running(scene: Scene) -> Iterator[Service]:
    """Every actor of the scene's application in this process, in real time."""
    service = Service(scene.app)
    service.start()
    try:
        yield service
    finally:
        service.request_stop(grace=0)
        service.stop()


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url, virtual_time=False, **RARELY) as scene:
        yield scene


def test_everything_runs_at_once_although_nobody_polls(scene: Scene) -> None:
    """The manager wakes the dispatcher, that the workers, and their end the manager again."""
    ran: list[int] = []

    def tick(run: Run) -> None:
        ran.append(run.execution_id)

    scene.app.workflow(tick)
    scene.app.schedule("work", "once-a-day", None, every(days=1))
    scene.app.schedule(tick, "often", None, every(seconds=1))
    scene.apply()
    with running(scene):
        scene.events.wait_for("execution.completed", external_id="once-a-day")
        scene.events.wait_for("execution.completed", external_id="often", count=3)

    assert ran == sorted(set(ran))


def test_a_slot_that_becomes_free_is_used_at_once(scene: Scene) -> None:
    scene.new_app(max_active_jobs=1, **RARELY)
    for number in range(5):
        scene.app.schedule("work", f"load-{number}", None, every(days=1))
    with running(scene):
        scene.events.wait_for("execution.completed", count=5)


def test_a_retry_starts_when_its_delay_is_over(scene: Scene) -> None:
    scene.new_app(default_retry_delay=0.2, **RARELY)
    scene.failing.add("load-users")
    scene.app.schedule("work", "load-users", None, every(days=1))
    with running(scene):
        scene.events.wait_for("execution.failed")
        scene.failing.clear()
        scene.events.wait_for("execution.completed")


def test_what_is_triggered_starts_at_once_although_nobody_polls(scene: Scene) -> None:
    """By whatever else the process does: on SQLite there is nobody else who could tell."""
    scene.app.schedule("work", "load-users", None)
    with running(scene):
        scene.events.wait_for("dispatcher.cycle")
        scene.app.trigger("load-users")
        scene.events.wait_for("execution.completed", external_id="load-users")
    scene.app.runtime.store.close()


def enqueue_elsewhere(url: str, *, notify: bool) -> None:
    """What another server does: queue something, and perhaps say so."""
    other = Store(url)
    with Scene(url, virtual_time=False) as scene:
        scene.enqueue(NewEntry("work", Source.AD_HOC, "null"))
        if notify:
            notifications.notify(other, ["dispatcher"])
    other.close()


def test_what_another_server_announces_is_looked_at_at_once(
    postgres_url: str, postgres_database: str
) -> None:
    with Scene(postgres_url, virtual_time=False, **RARELY) as scene, running(scene):
        wait_until_listening(postgres_database)
        enqueue_elsewhere(postgres_url, notify=True)

        scene.events.wait_for("execution.completed")


def test_what_is_queued_while_nothing_else_is_starts_without_a_cycle(
    postgres_url: str, postgres_database: str
) -> None:
    with Scene(postgres_url, virtual_time=False, **RARELY) as scene, running(scene):
        wait_until_listening(postgres_database)
        rounds = count(1)

        def starts_without_a_cycle() -> bool:
            """Unless a cycle is under way at the moment, to look what the end of another means."""
            enqueue_elsewhere(postgres_url, notify=True)
            scene.events.wait_for("execution.completed", count=next(rounds))
            told = scene.events.named("dispatcher.cycle")
            return any("start_all" in one.fields["seconds"] for one in told)

        eventually(starts_without_a_cycle)


@pytest.mark.story(13)
def test_without_any_notification_polling_finds_it(scene: Scene) -> None:
    scene.new_app(dispatcher_polling_interval=0.1, polling_interval=0.1)
    with running(scene):
        scene.events.wait_for("dispatcher.cycle", count=2)
        enqueue_elsewhere(scene.url, notify=False)

        scene.events.wait_for("execution.completed")


@pytest.mark.story(13)
def test_a_listener_whose_connection_is_cut_listens_again_and_looks_at_everything(
    postgres_url: str, postgres_database: str
) -> None:
    with Scene(postgres_url, virtual_time=False, **RARELY) as scene, running(scene):
        wait_until_listening(postgres_database)
        assert cut(postgres_database, LISTENERS) == 1
        enqueue_elsewhere(postgres_url, notify=True)  # nobody hears it

        scene.events.wait_for("loop.failed", loop="listener")
        scene.events.wait_for("execution.completed")


@pytest.mark.full
@pytest.mark.story(14)
def test_every_connection_cut_at_once_ends_no_loop(
    postgres_url: str, postgres_database: str
) -> None:
    often: dict[str, Any] = {"polling_interval": 0.1, "dispatcher_polling_interval": 0.1}
    with Scene(postgres_url, virtual_time=False, **often) as scene, running(scene):
        for round in range(1, 4):
            wait_for_a_cycle(scene.events)
            assert cut(postgres_database, OURS) > 0
            wait_for_a_cycle(scene.events)
            enqueue_elsewhere(postgres_url, notify=False)
            scene.events.wait_for("execution.completed", count=round)
        assert {thread.name for thread in threading.enumerate()} >= ACTORS


def wait_for_a_cycle(events: Recorder) -> None:
    events.wait_for("dispatcher.cycle", count=len(events.named("dispatcher.cycle")) + 1)


def wait_until_listening(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        eventually(lambda: connection.execute(f"SELECT 1 {LISTENERS}").fetchone() is not None)


def cut(database: str, which: str) -> int:
    """End these sessions of this test's database; how many."""
    with psycopg.connect(database, autocommit=True) as connection:
        return len(connection.execute(f"SELECT pg_terminate_backend(pid) {which}").fetchall())


def test_three_processes_with_one_role_each_complete_jobs(postgres_deployment: Deployment) -> None:
    deployment = postgres_deployment
    deployment.release()
    roles = ("worker", "dispatcher", "manager")
    processes = [deployment.start("--only", role, jobs=6, settings=FAR_APART) for role in roles]
    deployment.wait_until_completed(6)
    deployment.stop(*processes)

    assert deployment.evidence("end") == {f"job-{number}": 1 for number in range(6)}


def test_what_is_applied_by_hand_is_told_to_running_servers(postgres_url: str) -> None:
    store, app = Store(postgres_url), Headway("shop", database_url=postgres_url)
    migrate(store)
    app.workflow("work")(lambda: None)
    app.schedule("work", "load", None, every(hours=1))
    heard = notifications.listen(store, 0.01)
    assert not next(heard).topics

    apply_declarations(app, store, by_hand=True)

    eventually(lambda: notifications.EVERYBODY in next(heard).topics)
    heard.close()
    store.close()


def test_nobody_hears_what_was_announced_here(postgres_url: str) -> None:
    """Whoever announces something has woken its own loops already."""
    store = Store(postgres_url)
    migrate(store)
    heard = notifications.listen(store, 0.01, "me")
    assert not next(heard).topics
    notifications.notify(store, ["manager"], "me")
    notifications.notify(store, ["worker", "dispatcher"], "another")
    notifications.notify(store, [notifications.EVERYBODY])

    topics: set[str] = set()
    while len(topics) < 3:
        topics |= next(heard).topics
    heard.close()
    store.close()

    assert topics == {"worker", "dispatcher", notifications.EVERYBODY}
