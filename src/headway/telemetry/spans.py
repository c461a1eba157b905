"""Spans out of events: enqueue → dispatch → run → steps, one trace for each entry.

Each process sends the spans of what it does itself. While a step runs, its span is the current
one, in its thread too, so that what instrumented libraries do appears below it.
"""

from contextvars import ContextVar, Token
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace import (
    NonRecordingSpan,
    ProxyTracerProvider,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    TracerProvider,
    set_span_in_context,
)

from headway.observe import Event
from headway.telemetry.given_ids import GivenIds
from headway.telemetry.trace_ids import TraceIds

SCOPE = "headway"
ATTRIBUTES = ("execution_id", "entry_id", "workflow", "group", "source", "attempt", "task_server")


@dataclass
class _Current:
    """A span that user code runs in, and what puts the context back as it was before."""

    span: Span
    token: Token[Context]

    @classmethod
    def begin(cls, span: Span) -> "_Current":
        return cls(span, context.attach(set_span_in_context(span)))

    def end(self) -> None:
        context.detach(self.token)
        self.span.end()


@dataclass
class _Running:
    execution_id: int
    run: _Current
    step: _Current | None = None

    def end_step(self, failure: str | None = None) -> None:
        if self.step is not None:
            if failure:
                self.step.span.set_status(Status(StatusCode.ERROR, failure))
            self.step.end()
            self.step = None


# By context and not by id: a run that is abandoned takes its own with it.
_RUNNING: ContextVar[_Running | None] = ContextVar("headway_running", default=None)


class Spans:
    """A subscriber that makes spans of events; without a provider, of the global one."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._provider = provider
        self._known: tuple[TracerProvider, Tracer] | None = None
        self._handlers = {
            "execution.dispatched": self._dispatched,
            "execution.started": self._started,
            "execution.step": self._step,
            "execution.ran": self._ran,
        }

    def __call__(self, event: Event) -> None:
        """Send what *event* tells, if anybody has set up where to."""
        handler = self._handlers.get(event.name)
        if handler is None:
            return
        provider = self._provider or trace.get_tracer_provider()
        if not isinstance(provider, ProxyTracerProvider):  # that one is set up by nobody yet
            handler(provider, self._tracer(provider), event.fields)

    def _tracer(self, provider: TracerProvider) -> Tracer:
        """Asked for once: the SDK changes the filters of warnings whenever it is asked."""
        if self._known is None or self._known[0] is not provider:
            self._known = (provider, provider.get_tracer(SCOPE))
        return self._known[1]

    def _dispatched(self, provider: TracerProvider, tracer: Tracer, fields: dict[str, Any]) -> None:
        ids = TraceIds.told(fields)
        queued = _nanoseconds(fields["queued_at"])
        attributes, workflow = _attributes(fields), fields["workflow"]
        with GivenIds.on(tracer).given(ids.trace, ids.enqueue):
            enqueue = tracer.start_span(
                f"enqueue {workflow}", Context(), SpanKind.PRODUCER, attributes, start_time=queued
            )
        enqueue.end(queued)
        with GivenIds.on(tracer).given(ids.trace, ids.of_dispatch(fields["execution_id"])):
            dispatch = tracer.start_span(
                f"dispatch {workflow}",
                _below(provider, ids.trace, ids.enqueue),
                attributes=attributes,
                start_time=_nanoseconds(fields["ready_at"]),
            )
        dispatch.end(_nanoseconds(fields["dispatched_at"]))

    def _started(self, provider: TracerProvider, tracer: Tracer, fields: dict[str, Any]) -> None:
        ids, execution_id = TraceIds.told(fields), fields["execution_id"]
        with GivenIds.on(tracer).given(ids.trace, ids.of_run(execution_id)):
            span = tracer.start_span(
                f"run {fields['workflow']}",
                _below(provider, ids.trace, ids.of_dispatch(execution_id)),
                SpanKind.CONSUMER,
                _attributes(fields),
            )
        _RUNNING.set(_Running(execution_id, _Current.begin(span)))

    def _step(self, provider: TracerProvider, tracer: Tracer, fields: dict[str, Any]) -> None:
        running = _RUNNING.get()
        if running is not None and running.execution_id == fields["execution_id"]:
            running.end_step()
            running.step = _Current.begin(tracer.start_span(f"step {fields['step']}"))

    def _ran(self, provider: TracerProvider, tracer: Tracer, fields: dict[str, Any]) -> None:
        running = _RUNNING.get()
        if running is None or running.execution_id != fields["execution_id"]:
            return
        _RUNNING.set(None)
        failure = fields["failure"]
        running.end_step(failure)
        running.run.span.set_attribute("headway.state", str(fields["state"]))
        if failure:
            running.run.span.set_status(Status(StatusCode.ERROR, failure))
        running.run.end()


def _below(provider: TracerProvider, trace_id: int, span_id: int) -> Context:
    """The context of a span that another process has sent, or has not, if its sampler says so."""
    sampler = getattr(provider, "sampler", None)
    sampled = sampler is None or (sampler.should_sample(None, trace_id, "").decision.is_sampled())
    flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
    parent = SpanContext(trace_id, span_id, is_remote=True, trace_flags=flags)
    return set_span_in_context(NonRecordingSpan(parent), Context())


def _attributes(fields: dict[str, Any]) -> dict[str, str | int]:
    told = {f"headway.{name}": fields.get(name) for name in ATTRIBUTES}
    told["headway.manifest"] = fields["external_id"]
    return {
        name: value if isinstance(value, int) else str(value)
        for name, value in told.items()
        if value is not None
    }


def _nanoseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000) * 1_000
