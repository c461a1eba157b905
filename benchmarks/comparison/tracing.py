"""OpenTelemetry in the worker that is measured, with an exporter that keeps nothing."""

from collections.abc import Sequence

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from headway import Headway
from headway.telemetry.otel import OpenTelemetry


class Unread(SpanExporter):
    """An exporter that takes every batch and keeps none: the collector's work is not measured."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Take one batch."""
        return SpanExportResult.SUCCESS


def trace(hw: Headway) -> None:
    """Make spans of everything *hw* does, and export them in batches as with a collector."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Unread()))
    hw.observer.subscribe(OpenTelemetry(provider))
