"""OpenTelemetry traces and metrics of this process; needs the extra ``headway-scheduler[otel]``."""

from headway.extras import require
from headway.observe import Event
from headway.store.engine import Store

require("otel")

from opentelemetry.metrics import MeterProvider  # noqa: E402 - what is missing is said first
from opentelemetry.trace import TracerProvider  # noqa: E402

from headway.telemetry.meters import Meters  # noqa: E402
from headway.telemetry.spans import Spans  # noqa: E402


class OpenTelemetry:
    """A subscriber that sends what events tell as spans and metrics.

    It uses the providers given, or those the application has set up for everything. With a
    *store*, queue depth and the like are read from it whenever metrics are collected.

    >>> from headway import Headway
    >>> hw = Headway()
    >>> hw.observer.subscribe(OpenTelemetry())
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        store: Store | None = None,
    ) -> None:
        self._subscribers = (Spans(tracer_provider), Meters(meter_provider, store))

    def __call__(self, event: Event) -> None:
        """Make spans and measurements of *event*."""
        for subscriber in self._subscribers:
            subscriber(event)
