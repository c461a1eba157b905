"""OpenTelemetry: one trace for each entry, over all processes, and metrics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import SpanKind, StatusCode

from headway import Headway, every
from headway.store.leases import register
from headway.store.servers import ServerProcess
from headway.telemetry import meters
from headway.telemetry.otel import OpenTelemetry
from headway.telemetry.trace_ids import TraceIds
from tests.builders import Scene


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url) as scene:
        yield scene


class Collector:
    """A process of its own, as far as OpenTelemetry can tell: nothing is shared with another."""

    def __init__(self, app: Headway, **options: Any) -> None:
        self.exporter = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        tracing = TracerProvider(shutdown_on_exit=False, **options)
        tracing.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracing = tracing
        measuring = MeterProvider([self.reader], shutdown_on_exit=False)
        app.observer.subscribe(OpenTelemetry(tracing, measuring))

    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self.exporter.get_finished_spans()}

    def metrics(self) -> dict[str, list[Any]]:
        data = self.reader.get_metrics_data()
        assert data is not None
        [resource] = data.resource_metrics
        [scope] = resource.scope_metrics
        return {metric.name: list(metric.data.data_points) for metric in scope.metrics}


def parent_of(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent else None


def id_of(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.span_id


def traces(spans: Sequence[ReadableSpan]) -> set[int]:
    return {span.get_span_context().trace_id for span in spans}  # type: ignore[union-attr]


def test_the_way_of_one_entry_is_one_trace_over_processes(scene: Scene) -> None:
    inside: list[int] = []

    def first(value: None) -> int:
        inside.append(trace.get_current_span().get_span_context().span_id)
        return 1

    async def second(value: int) -> None:
        await asyncio.sleep(0)
        inside.append(trace.get_current_span().get_span_context().span_id)

    def declare(app: Headway) -> Headway:
        app.workflow("etl", steps=(first, second))
        app.schedule("etl", "extract-users", None, every(hours=1), group="nightly")
        return app

    declare(scene.app)
    scene.apply()
    dispatching = Collector(scene.app)
    scene.manage()
    scene.clock.advance(seconds=5)
    scene.dispatch()
    declare(scene.new_app())  # from here on, another process
    running = Collector(scene.app)
    scene.run()

    sent, run = dispatching.spans(), running.spans()
    assert sorted(sent) == ["dispatch etl", "enqueue etl"]
    assert sorted(run) == ["run etl", "step first", "step second"]
    assert len(traces([*sent.values(), *run.values()])) == 1
    assert parent_of(sent["enqueue etl"]) is None
    assert parent_of(sent["dispatch etl"]) == id_of(sent["enqueue etl"])
    assert parent_of(run["run etl"]) == id_of(sent["dispatch etl"])
    steps = [run["step first"], run["step second"]]
    assert [parent_of(step) for step in steps] == [id_of(run["run etl"])] * 2
    assert inside == [id_of(step) for step in steps], "user code runs inside its step's span"
    dispatch = sent["dispatch etl"]
    assert dispatch.end_time is not None and dispatch.start_time is not None
    assert dispatch.end_time - dispatch.start_time == 5_000_000_000
    assert dispatch.start_time == sent["enqueue etl"].end_time == sent["enqueue etl"].start_time
    kinds = {name: span.kind for name, span in (sent | run).items()}
    assert kinds == {
        "enqueue etl": SpanKind.PRODUCER,
        "dispatch etl": SpanKind.INTERNAL,
        "run etl": SpanKind.CONSUMER,
        "step first": SpanKind.INTERNAL,
        "step second": SpanKind.INTERNAL,
    }
    [execution] = scene.history.executions.all()
    told = {
        "headway.execution_id": execution.id,
        "headway.entry_id": execution.entry_id,
        "headway.workflow": "etl",
        "headway.group": "nightly",
        "headway.source": "schedule",
        "headway.manifest": "extract-users",
    }
    by_dispatch = told | {"headway.task_server": "local"}
    assert dict(sent["enqueue etl"].attributes or {}) == by_dispatch
    assert dict(dispatch.attributes or {}) == by_dispatch
    by_run = told | {"headway.attempt": 1, "headway.state": "completed"}
    assert dict(run["run etl"].attributes or {}) == by_run
    assert all(span.status.status_code is StatusCode.UNSET for span in run.values())


def test_two_entries_are_two_traces_and_leave_no_context_behind(scene: Scene) -> None:
    collector = Collector(scene.app)
    for _ in range(2):
        scene.pending("work")
    scene.run()
    runs = [span for span in collector.exporter.get_finished_spans() if span.name == "run work"]
    assert len(traces(runs)) == 2
    assert not trace.get_current_span().get_span_context().is_valid


def test_a_failure_is_an_error_of_its_step_and_of_the_run(scene: Scene) -> None:
    collector = Collector(scene.app)
    scene.failing.add(None)
    scene.pending("work")
    scene.run()
    for span in collector.spans().values():
        assert span.status.status_code is StatusCode.ERROR
        assert "told to fail" in (span.status.description or "")


def test_every_process_samples_the_same_traces(scene: Scene) -> None:
    some = ParentBased(TraceIdRatioBased(0.5))
    dispatching = Collector(scene.app, sampler=some)
    for number in range(20):
        scene.app.schedule("work", f"load-{number}", None, every(hours=1))
    scene.apply()
    scene.manage()
    dispatched = scene.dispatch().dispatched
    scene.new_app()
    running = Collector(scene.app, sampler=some)
    scene.run()
    sent = traces(dispatching.exporter.get_finished_spans())
    assert sent == traces(running.exporter.get_finished_spans())
    assert 0 < len(sent) < len(dispatched)


def test_other_spans_of_the_same_provider_keep_ids_of_their_own(scene: Scene) -> None:
    collector = Collector(scene.app)
    scene.pending("work")
    scene.run()
    with collector.tracing.get_tracer("somebody").start_as_current_span("else"):
        pass
    spans = collector.spans()
    assert traces([spans["else"]]) != traces([spans["run work"]])


def test_metrics_tell_how_many_ran_and_how_long_they_waited(scene: Scene) -> None:
    collector = Collector(scene.app)
    scene.app.schedule("work", "load-users", None, every(hours=1), group="nightly")
    scene.apply()
    scene.cycle()
    measured = collector.metrics()
    [ended] = measured["headway.executions"]
    assert ended.value == 1
    labels = {"workflow": "work", "group": "nightly", "outcome": "completed"}
    assert dict(ended.attributes) == labels
    for name in ("headway.queue.wait", "headway.start.delay", "headway.run.duration"):
        [point] = measured[name]
        assert point.count == 1


def test_gauges_are_read_when_metrics_are_collected(scene: Scene) -> None:
    reader = InMemoryMetricReader()
    OpenTelemetry(meter_provider=MeterProvider([reader], shutdown_on_exit=False), store=scene.store)
    scene.pending("work")
    data = reader.get_metrics_data()
    assert data is not None
    [metric] = [
        metric
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        if metric.name == "headway.executions.live"
    ]
    found = {point.attributes["state"]: point.value for point in metric.data.data_points}  # type: ignore[index, union-attr]
    assert found == {"pending": 1, "in_progress": 0}


JOB = {"workflow": "work", "group": "nightly", "external_id": "load-users"}
NOON = datetime(2030, 1, 7, 12, tzinfo=UTC)


def measured(*events: tuple[str, dict[str, Any]]) -> dict[str, list[tuple[dict[str, Any], Any]]]:
    """What is measured of these events: the attributes and the sum of each series."""
    app = Headway(database_url="sqlite://")
    collector = Collector(app)
    for name, fields in events:
        app.observer.emit(name, **fields)
    return {
        name: [
            (dict(point.attributes), getattr(point, "value", None) or (point.count, point.sum))
            for point in points
        ]
        for name, points in collector.metrics().items()
    }


@pytest.mark.parametrize("outcome", ["completed", "failed", "cancelled", "handed_back"])
def test_every_end_is_counted_with_how_long_it_took(outcome: str) -> None:
    name = f"execution.{outcome}"
    labels = {"workflow": "work", "group": "nightly"}
    assert measured((name, JOB | {"seconds": 2.5}), (name, JOB | {"seconds": None})) == {
        "headway.executions": [(labels | {"outcome": outcome}, 2)],
        "headway.run.duration": [(labels, (1, 2.5))],
    }


def test_waits_and_delays_are_never_negative() -> None:
    early = {"ready_at": NOON, "dispatched_at": NOON - timedelta(seconds=3), "started_at": NOON}
    late = {"ready_at": NOON - timedelta(seconds=3), "dispatched_at": NOON, "started_at": NOON}
    turned = JOB | early | {"dispatched_at": NOON + timedelta(seconds=3)}
    ids = {"entry_id": 1, "execution_id": 1, "queued_at": NOON}
    ran = ("execution.ran", {"execution_id": 1, "state": "completed", "failure": None})
    found = measured(
        ("execution.dispatched", JOB | ids | early),
        ("execution.dispatched", JOB | ids | late),
        ("execution.started", JOB | ids | early),
        ran,
        ("execution.started", turned | ids),
        ran,
        ("execution.completed", JOB | {"seconds": -1.0}),
    )
    assert found["headway.queue.wait"] == [({"workflow": "work"}, (2, 3))]
    assert found["headway.start.delay"] == [({"workflow": "work"}, (2, 3))]
    assert found["headway.run.duration"][0][1] == (1, 0)


def test_cycles_and_dead_letters_are_measured() -> None:
    assert measured(
        ("manager.cycle", {"queued": 3, "seconds": {"load": 0.5, "decide": 0.25}}),
        ("dispatcher.cycle", {"seconds": {"start_all": 2.0}}),
        ("manifest.dead_lettered", {"external_id": "load-users"}),
    ) == {
        "headway.cycle.duration": [
            ({"actor": "manager"}, (1, 0.75)),
            ({"actor": "dispatcher"}, (1, 2)),
        ],
        "headway.dead_lettered": [({}, 1)],
    }


def gauges(reader: InMemoryMetricReader) -> dict[tuple[str, str], Any]:
    """Each gauge by its name and the value of its one attribute, if it has one."""
    data = reader.get_metrics_data()
    assert data is not None
    return {
        (metric.name, str(*dict(point.attributes or {}).values())): point.value  # type: ignore[union-attr]
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        for point in metric.data.data_points
    }


def test_every_gauge_is_read_at_most_once_in_a_while(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.app.schedule("work", "load-users", None, every(hours=1), group="nightly", max_retries=1)
    scene.app.schedule("work", "load-orders", None, every(hours=1), group="nightly")
    scene.apply()
    scene.failing.add("load-users")
    scene.cycle()
    scene.manage()
    scene.trigger("load-orders", scheduled_at=scene.clock.now + timedelta(minutes=5))
    scene.trigger("load-orders")
    scene.dispatch()
    scene.claim()
    scene.pending("work")
    scene.pending("work")
    scene.trigger("load-orders")
    scene.trigger("load-orders")
    with scene.store.writing() as tx:
        server = ServerProcess("web-3", "web", 3, ("worker",), ("work",), 4)
        register(tx, server, timedelta(seconds=15))
    scene.clock.advance(seconds=9)
    monkeypatch.setattr(meters, "FRESH", 3600.0)
    reader = InMemoryMetricReader()
    OpenTelemetry(meter_provider=MeterProvider([reader], shutdown_on_exit=False), store=scene.store)

    first = gauges(reader)

    assert first == {
        ("headway.entries", "ready"): 2,
        ("headway.entries", "delayed"): 1,
        ("headway.executions.live", "pending"): 2,
        ("headway.executions.live", "in_progress"): 1,
        ("headway.oldest_entry.seconds", ""): 9,
        ("headway.dead_letters", ""): 1,
        ("headway.servers", ""): 1,
        ("headway.group.entries", "nightly"): 2,
        ("headway.group.running", "nightly"): 1,
    }
    scene.trigger("load-orders")
    assert gauges(reader) == first
    monkeypatch.setattr(meters, "FRESH", 0.0)
    assert gauges(reader)["headway.entries", "ready"] == 3


def test_a_run_that_is_not_the_one_that_runs_here_is_left_alone() -> None:
    app = Headway(database_url="sqlite://")
    collector = Collector(app)
    begun = JOB | {"entry_id": 1, "queued_at": NOON, "dispatched_at": NOON, "started_at": NOON}
    app.observer.emit("execution.started", execution_id=7, **begun)
    app.observer.emit("execution.step", execution_id=8, step="of another")
    app.observer.emit("execution.ran", execution_id=8, state="completed", failure=None)
    assert collector.spans() == {}
    app.observer.emit("execution.step", execution_id=7, step="first")
    app.observer.emit("execution.step", execution_id=7, step="second")
    assert list(collector.spans()) == ["step first"]
    app.observer.emit("execution.ran", execution_id=7, state="failed", failure="no rows")
    assert list(collector.spans()) == ["step first", "step second", "run work"]
    statuses = {name: span.status.description for name, span in collector.spans().items()}
    assert statuses == {"step first": None, "step second": "no rows", "run work": "no rows"}
    assert (collector.spans()["run work"].attributes or {})["headway.state"] == "failed"
    app.observer.emit("execution.ran", execution_id=7, state="failed", failure="again")
    assert len(collector.exporter.get_finished_spans()) == 3
    assert not trace.get_current_span().get_span_context().is_valid


def test_a_span_that_is_given_no_id_has_one_of_its_own() -> None:
    app = Headway(database_url="sqlite://")
    collector = Collector(app)
    told = JOB | {"entry_id": 1, "execution_id": 7, "queued_at": NOON}
    app.observer.emit("execution.dispatched", ready_at=NOON, dispatched_at=NOON, **told)
    ids = TraceIds.told(told)
    with collector.tracing.get_tracer("headway").start_as_current_span("else"):
        pass
    spans = collector.spans()
    assert id_of(spans["enqueue work"]) == ids.enqueue
    assert id_of(spans["dispatch work"]) == ids.of_dispatch(7)
    assert traces([spans["enqueue work"], spans["dispatch work"]]) == {ids.trace}
    assert traces([spans["else"]]) != {ids.trace}
    assert spans["dispatch work"].parent is not None and spans["dispatch work"].parent.is_remote


def test_entries_of_other_deployments_are_other_traces() -> None:
    of = TraceIds.of(7, NOON, "extract")
    others = [
        TraceIds.of(8, NOON, "extract"),
        TraceIds.of(7, NOON + timedelta(microseconds=1), "extract"),
        TraceIds.of(7, NOON, "load"),
    ]
    assert len({of, *others}) == 4
    spans = [of.enqueue, of.of_dispatch(3), of.of_dispatch(4), of.of_run(3), of.of_run(4)]
    assert len({*spans, others[0].enqueue, others[0].of_run(3)}) == 7
    assert of.trace.bit_length() > 64 >= max(spans).bit_length()


class Broken(SpanExporter):
    """An exporter whose collector is away, in the worst way."""

    def export(self, spans: Sequence[ReadableSpan]) -> Any:
        raise OSError("no route to collector")


@pytest.mark.parametrize("breaks", ["exporter", "processor"])
def test_an_exporter_that_fails_stops_no_job(
    scene: Scene, breaks: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.CRITICAL)
    tracing = TracerProvider(shutdown_on_exit=False)
    processor = SimpleSpanProcessor(Broken())
    if breaks == "processor":
        fail: Callable[..., None] = Broken().export
        monkeypatch.setattr(processor, "on_start", fail)
    tracing.add_span_processor(processor)
    scene.app.observer.subscribe(OpenTelemetry(tracing))
    for _ in range(2):
        scene.pending("work")
    assert scene.run().ended == {"completed": 2}


def test_without_any_provider_nothing_is_made(scene: Scene) -> None:
    scene.app.observer.subscribe(OpenTelemetry())
    scene.pending("work")
    assert scene.run().ended == {"completed": 1}
