"""Metrics for Prometheus: counted from events, read from the database, bounded in number."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

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


JOB = {"workflow": "work", "group": "nightly", "external_id": "load-users"}
NOON = datetime(2030, 1, 7, 12, tzinfo=UTC)


def counted(
    *events: tuple[str, dict[str, Any]],
) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """What is told after these events beyond what is told without them, buckets aside."""
    metrics, before = (
        Prometheus(registry=CollectorRegistry()),
        Prometheus(registry=CollectorRegistry()),
    )
    for name, fields in events:
        metrics(Event(name, fields))
    return {
        (name, labels): told
        for (name, labels), told in (scraped(metrics).items() - scraped(before).items())
        if not name.endswith(("_bucket", "_created"))
    }


def sample(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


@pytest.mark.parametrize("outcome", ["completed", "failed", "cancelled", "handed_back"])
def test_every_end_is_counted_with_how_long_it_took(outcome: str) -> None:
    name = f"execution.{outcome}"
    job = {"workflow": "work", "group": "nightly"}
    assert counted((name, JOB | {"seconds": 2.5}), (name, JOB | {"seconds": None})) == {
        sample("headway_executions_total", outcome=outcome, **job): 2,
        sample("headway_run_seconds_count", workflow="work"): 1,
        sample("headway_run_seconds_sum", workflow="work"): 2.5,
    }


def test_waits_and_delays_are_never_negative() -> None:
    early = {"ready_at": NOON, "dispatched_at": NOON - timedelta(seconds=3), "started_at": NOON}
    late = {"ready_at": NOON - timedelta(seconds=3), "dispatched_at": NOON, "started_at": NOON}
    turned = JOB | early | {"dispatched_at": NOON + timedelta(seconds=3)}
    assert counted(
        ("execution.dispatched", JOB | early),
        ("execution.dispatched", JOB | late),
        ("execution.started", JOB | early),
        ("execution.started", turned),
        ("execution.completed", JOB | {"seconds": -1.0}),
    ) == {
        sample("headway_dispatched_total", workflow="work", group="nightly"): 2,
        sample("headway_queue_wait_seconds_count", workflow="work"): 2,
        sample("headway_queue_wait_seconds_sum", workflow="work"): 3,
        sample("headway_start_delay_seconds_count", workflow="work"): 2,
        sample("headway_start_delay_seconds_sum", workflow="work"): 3,
        sample(
            "headway_executions_total", outcome="completed", workflow="work", group="nightly"
        ): 1,
        sample("headway_run_seconds_count", workflow="work"): 1,
        sample("headway_run_seconds_sum", workflow="work"): 0,
    }


def test_a_cycle_is_measured_as_a_whole_and_what_it_queued_is_counted() -> None:
    assert counted(
        ("manager.cycle", {"queued": 3, "seconds": {"load": 0.5, "decide": 0.25}}),
        ("dispatcher.cycle", {"seconds": {"start_all": 2.0}}),
        ("service.stopped", {"owner": "me"}),
    ) == {
        sample("headway_queued_total"): 3,
        sample("headway_cycle_seconds_count", actor="manager"): 1,
        sample("headway_cycle_seconds_sum", actor="manager"): 0.75,
        sample("headway_cycle_seconds_count", actor="dispatcher"): 1,
        sample("headway_cycle_seconds_sum", actor="dispatcher"): 2,
    }


def test_every_gauge_of_the_database_is_told(scene: Scene) -> None:
    metrics = Prometheus(scene.store, CollectorRegistry())
    scene.app.schedule("work", "load-users", None, every(hours=1), group="nightly", max_retries=1)
    scene.app.schedule("work", "load-orders", None, every(hours=1), group="nightly")
    scene.app.schedule("work", "load-stock", None, every(hours=1), group="daily")
    scene.apply()
    scene.failing.add("load-users")
    scene.cycle()
    scene.manage()
    scene.trigger("load-orders", scheduled_at=scene.clock.now + timedelta(minutes=5))
    scene.trigger("load-orders")
    scene.trigger("load-orders")
    scene.trigger("load-stock")
    scene.dispatch()
    scene.claim(1)
    scene.pending("work")
    scene.trigger("load-stock")
    with scene.store.writing() as tx:
        server = ServerProcess("web-3", "web", 3, ("worker",), ("work",), 4)
        register(tx, server, timedelta(seconds=15))
    scene.clock.advance(seconds=9)

    told = {
        key: one for key, one in scraped(metrics).items() if one and not key[0].endswith("_created")
    }
    assert told == {
        sample("headway_healthy"): 1,
        sample("headway_database_up"): 1,
        sample("headway_entries", state="ready"): 2,
        sample("headway_entries", state="delayed"): 1,
        sample("headway_executions_live", state="pending"): 2,
        sample("headway_executions_live", state="in_progress"): 1,
        sample("headway_oldest_entry_seconds"): 9,
        sample("headway_dead_letters"): 1,
        sample("headway_servers"): 1,
        sample("headway_slots"): 4,
        sample("headway_group_entries", group="daily"): 1,
        sample("headway_group_entries", group="nightly"): 1,
        sample("headway_group_running", group="nightly"): 1,
    }


def test_a_job_without_a_group_or_in_one_of_its_own_counts_as_in_no_group() -> None:
    labels = Labels()
    assert labels.of(JOB) == ("work", "nightly")
    assert labels.of(JOB | {"group": "load-users"}) == ("work", "")
    assert labels.of(JOB | {"group": None}) == ("work", "")
