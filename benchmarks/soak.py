"""Whether processes that run for long stay as they are.

    python -m benchmarks.soak [--minutes N] [--processes N]

Real `headway run` processes on a PostgreSQL server of their own, under steady load: schedules of
a second, chains, activations, isolated runs, failures with retries and dead letters, cancelled
runs, and what programs enqueue. Finished work is kept for twenty seconds. Meanwhile it is asked
from outside what the processes hold (memory, threads, files), how many connections there are, and
how big the tables are. After a quarter of warm-up, of nothing there may be more in the second half
than in the first; the tolerances are in `benchmarks/_flatness.py`. Exit code 1 if there is.

`tests/scenarios/test_soak.py` is the same for an hour of virtual time.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import psycopg
from sqlalchemy import func, select, text

from benchmarks._flatness import MIB, Sample, grown, of_process, typical
from benchmarks._soak_jobs import hw
from headway.definition.runtime import Runtime
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.tables import schema
from headway.torture.postgres import private_server

STOPPING = 60.0
SAMPLES = 40
SIZES = (
    "SELECT relname, pg_total_relation_size(relid) AS bytes, n_dead_tup AS dead"
    " FROM pg_stat_user_tables"
)
SESSIONS = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND application_name = 'headway'"
)


@contextmanager
def running(url: str, folder: Path, count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """So many processes, stopped in the end as anybody would stop them."""
    environment = {**os.environ, "HEADWAY_DATABASE_URL": url}
    command = [sys.executable, "-m", "headway", "run", "benchmarks._soak_jobs:hw", "--quiet"]
    processes = []
    with (folder / "log").open("wb") as log:
        for _ in range(count):
            processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
    try:
        yield processes
        for one in processes:
            one.send_signal(signal.SIGTERM)
        for one in processes:
            one.wait(STOPPING)
    finally:
        for one in processes:
            one.kill()
            one.wait()


class Client:
    """What people and programs do meanwhile: enqueue, trigger, cancel, deal with dead letters."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._turns = 0

    def act(self) -> None:
        """Once a second."""
        self._turns += 1
        for name in ("in_thread", "in_loop", "fail"):
            self._runtime.enqueue(name)
        if self._turns % 4 == 0:
            self._runtime.trigger("held")
        if self._turns % 4 == 2:
            self._runtime.cancelling.cancel("held", None, None, None, None)
        if self._turns % 5 == 0:
            self._resolve()

    def _resolve(self) -> None:
        letters = self._runtime.dead_letters
        if self._turns % 2:
            letters.requeue_all("once more")
        else:
            letters.acknowledge_all("known")


def take_sample(
    connection: psycopg.Connection, store: Store, processes: Sequence[subprocess.Popen[bytes]]
) -> dict[str, float]:
    """What the processes hold and the database keeps, at this moment."""
    found: dict[str, float] = {}
    for number, process in enumerate(processes, start=1):
        if process.poll() is not None:
            raise SystemExit(f"process {number} has ended with code {process.returncode}")
        for what, value in of_process(process.pid).items():
            found[f"{what} of process {number}"] = value
    [sessions] = connection.execute(SESSIONS).fetchone() or (0,)
    found["connections"] = float(sessions)
    with store.reading() as tx:
        for name, table in schema.tables.items():
            rows = tx.connection.execute(select(func.count()).select_from(table)).scalar_one()
            found[f"rows {name}"] = float(rows)
        for row in tx.connection.execute(text(SIZES)):
            found[f"bytes {row.relname}"] = float(row.bytes)
            found[f"dead {row.relname}"] = float(row.dead)
    return found


def soak(url: str, folder: Path, minutes: float, count: int) -> list[Sample]:
    """Let it run for so long; returns what was sampled."""
    store = Store(url)
    migrate(store)
    client = Client(Runtime("client", hw.registry, store))
    samples: list[Sample] = []
    began, pause = time.monotonic(), Event()
    with running(url, folder, count) as processes, psycopg.connect(url, autocommit=True) as asked:
        wait_for_all(asked, count)
        until, each = began + minutes * 60, minutes * 60 / SAMPLES
        while (now := time.monotonic()) < until:
            client.act()
            if now >= began + each * (len(samples) + 1):
                samples.append(take_sample(asked, store, processes))
                print(told(len(samples), samples[-1]), flush=True)
            pause.wait(1)
    store.close()
    if codes := [one.returncode for one in processes if one.returncode]:
        raise SystemExit(f"not all have stopped well: {codes}\n{(folder / 'log').read_text()}")
    return samples


def wait_for_all(connection: psycopg.Connection, count: int) -> None:
    """Until every process has said that it lives."""
    pause = Event()
    for _ in range(600):
        if connection.execute("SELECT count(*) FROM headway_server").fetchone() == (count,):
            return
        pause.wait(0.1)
    raise SystemExit("not all processes have started within a minute")


def told(number: int, sample: Sample) -> str:
    """One line while it goes on."""
    memory = sum(value for what, value in sample.items() if what.startswith("memory")) / MIB
    size = sum(value for what, value in sample.items() if what.startswith("bytes")) / MIB
    return (
        f"{number:>3} of {SAMPLES}: {memory:6.1f} MiB of memory, {size:6.1f} MiB of tables, "
        f"{sample['rows headway_execution_history']:>6,.0f} finished runs, "
        f"{sample['connections']:.0f} connections"
    )


def table_of(samples: Sequence[Sample]) -> Iterator[str]:
    """Everything of which there was any: how much in either half."""
    yield f"{'median':<42}{'first half':>14}{'second half':>14}"
    for what, (before, after) in typical(samples).items():
        if before or after:
            yield f"{what:<42}{before:>14,.0f}{after:>14,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=5, help="how long (default 5)")
    parser.add_argument("--processes", type=int, default=2, help="headway processes (default 2)")
    chosen = parser.parse_args()
    with private_server(durable=True) as postgres, tempfile.TemporaryDirectory() as folder:
        samples = soak(postgres.url(), Path(folder), chosen.minutes, chosen.processes)
    for line in table_of(samples):
        print(line)
    found = grown(samples)
    for line in found:
        print(f"grown: {line}")
    print("not flat" if found else f"flat, over {chosen.minutes:g} minutes")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
