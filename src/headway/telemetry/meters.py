"""OpenTelemetry's metrics out of events, and gauges out of the database."""

import time
from collections.abc import Callable, Iterable, Sequence

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation

from headway.observe import Event
from headway.store.engine import Store
from headway.store.gauges import Gauges, read_gauges
from headway.telemetry.labels import Labels

MOST_GROUPS = 50
# One collection asks for several gauges; they are read together.
FRESH = 1.0
OUTCOMES = {
    f"execution.{outcome}": outcome
    for outcome in ("completed", "failed", "cancelled", "handed_back")
}


class Meters:
    """A subscriber that measures what events tell; without a provider, by the global one."""

    def __init__(self, provider: MeterProvider | None = None, store: Store | None = None) -> None:
        meter = (provider or metrics.get_meter_provider()).get_meter("headway")
        self._labels = Labels()
        self._ended = meter.create_counter(
            "headway.executions", description="Executions whose end this process has recorded."
        )
        self._dead_lettered = meter.create_counter(
            "headway.dead_lettered", description="Manifests made a dead letter of."
        )
        self._waits = meter.create_histogram(
            "headway.queue.wait", "s", "From when an entry's time had come until its dispatch."
        )
        self._delays = meter.create_histogram(
            "headway.start.delay", "s", "From dispatch until a worker has begun."
        )
        self._runs = meter.create_histogram("headway.run.duration", "s", "How long runs took.")
        self._cycles = meter.create_histogram(
            "headway.cycle.duration", "s", "How long cycles of manager and dispatcher took."
        )
        if store is not None:
            _observe(meter, _Reader(store))

    def __call__(self, event: Event) -> None:
        """Measure what *event* tells."""
        name, fields = event.name, event.fields
        if name in OUTCOMES:
            workflow, group = self._labels.of(fields)
            labels = {"workflow": workflow, "group": group}
            self._ended.add(1, labels | {"outcome": OUTCOMES[name]})
            if fields["seconds"] is not None:
                self._runs.record(max(0.0, fields["seconds"]), labels)
        elif name == "execution.dispatched":
            waited = fields["dispatched_at"] - fields["ready_at"]
            self._waits.record(max(0.0, waited.total_seconds()), self._workflow(event))
        elif name == "execution.started":
            delay = fields["started_at"] - fields["dispatched_at"]
            self._delays.record(max(0.0, delay.total_seconds()), self._workflow(event))
        elif name in ("manager.cycle", "dispatcher.cycle"):
            actor = name.partition(".")[0]
            self._cycles.record(sum(fields["seconds"].values()), {"actor": actor})
        elif name == "manifest.dead_lettered":
            self._dead_lettered.add(1)

    def _workflow(self, event: Event) -> dict[str, str]:
        return {"workflow": self._labels.of(event.fields)[0]}


class _Reader:
    """The gauges, read at most once in a while."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read_at = -FRESH
        self._gauges = Gauges()

    def __call__(self) -> Gauges:
        if time.monotonic() - self._read_at >= FRESH:
            with self._store.reading() as tx:
                self._gauges = read_gauges(tx, MOST_GROUPS)
            self._read_at = time.monotonic()
        return self._gauges


Observing = Callable[[Gauges], Iterable[Observation]]


def _observe(meter: Meter, read: Callable[[], Gauges]) -> None:
    def gauge(name: str, description: str, observing: Observing) -> None:
        def observe(options: CallbackOptions) -> Sequence[Observation]:
            return list(observing(read()))

        meter.create_observable_gauge(name, [observe], description=description)

    def by_group(which: int) -> Observing:
        return lambda said: (
            Observation(counts[which], {"group": name}) for name, counts in said.groups.items()
        )

    gauge(
        "headway.entries",
        "Queued entries; 100000 means as many at least.",
        lambda said: (
            Observation(said.ready, {"state": "ready"}),
            Observation(said.delayed, {"state": "delayed"}),
        ),
    )
    gauge(
        "headway.executions.live",
        "Executions that have not ended.",
        lambda said: (
            Observation(said.pending, {"state": "pending"}),
            Observation(said.running, {"state": "in_progress"}),
        ),
    )
    gauge(
        "headway.oldest_entry.seconds",
        "How long the oldest entry whose time has come has waited.",
        lambda said: (Observation(said.waiting_seconds),),
    )
    gauge(
        "headway.dead_letters",
        "Dead letters that await a person.",
        lambda said: (Observation(said.dead_letters),),
    )
    gauge(
        "headway.servers",
        "Processes whose lease holds.",
        lambda said: (Observation(said.servers),),
    )
    gauge("headway.group.entries", "Ready entries of the busiest groups.", by_group(0))
    gauge("headway.group.running", "Running jobs of the busiest groups.", by_group(1))
