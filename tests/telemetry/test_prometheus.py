"""Metrics for Prometheus: counted from events, read from the database, bounded in number."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from headway import every
from headway.domain.work_queue import NewEntry, Source
from headway.observe import Event
from headway.store import delays, gauges
from headway.store.gauges import read_gauges
from headway.store.leases import register
from headway.store.servers import ServerProcess
from headway.telemetry.labels import Labels
from headway.telemetry.prometheus import Prometheus
from tests.builders import Scene


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url) as scene:
        yield scene


def scraped(metrics: Prometheus) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    families = text_string_to_metric_families(metrics.page().decode())
    samples = [sample for family in families for sample in family.samples]
    return {(one.name, frozenset(one.labels.items())): one.value for one in samples}


def value(metrics: Prometheus, name: str, **labels: str) -> float | None:
    return scraped(metrics).get((name, frozenset(labels.items())))


def test_a_job_is_counted_on_its_whole_way(scene: Scene) -> None:
    metrics = Prometheus(scene.store)
    scene.app.observer.subscribe(metrics)
    scene.app.schedule("work", "extract-users", None, every(hours=1), group="nightly")
    scene.apply()
    scene.failing.add("extract-users")

    scene.manage()
    scene.clock.advance(seconds=7)
    assert value(metrics, "headway_entries", state="ready") == 1
    assert value(metrics, "headway_oldest_entry_seconds") == 7
    assert value(metrics, "headway_group_entries", group="nightly") == 1
    scene.dispatch()
    assert value(metrics, "headway_executions_live", state="pending") == 1
    scene.run()

    assert value(metrics, "headway_queued_total") == 1
    assert value(metrics, "headway_dispatched_total", workflow="work", group="nightly") == 1
    labels = {"outcome": "failed", "workflow": "work", "group": "nightly"}
    assert value(metrics, "headway_executions_total", **labels) == 1
    assert value(metrics, "headway_queue_wait_seconds_sum", workflow="work") == 7
    assert value(metrics, "headway_start_delay_seconds_count", workflow="work") == 1
    assert value(metrics, "headway_run_seconds_count", workflow="work") == 1
    assert value(metrics, "headway_cycle_seconds_count", actor="dispatcher") == 1
    assert value(metrics, "headway_executions_live", state="pending") == 0


def test_gauges_count_servers_delayed_entries_and_dead_letters(scene: Scene) -> None:
    scene.app.schedule("work", "load-users", None, every(hours=1), max_retries=1)
    scene.apply()
    scene.failing.add("load-users")
    scene.cycle()
    scene.manage()
    scene.trigger("load-users", scheduled_at=scene.clock.now + timedelta(minutes=5))
    lease = timedelta(seconds=15)
    with scene.store.writing() as tx:
        register(tx, ServerProcess("web-3", "web", 3, ("worker",), ("work",), 4), lease)

    with scene.store.reading() as tx:
        read = read_gauges(tx, 10)
    assert (read.ready, read.delayed, read.dead_letters) == (0, 1, 1)
    assert (read.servers, read.slots) == (1, 4)


def test_an_entry_waits_from_when_its_time_has_come(scene: Scene) -> None:
    metrics = Prometheus(scene.store)
    scene.app.schedule("work", "extract-users", None, every(hours=1))
    scene.apply()
    scene.trigger("extract-users", scheduled_at=scene.clock.now + timedelta(minutes=10))
    scene.clock.advance(minutes=15)
    with scene.store.writing() as tx:
        delays.ripen(tx, 10)

    assert value(metrics, "headway_entries", state="ready") == 1
    assert value(metrics, "headway_oldest_entry_seconds") == 5 * 60
    scene.app.observer.subscribe(metrics)
    scene.dispatch()
    assert value(metrics, "headway_queue_wait_seconds_sum", workflow="work") == 5 * 60


def test_no_external_id_becomes_a_label(scene: Scene) -> None:
    metrics = Prometheus(scene.store)
    scene.app.observer.subscribe(metrics)
    scene.app.schedule("work", "load-users", None, every(hours=1))
    scene.apply()

    scene.manage()
    waiting = metrics.page().decode()
    scene.dispatch()
    running = metrics.page().decode()
    scene.run()

    assert value(metrics, "headway_dispatched_total", workflow="work", group="") == 1
    for page in (waiting, running, metrics.page().decode()):
        assert "load-users" not in page


def test_a_count_reads_only_so_many_rows(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gauges, "COUNTED", 3)
    for _ in range(5):
        scene.pending("work")
        scene.enqueue(NewEntry("work", Source.AD_HOC, "null"))
    with scene.store.reading() as tx:
        read = read_gauges(tx, 10)
    assert (read.ready, read.pending) == (3, 3)


def test_a_database_that_is_away_leaves_what_this_process_knows(scene: Scene) -> None:
    metrics = Prometheus(scene.store)
    metrics(Event("manifest.dead_lettered", {"external_id": "load-users"}))
    assert value(metrics, "headway_database_up") == 1
    with scene.store.writing() as tx:
        tx.connection.exec_driver_sql("ALTER TABLE headway_execution RENAME TO away")

    assert value(metrics, "headway_database_up") == 0
    assert value(metrics, "headway_entries", state="ready") is None
    assert value(metrics, "headway_dead_lettered_total") == 1


def test_health_and_failures_of_loops_are_told() -> None:
    metrics = Prometheus()
    metrics(Event("loop.failed", {"loop": "pulse", "error": "OperationalError"}))
    metrics(Event("server.buried", {"owner": "web-3"}))
    metrics(Event("service.unhealthy", {"reasons": []}))
    assert value(metrics, "headway_loop_failures_total", loop="pulse") == 1
    assert value(metrics, "headway_servers_buried_total") == 1
    assert value(metrics, "headway_healthy") == 0
    metrics(Event("service.healthy", {"seconds": 3}))
    assert value(metrics, "headway_healthy") == 1


def test_there_are_only_so_many_labels() -> None:
    labels = Labels(most=2)
    told = [{"workflow": f"w{n}", "group": "g", "external_id": "x"} for n in range(4)]
    assert [labels.of(one)[0] for one in told] == ["w0", "w1", "other", "other"]
    assert labels.of(told[0]) == ("w0", "g")


def test_it_joins_a_registry_of_the_users_own() -> None:
    registry = CollectorRegistry()
    metrics = Prometheus(registry=registry)
    assert metrics.registry is registry
    assert value(metrics, "process_cpu_seconds_total") is None
    assert value(Prometheus(), "process_cpu_seconds_total") is not None
