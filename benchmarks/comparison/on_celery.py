"""headway on Celery beside plain Celery, on one Redis broker: `python -m benchmarks.celery`."""

import json
import shutil
import subprocess
import sys

from benchmarks.comparison.bench import Bench
from benchmarks.comparison.measurements import Row
from benchmarks.comparison.processes import ROOT, DriverFailed
from benchmarks.comparison.progress import say
from benchmarks.comparison.subjects import Subject, headway

RATE = Row("celery", "jobs on one Celery worker", "jobs/s")
ON_CELERY = Subject(name="headway on Celery", software="headway")
PLAIN = Subject(name="plain Celery", software="celery")


def measure_celery(bench: Bench) -> None:
    """Plain Celery and headway take turns on one worker with two processes."""
    if not bench.present([headway()]):
        return
    if shutil.which("redis-server") is None:
        bench.missing["redis"] = "no redis-server; Debian: apt install redis-server"
        say(f"celery: left out, {bench.missing['redis']}")
        return
    jobs, rounds = bench.sizes.celery_jobs, bench.sizes.repetitions
    command = ["-m", "benchmarks.celery", "--json", f"--jobs={jobs}", f"--rounds={rounds}"]
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise DriverFailed(f"benchmarks.celery ended with {done.returncode}\n{done.stderr[-3000:]}")
    for line in done.stdout.splitlines():
        rates = json.loads(line)
        bench.note(RATE, ON_CELERY, rates["headway"])
        bench.note(RATE, PLAIN, rates["plain"])
