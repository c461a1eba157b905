"""Prometheus: what this process did, from its events, and what waits and runs, from the database.

Counters and histograms are this process's own, so each process is scraped; gauges are read when
somebody scrapes and say the same wherever they are read.
"""

from collections.abc import Iterator

from headway.extras import require
from headway.observe import Event
from headway.store.engine import Store
from headway.store.gauges import Gauges, read_gauges
from headway.telemetry.labels import Labels

require("prometheus")

from prometheus_client import (  # noqa: E402 - the packages may be missing
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.metrics_core import GaugeMetricFamily, Metric  # noqa: E402
from prometheus_client.registry import Collector  # noqa: E402

MOST_GROUPS = 50
WAITS = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 14400)
RUNS = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400)
CYCLES = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30)
OUTCOMES = {
    f"execution.{outcome}": outcome
    for outcome in ("completed", "failed", "cancelled", "handed_back")
}


class Prometheus:
    """Counts events; as a page for Prometheus, together with what the database says.

    >>> from headway import Headway
    >>> hw = Headway()
    >>> metrics = Prometheus()
    >>> hw.observer.subscribe(metrics)
    >>> hw.observer.emit("manifest.dead_lettered", external_id="extract-users")
    >>> "headway_dead_lettered_total 1.0" in metrics.page().decode()
    True
    """

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(
        self, store: Store | None = None, registry: CollectorRegistry | None = None
    ) -> None:
        self.registry = registry or CollectorRegistry()
        if registry is None:
            ProcessCollector(registry=self.registry)
        if store is not None:
            self.registry.register(InDatabase(store))
        self._labels = Labels()
        self._make_counters()
        self._make_histograms()
        self.healthy = Gauge(
            "headway_healthy",
            "1 while this process can do all of its work, else 0.",
            registry=self.registry,
        )
        self.healthy.set(1)

    def _make_counters(self) -> None:
        labels = ("workflow", "group")
        self.ended = Counter(
            "headway_executions",
            "Executions whose end this process has recorded.",
            ("outcome", *labels),
            registry=self.registry,
        )
        self.dispatched = Counter(
            "headway_dispatched",
            "Executions this process has dispatched.",
            labels,
            registry=self.registry,
        )
        self.queued = Counter(
            "headway_queued",
            "Entries this process's manager has queued.",
            registry=self.registry,
        )
        self.dead_lettered = Counter(
            "headway_dead_lettered",
            "Manifests this process has made a dead letter of.",
            registry=self.registry,
        )
        self.buried = Counter(
            "headway_servers_buried",
            "Other servers this process has found dead.",
            registry=self.registry,
        )
        self.failures = Counter(
            "headway_loop_failures",
            "Errors the loops of this process have caught.",
            ("loop",),
            registry=self.registry,
        )

    def _make_histograms(self) -> None:
        self.waits = Histogram(
            "headway_queue_wait_seconds",
            "From when an entry's time had come until it was dispatched.",
            ("workflow",),
            buckets=WAITS,
            registry=self.registry,
        )
        self.delays = Histogram(
            "headway_start_delay_seconds",
            "From dispatch until a worker has begun.",
            ("workflow",),
            buckets=WAITS,
            registry=self.registry,
        )
        self.runs = Histogram(
            "headway_run_seconds",
            "How long executions ran, whatever their end.",
            ("workflow",),
            buckets=RUNS,
            registry=self.registry,
        )
        self.cycles = Histogram(
            "headway_cycle_seconds",
            "How long one cycle of the manager or the dispatcher took.",
            ("actor",),
            buckets=CYCLES,
            registry=self.registry,
        )

    def __call__(self, event: Event) -> None:
        """Count *event*."""
        name, fields = event.name, event.fields
        if name in OUTCOMES:
            self._count_end(OUTCOMES[name], event)
        elif name == "execution.dispatched":
            workflow, group = self._labels.of(fields)
            self.dispatched.labels(workflow, group).inc()
            waited = fields["dispatched_at"] - fields["ready_at"]
            self.waits.labels(workflow).observe(max(0.0, waited.total_seconds()))
        elif name == "execution.started":
            delay = fields["started_at"] - fields["dispatched_at"]
            workflow, _ = self._labels.of(fields)
            self.delays.labels(workflow).observe(max(0.0, delay.total_seconds()))
        else:
            self._count_others(name, event)

    def _count_end(self, outcome: str, event: Event) -> None:
        workflow, group = self._labels.of(event.fields)
        self.ended.labels(outcome, workflow, group).inc()
        if event.fields["seconds"] is not None:
            self.runs.labels(workflow).observe(max(0.0, event.fields["seconds"]))

    def _count_others(self, name: str, event: Event) -> None:
        actor, _, what = name.partition(".")
        if what == "cycle":
            self.cycles.labels(actor).observe(sum(event.fields["seconds"].values()))
            self.queued.inc(event.fields.get("queued", 0))
        elif name == "manifest.dead_lettered":
            self.dead_lettered.inc()
        elif name == "server.buried":
            self.buried.inc()
        elif name == "loop.failed":
            self.failures.labels(event.fields["loop"]).inc()
        elif name in ("service.healthy", "service.unhealthy"):
            self.healthy.set(name == "service.healthy")

    def page(self) -> bytes:
        """Everything there is to scrape, as text.

        >>> b"headway_healthy 1.0" in Prometheus().page()
        True
        """
        return generate_latest(self.registry)


class InDatabase(Collector):
    """Gauges that are read from the database whenever somebody scrapes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def describe(self) -> list[Metric]:
        """Nothing beforehand, so that registering asks no database."""
        return []

    def collect(self) -> Iterator[Metric]:
        """What waits, what runs and who is there; a database that is away leaves only that."""
        try:
            with self._store.reading() as tx:
                gauges = read_gauges(tx, MOST_GROUPS)
        except Exception:
            yield _gauge("headway_database_up", "Whether the database answered this scrape.", 0)
            return
        yield _gauge("headway_database_up", "Whether the database answered this scrape.", 1)
        yield from _metrics(gauges)


def _gauge(name: str, meaning: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, meaning, value=value)


def _metrics(gauges: Gauges) -> Iterator[Metric]:
    entries = GaugeMetricFamily(
        "headway_entries", "Queued entries; 100000 means as many at least.", labels=("state",)
    )
    entries.add_metric(("ready",), gauges.ready)
    entries.add_metric(("delayed",), gauges.delayed)
    yield entries
    live = GaugeMetricFamily(
        "headway_executions_live", "Executions that have not ended.", labels=("state",)
    )
    live.add_metric(("pending",), gauges.pending)
    live.add_metric(("in_progress",), gauges.running)
    yield live
    yield _gauge(
        "headway_oldest_entry_seconds",
        "How long the oldest entry whose time has come has waited.",
        gauges.waiting_seconds,
    )
    yield _gauge("headway_dead_letters", "Dead letters that await a person.", gauges.dead_letters)
    yield _gauge("headway_servers", "Processes whose lease holds.", gauges.servers)
    yield _gauge("headway_slots", "Jobs they can run at once.", gauges.slots)
    waiting = GaugeMetricFamily(
        "headway_group_entries",
        f"Ready entries of the {MOST_GROUPS} busiest groups.",
        labels=("group",),
    )
    running = GaugeMetricFamily(
        "headway_group_running", f"Running jobs of the {MOST_GROUPS} busiest.", labels=("group",)
    )
    for group, (waits, runs) in sorted(gauges.groups.items()):
        waiting.add_metric((group,), waits)
        running.add_metric((group,), runs)
    yield waiting
    yield running
