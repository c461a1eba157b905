"""What a process asks of PostgreSQL while there is nothing to do: every statement is logged."""

import re
import time
from collections import Counter
from contextlib import ExitStack

import psycopg

from benchmarks.comparison.bench import Bench
from benchmarks.comparison.draining import prepared
from benchmarks.comparison.measurements import Row
from benchmarks.comparison.progress import say
from benchmarks.comparison.subjects import apscheduler, headway, pgqueuer, procrastinate

IDLE = Row("idle", "statements of an idle process", "1/s")
START_UP = 5.0
MANIFESTS = 1000
# log_line_prefix is the database's name here; each statement is then one line that begins with it.
STATEMENT = re.compile(
    r"^(\w+) LOG:  (?:statement|execute [^:]*): (?!BEGIN|COMMIT|ROLLBACK)", re.MULTILINE
)


def measure_idling(bench: Bench) -> None:
    """All of them at once, each in a database of its own: nobody has anything to do."""
    log, subjects = bench.server.directory / "log", {}
    with ExitStack() as running:
        running.callback(log_statements, bench, "none")
        log_statements(bench, "all")
        for subject in bench.present([headway(), pgqueuer(), procrastinate(), apscheduler()]):
            url = running.enter_context(prepared(bench, subject, MANIFESTS))
            with psycopg.connect(url) as connection:
                subjects[connection.info.dbname] = subject
            process = running.enter_context(
                bench.driver(subject, "work", url=url, **subject.worker)
            )
            process.hear()
        say(f"idle: {', '.join(one.name for one in subjects.values())}")
        time.sleep(START_UP)
        before = log.stat().st_size
        time.sleep(bench.sizes.idle_seconds)
        with log.open("rb") as lines:
            lines.seek(before)
            sent = statements(lines.read().decode(errors="replace"))
    for name, subject in subjects.items():
        bench.note(IDLE, subject, sent[name] / bench.sizes.idle_seconds)


def log_statements(bench: Bench, which: str) -> None:
    """Have the server log statements, or no longer."""
    with psycopg.connect(bench.server.url(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET log_line_prefix = '%d '")
        connection.execute(f"ALTER SYSTEM SET log_statement = '{which}'".encode())
        connection.execute("SELECT pg_reload_conf()")


def statements(log: str) -> Counter[str]:
    """How many statements a piece of the server's log tells of, by database."""
    return Counter(STATEMENT.findall(log))
