"""Empty jobs through headway on Celery, beside the same through plain Celery.

    python -m benchmarks.celery [--jobs N] [--rounds N] [--broker redis|rabbitmq] [--json]

One Celery worker with two processes, on a broker and a PostgreSQL server of their own. In each
round plain Celery runs N tasks, and then headway sends as many executions to the same worker; a
task and a job do the same, they count in a file. Time is taken from the first one queued until all
have counted; headway's are queued in one transaction, as a batch of its manager is. Both take
turns on one machine, so that what else it does hits them alike: the ratio is of one run. headway's
part is a transaction to claim and one to finish for each job, and what admits and publishes it.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from celery import Celery

from headway import Headway
from headway.celery import CeleryServer, install
from headway.domain.work_queue import NewEntry, Source
from headway.store import work_queue
from headway.store.engine import Store
from headway.store.migrate import migrate
from tests.brokers import running
from tests.postgres_server import private_server

MODULE = "benchmarks.celery"
ROOT = Path(__file__).parents[1]
PROCESSES = 2
ADMITTED = 200
STUCK = 300.0
PAUSE = 0.01

counter = Path(os.environ.get("BENCH_COUNTER", os.devnull))
hw = Headway("bench", max_active_jobs=ADMITTED, max_queued_jobs_per_cycle=None)
app = Celery("bench", broker=os.environ.get("BENCH_BROKER", "memory://"))
install(app, hw)


def count() -> None:
    """Leave a byte: as cheap as a trace can be, and safe from several processes."""
    file = os.open(counter, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    os.write(file, b".")
    os.close(file)


@app.task(name="plain", ignore_result=True)  # type: ignore[untyped-decorator]
def plain() -> None:
    count()


@hw.workflow
def job() -> None:
    count()


hw.task_servers.add("celery", CeleryServer(app), default=True)


def counted() -> int:
    return counter.stat().st_size if counter.exists() else 0


def until_counted(wanted: int) -> None:
    give_up = time.monotonic() + STUCK
    while counted() < wanted:
        if time.monotonic() > give_up:
            sys.exit(f"{counted()} of {wanted} after {STUCK:.0f} s")
        time.sleep(PAUSE)


def rate_of_plain(jobs: int) -> float:
    before, began = counted(), time.monotonic()
    with app.producer_pool.acquire(block=True) as producer:
        for _ in range(jobs):
            plain.apply_async(producer=producer)
    until_counted(before + jobs)
    return jobs / (time.monotonic() - began)


def rate_through_headway(store: Store, jobs: int) -> float:
    before, began = counted(), time.monotonic()
    with store.writing() as tx:
        work_queue.enqueue(tx, [NewEntry("job", Source.AD_HOC, "null")] * jobs)
    until_counted(before + jobs)
    return jobs / (time.monotonic() - began)


def measure(kind: str, jobs: int, rounds: int, as_json: bool) -> None:
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory()))
        broker = closing.enter_context(running(kind))
        database = closing.enter_context(private_server()).url()
        store = Store(database)
        migrate(store)
        store.close()
        setting = {
            "BENCH_BROKER": broker.url,
            "BENCH_COUNTER": str(folder / "counter"),
            "HEADWAY_DATABASE_URL": database,
            "PYTHONPATH": str(ROOT),
        }
        # This module is imported anew, as the workers import it: with their broker.
        command = [sys.executable, "-m", MODULE, "--jobs", str(jobs), "--rounds", str(rounds)]
        for part in (
            ["-m", "celery", "-A", MODULE, "worker", f"--concurrency={PROCESSES}"],
            ["-m", "headway", "run", f"{MODULE}:hw", "--quiet"],
        ):
            process = closing.enter_context(
                subprocess.Popen(
                    [sys.executable, *part],
                    env=os.environ | setting,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            )
            closing.callback(os.killpg, process.pid, signal.SIGKILL)
        command += ["--json"] if as_json else []
        subprocess.run([*command, "--inside"], env=os.environ | setting, check=True)


def compare(jobs: int, rounds: int, as_json: bool) -> None:
    store = Store(hw.database_url)
    rate_of_plain(20)
    rate_through_headway(store, 20)
    rates: list[tuple[float, float]] = []
    for number in range(rounds):
        rates.append((rate_of_plain(jobs), rate_through_headway(store, jobs)))
        plain, through = rates[-1]
        print(
            json.dumps({"plain": plain, "headway": through})
            if as_json
            else f"round {number + 1}: plain Celery {plain:6.0f}/s, headway {through:6.0f}/s",
            flush=True,
        )
    store.close()
    if as_json:
        return
    ratio = statistics.median(through / alone for alone, through in rates)
    print(f"headway on Celery runs {ratio:.2f} × as many jobs a second as plain Celery (median)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--broker", choices=["redis", "rabbitmq"], default="redis")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="a JSON object a round, alone")
    given = parser.parse_args()
    if given.inside:
        compare(given.jobs, given.rounds, given.json)
    else:
        measure(given.broker, given.jobs, given.rounds, given.json)


if __name__ == "__main__":
    main()
