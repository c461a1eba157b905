"""OpenTelemetry: one trace for each entry, over all processes, and metrics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import StatusCode

from headway import Headway, every
from headway.telemetry.otel import OpenTelemetry
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
    attributes = run["run etl"].attributes or {}
    assert attributes["headway.manifest"] == "extract-users"
    assert attributes["headway.group"] == "nightly"
    assert attributes["headway.state"] == "completed"


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
    scene.dispatch()
    scene.new_app()
    running = Collector(scene.app, sampler=some)
    scene.run()
    sent = traces(dispatching.exporter.get_finished_spans())
    assert sent == traces(running.exporter.get_finished_spans())
    assert 0 < len(sent) < 20


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
