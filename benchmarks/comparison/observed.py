"""headway's latency with a tracer, and through PgBouncer in transaction mode."""

import statistics

from benchmarks.comparison.bench import Bench
from benchmarks.comparison.draining import prepared
from benchmarks.comparison.latency import WARM_UPS, latencies_at
from benchmarks.comparison.measurements import Row, percentile
from benchmarks.comparison.progress import say
from benchmarks.comparison.subjects import headway, pooled_headway, traced_headway
from tests.pgbouncer import PORT, pgbouncer
from tests.postgres_server import PostgresUnavailable

MEDIAN = Row("observed", "trigger to start, median", "ms")
NEARLY_ALL = Row("observed", "trigger to start, 95th percentile", "ms")


def measure_observed(bench: Bench) -> None:
    """Take turns: headway as it is, traced, and with a pooler between it and the server."""
    if not bench.present([headway()]):
        return
    try:
        with pgbouncer(bench.server):
            _measure(bench)
    except PostgresUnavailable as reason:
        bench.missing["pgbouncer"] = str(reason)
        say(f"observed: left out, {reason}")


def _measure(bench: Bench) -> None:
    count = bench.sizes.samples + WARM_UPS
    pooled = pooled_headway()
    for subject in bench.in_turn("observed", [headway(), traced_headway(), pooled]):
        with prepared(bench, subject, count) as url:
            address = f"{url}&port={PORT}" if subject == pooled else url
            taken = latencies_at(bench, subject, address, count)
        bench.note(MEDIAN, subject, statistics.median(taken))
        bench.note(NEARLY_ALL, subject, percentile(taken, 0.95))
