"""Providers that send by OTLP over HTTP, set up from the variables OpenTelemetry defines."""

from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import ProxyTracerProvider

from headway.definition.app import Headway
from headway.store.engine import Store
from headway.telemetry.otel import OpenTelemetry

SERVICE = "service.name"
UNNAMED = "unknown_service"  # what the SDK says if the environment names none


def export(app: Headway, store: Store) -> None:
    """Send what *app* does to where the environment says, unless it has seen to that itself.

    >>> export(hw, store)  # doctest: +SKIP
    """
    if any(isinstance(one, OpenTelemetry) for one in app.observer.subscribers):
        return
    if isinstance(trace.get_tracer_provider(), ProxyTracerProvider):
        _set_up(app.name)
    app.observer.subscribe(OpenTelemetry(store=store))


def _set_up(name: str) -> None:
    resource = Resource.create()
    if str(resource.attributes[SERVICE]).startswith(UNNAMED):
        resource = resource.merge(Resource({SERVICE: name}))
    tracing = TracerProvider(resource=resource)
    tracing.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(tracing)
    reader = PeriodicExportingMetricReader(OTLPMetricExporter())
    metrics.set_meter_provider(MeterProvider([reader], resource=resource))
