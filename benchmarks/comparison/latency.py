"""From the call that triggers a job to its first line, on a server that has nothing else to do."""

import random
import statistics
import time

from benchmarks.comparison.bench import Bench
from benchmarks.comparison.draining import prepared
from benchmarks.comparison.measurements import Row, percentile
from benchmarks.comparison.subjects import Subject, apscheduler, headway, pgqueuer, procrastinate

MEDIAN = Row("latency", "trigger to start, median", "ms")
NEARLY_ALL = Row("latency", "trigger to start, 95th percentile", "ms")
WARM_UPS = 20
START_UP = 3.0


def measure_latency(bench: Bench) -> None:
    """Each with the same settings as in the drain."""
    subjects = [headway(), pgqueuer(), procrastinate(), apscheduler(), headway(of_manifests=True)]
    for subject in bench.in_turn("latency", subjects):
        taken = (latencies if subject.record else latencies_alone)(bench, subject)
        bench.note(MEDIAN, subject, statistics.median(taken))
        bench.note(NEARLY_ALL, subject, percentile(taken, 0.95))


def latencies(bench: Bench, subject: Subject) -> list[float]:
    """One worker and one client, each in its own process, and one job at a time."""
    count = bench.sizes.samples + WARM_UPS
    with prepared(bench, subject, count) as url:
        return latencies_at(bench, subject, url, count)


def latencies_at(bench: Bench, subject: Subject, url: str, count: int) -> list[float]:
    """The milliseconds of *count* jobs on a prepared database, without those that warm it up."""
    with (
        bench.driver(subject, "work", url=url, tell_starts=True, **subject.worker) as worker,
        bench.driver(subject, "ask", url=url, **subject.enqueuing) as client,
    ):
        worker.hear()
        client.hear()
        time.sleep(START_UP)
        taken = []
        for number in range(count):
            client.send(number)
            asked_at = client.hear()["at"]
            taken.append(1000 * (worker.hear()["at"] - asked_at))
            pause()
        worker.stop()
        client.stop()
    return taken[WARM_UPS:]


def latencies_alone(bench: Bench, subject: Subject) -> list[float]:
    """Client and worker are one process, which tells both times in either order."""
    count = bench.sizes.samples + WARM_UPS
    with (
        prepared(bench, subject, count) as url,
        bench.driver(subject, "alone", url=url, **subject.worker) as process,
    ):
        process.hear()
        taken = []
        for number in range(count):
            process.send(number)
            times = process.hear() | process.hear()
            taken.append(1000 * (times["at"] - times["asked_at"]))
            pause()
        process.stop()
    return taken[WARM_UPS:]


def pause() -> None:
    """Not always the same, so that nothing falls into step."""
    time.sleep(random.uniform(0.005, 0.02))
