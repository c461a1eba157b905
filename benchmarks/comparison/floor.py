"""What the machine itself can do, through psycopg, with nothing of anybody's in between."""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg

from benchmarks.comparison.bench import Bench
from benchmarks.comparison.measurements import Row
from benchmarks.comparison.progress import say
from benchmarks.comparison.subjects import Subject

FLOOR = Subject("this machine", "floor")
BATCH = 500
OFTEN = 500

TABLES = """
CREATE TABLE copied (id bigint PRIMARY KEY, name text, payload text);
CREATE TABLE queue (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text, payload text,
    created_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE live (id bigint PRIMARY KEY, name text, payload text, started_at timestamptz);
CREATE TABLE done (id bigint PRIMARY KEY, name text, payload text, started_at timestamptz,
    finished_at timestamptz)"""
INSERT = """INSERT INTO queue (name, payload)
    SELECT 'noop', n::text FROM generate_series(1, %s) AS n"""
CLAIM = """WITH chosen AS (
        DELETE FROM queue WHERE id IN (
            SELECT id FROM queue ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED)
        RETURNING id, name, payload)
    INSERT INTO live SELECT id, name, payload, now() FROM chosen RETURNING id"""
FINISH = """WITH ended AS (DELETE FROM live WHERE id = ANY(%s) RETURNING *)
    INSERT INTO done SELECT *, now() FROM ended"""


def measure_floor(bench: Bench) -> None:
    """Each figure as often as everything else is measured."""
    jobs = bench.sizes.jobs
    for number in range(bench.sizes.repetitions):
        say(f"floor of the machine, {number + 1} of {bench.sizes.repetitions}")
        with bench.database(FLOOR) as url, psycopg.connect(url, autocommit=True) as connection:
            connection.execute(TABLES.encode())
            figures = {
                Row("floor", "COPY", "rows/s"): jobs / seconds(lambda: copy(connection, jobs)),
                Row("floor", "INSERT, one statement", "rows/s"): jobs
                / seconds(lambda: connection.execute(INSERT, [jobs])),
                Row("floor", f"claim and finish, {BATCH} at a time", "jobs/s"): jobs
                / seconds(lambda: claim_and_finish(connection)),
                Row("floor", "one row, one commit", "commits/s"): OFTEN
                / seconds(lambda: commit_singly(connection)),
                Row("floor", "round trip", "ms"): round_trip(connection),
                Row("floor", "NOTIFY to another connection", "ms"): notify(url, connection),
            }
        for row, value in figures.items():
            bench.results.add(row, FLOOR.name, value)


def seconds(action: Callable[[], object]) -> float:
    """How long it takes."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def copy(connection: psycopg.Connection, rows: int) -> None:
    """One COPY of so many rows."""
    with connection.cursor() as cursor, cursor.copy("COPY copied FROM STDIN") as into:
        for number in range(rows):
            into.write_row((number, "noop", str(number)))


def claim_and_finish(connection: psycopg.Connection) -> None:
    """A queue emptied in batches: two statements and two commits for each."""
    while claimed := connection.execute(CLAIM, [BATCH]).fetchall():
        connection.execute(FINISH, [[row[0] for row in claimed]])


def commit_singly(connection: psycopg.Connection) -> None:
    """One row after another."""
    for _ in range(OFTEN):
        connection.execute("INSERT INTO queue (name) VALUES ('single')")


def round_trip(connection: psycopg.Connection) -> float:
    """The shortest question, in milliseconds."""
    ask = [seconds(lambda: connection.execute("SELECT 1")) for _ in range(OFTEN)]
    return 1000 * statistics.median(ask)


def notify(url: str, connection: psycopg.Connection) -> float:
    """From before NOTIFY to its arrival, in milliseconds."""
    with listening(url) as heard:
        taken = []
        for _ in range(OFTEN // 5):
            started = time.perf_counter()
            connection.execute("NOTIFY floor")
            next(heard.notifies(timeout=5, stop_after=1))
            taken.append(time.perf_counter() - started)
    return 1000 * statistics.median(taken)


@contextmanager
def listening(url: str) -> Iterator[psycopg.Connection]:
    """Another connection that listens."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("LISTEN floor")
        yield connection
