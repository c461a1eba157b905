"""The drain of a database with a long history, and while somebody's snapshot stays open."""

import statistics
import time
from contextlib import ExitStack

import psycopg

from benchmarks.comparison.bench import Bench
from benchmarks.comparison.draining import drain, fill, fill_and_drain, prepared
from benchmarks.comparison.measurements import Row
from benchmarks.comparison.progress import say
from benchmarks.comparison.subjects import Subject, headway

COLUMNS = """SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns
    WHERE table_name = 'headway_execution_history' AND column_name <> 'id'"""


def measure_ageing(bench: Bench) -> None:
    """headway alone: the same drain on new databases and on an old one, in turn."""
    fresh = Row("ageing", "drain of a fresh database", "jobs/s")
    after = f"after {bench.sizes.aged:,} executions"
    aged = Row("ageing", f"drain {after}", "% of fresh")
    held = Row("ageing", f"drain {after}, with an open snapshot", "% of fresh")
    subject, jobs = headway(), bench.sizes.jobs
    if not bench.present([subject]):
        return
    with prepared(bench, subject, jobs) as url:
        refill_and_drain(bench, subject, url)
        say(f"ageing: writing {bench.sizes.aged:,} finished executions")
        age(url, bench.sizes.aged)
        rates = []
        for _ in bench.in_turn("ageing", [subject]):
            bench.note(fresh, subject, fill_and_drain(bench, subject).rate)
            rates.append(refill_and_drain(bench, subject, url))
        usual = statistics.median(bench.results.values[fresh][subject.name])
        for rate in rates:
            bench.note(aged, subject, 100 * rate / usual)
        with ExitStack() as holding:
            hold_snapshot(bench, subject, url, holding)
            for _ in bench.in_turn("ageing, open snapshot", [subject]):
                rate = refill_and_drain(bench, subject, url)
                bench.note(held, subject, 100 * rate / usual)


def refill_and_drain(bench: Bench, subject: Subject, url: str) -> float:
    """Queue as many jobs again, and drain them."""
    fill(bench, subject, url, bench.sizes.jobs)
    return drain(bench, subject, url, bench.sizes.jobs).rate


def hold_snapshot(bench: Bench, subject: Subject, url: str, holding: ExitStack) -> None:
    """Open a snapshot and let work go on until it is old: nothing it may see can be vacuumed."""
    connection = holding.enter_context(psycopg.connect(url))
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.execute("SELECT count(*) FROM headway_manifest")
    old = time.monotonic() + bench.sizes.snapshot_age
    while time.monotonic() < old:
        say(f"ageing: {old - time.monotonic():.0f} s until the snapshot is old enough")
        refill_and_drain(bench, subject, url)


def age(url: str, executions: int) -> None:
    """Copies of what was finished, with ids before all others, until there are so many."""
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(COLUMNS).fetchone()
        assert row
        connection.execute(
            f"""INSERT INTO headway_execution_history (id, {row[0]})
            SELECT -row_number() OVER (), {row[0]} FROM headway_execution_history
            CROSS JOIN generate_series(1, {executions} / (
                SELECT count(*) FROM headway_execution_history))""".encode()
        )
        connection.execute("VACUUM (ANALYZE) headway_execution_history")
