"""One success and all that runs after it. None of the peers has dependents."""

import psycopg

from benchmarks.comparison.bench import Bench
from benchmarks.comparison.databases import end_of, last_id, settle
from benchmarks.comparison.measurements import Row
from benchmarks.comparison.subjects import headway

TIMES = """SELECT
    extract(epoch FROM min(finished_at) FILTER (WHERE external_id = 'parent')),
    extract(epoch FROM max(queued_at) FILTER (WHERE external_id <> 'parent')),
    extract(epoch FROM max(finished_at))
    FROM headway_execution_history"""


def measure_dependents(bench: Bench) -> None:
    """From the parent's finish to the last dependent's entry, and to the last one's finish."""
    children = bench.sizes.children
    queued, finished = (
        Row("dependents", f"{children:,} dependents {what} after their parent", "s")
        for what in ("queued", "finished")
    )
    for subject in bench.in_turn("dependents", [headway()]):
        assert subject.record
        with bench.database(subject) as url:
            cap = subject.preparing["cap"]
            bench.told(subject, "prepare_fan_out", url=url, children=children, cap=cap)
            settle(url)
            since = last_id(url, subject.record)
            settings = {"max_work_queue_entries_per_cycle": None}
            worker = {"settings": subject.worker["settings"] | settings}
            with bench.driver(subject, "work", url=url, **worker) as process:
                process.hear()
                bench.told(subject, "trigger", url=url, manifest="parent")
                end_of(url, subject.record, since, children + 1)
                process.stop()
            with psycopg.connect(url) as connection:
                times = connection.execute(TIMES).fetchone()
        assert times
        bench.note(queued, subject, float(times[1] - times[0]))
        bench.note(finished, subject, float(times[2] - times[0]))
