"""The application that the scenario tests run in processes of their own.

Each run leaves a line when it starts and one when it ends, and ends once it is released.
"""

import asyncio
import os
import signal
import time
from pathlib import Path

from headway import Group, Headway, Run, every

FOLDER = Path(os.environ["SCENARIO_FOLDER"])
COUNT = int(os.environ.get("SCENARIO_COUNT", "2"))
CAP = int(os.environ.get("SCENARIO_CAP", "0")) or None

hw = Headway("scenario")


def note(what: str, run: Run) -> None:
    line = f"{run.manifest} {run.execution_id} {what}\n".encode()
    evidence = os.open(FOLDER / "evidence", os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)
    try:
        os.write(evidence, line)
    finally:
        os.close(evidence)


def released(run: Run) -> bool:
    """With all others, or alone."""
    return any((FOLDER / name).exists() for name in ("released", f"released-{run.execution_id}"))


@hw.workflow
def in_thread(run: Run) -> None:
    note("start", run)
    while not released(run):
        time.sleep(0.01)
    note("end", run)


@hw.workflow
async def in_loop(run: Run) -> None:
    note("start", run)
    while not released(run):
        await asyncio.sleep(0.01)
    note("end", run)


@hw.workflow
async def nothing() -> None:
    """For those who want to know whether anything is dispatched at all."""


@hw.workflow
def takes_its_worker_along(run: Run) -> None:
    note("start", run)
    os.kill(os.getpid(), signal.SIGKILL)


if os.environ.get("SCENARIO_POISON"):
    hw.schedule(takes_its_worker_along, "poison", None, every(days=365), group="poison")

jobs = Group("jobs", max_active_jobs=CAP) if CAP else "jobs"
for number in range(COUNT):
    workflow = in_loop if number % 2 else in_thread
    hw.schedule(workflow, f"job-{number}", None, every(days=365), group=jobs)
