"""Reading a subject's own record of what it has done, and leaving its database quiet."""

import sqlite3
import time

import psycopg

from benchmarks.comparison.subjects import Record

LOOK_EVERY = 0.25
STALLED_AFTER = 60.0
MICROSECONDS = 1_000_000


class NotDone(Exception):
    """The jobs were not all done; the message says how many were."""


def settle(url: str) -> None:
    """Statistics as autovacuum makes them within a minute, and no checkpoint left to happen."""
    if not url.startswith("sqlite"):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM (ANALYZE)")
            connection.execute("CHECKPOINT")


def last_id(url: str, record: Record) -> int:
    """The newest line of the record."""
    return int(_row(url, f"SELECT coalesce(max(id), 0) FROM {record.table}")[0])


def end_of(url: str, record: Record, since: int, jobs: int) -> float:
    """Wait until so many more jobs are done, and say when the last one was, in Unix seconds."""
    statement = (
        f"SELECT count(*), {_seconds(url, record)} FROM {record.table} "
        f"WHERE {record.is_finished} AND id > {since}"
    )
    done, deadline = 0, time.monotonic() + STALLED_AFTER
    while time.monotonic() < deadline:
        time.sleep(LOOK_EVERY)
        count, last = _row(url, statement)
        if count >= jobs:
            return float(last)
        if count > done:
            done, deadline = count, time.monotonic() + STALLED_AFTER
    raise NotDone(f"{done} of {jobs} jobs were done, then no more for {STALLED_AFTER:.0f} s")


def _seconds(url: str, record: Record) -> str:
    if url.startswith("sqlite"):
        return f"max({record.finished_at}) / {MICROSECONDS}.0"
    return f"extract(epoch FROM max({record.finished_at}))"


def _row(url: str, statement: str) -> tuple[int, float]:
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        try:
            found = connection.execute(statement).fetchone()
        finally:
            connection.close()
    else:
        with psycopg.connect(url, autocommit=True) as reading:
            found = reading.execute(statement.encode()).fetchone()
    assert found
    return found[0], found[-1]
