"""The application that the tests run on Celery workers, in processes of their own.

Bodies note in a diary when they start and end; some end once they are released.
"""

import asyncio
import os
import signal
import time
from datetime import timedelta
from pathlib import Path

from celery import Celery

from headway import Group, Headway, Run
from headway.celery import CeleryServer, install
from headway.store import outbox
from tests.scenarios.bodies import Diary

FOLDER = Path(os.environ["SCENARIO_FOLDER"])
CAPS = (2, 5, 8)

hw = Headway("shop")
app = Celery("shop", broker=os.environ["SCENARIO_BROKER"])
app.conf.task_default_queue = os.environ["SCENARIO_QUEUE"]
app.conf.worker_prefetch_multiplier = 1
app.conf.broker_connection_retry_on_startup = True
install(app, hw)
app.conf.accept_content = os.environ.get("SCENARIO_ACCEPT", "json").split(",")

if seconds := os.environ.get("SCENARIO_UNCLAIMED"):
    outbox.UNCLAIMED_FOR = timedelta(seconds=float(seconds))  # a minute is long for a test

_diaries: dict[int, Diary] = {}


def note(what: str, number: int, run: Run) -> None:
    diary = _diaries.setdefault(os.getpid(), Diary(FOLDER))
    diary.note(what, number, run.execution_id)


def released() -> bool:
    return (FOLDER / "released").exists()


@hw.workflow
def quick(number: int, run: Run) -> None:
    note("start", number, run)
    time.sleep(0.01)
    note("end", number, run)


@hw.workflow
async def quick_async(number: int, run: Run) -> None:
    note("start", number, run)
    await asyncio.sleep(0.01)
    note("end", number, run)


@hw.workflow
def in_thread(number: int, run: Run) -> None:
    note("start", number, run)
    while not released():
        run.raise_if_cancelled()
        time.sleep(0.01)
    note("end", number, run)


@hw.workflow
async def in_loop(number: int, run: Run) -> None:
    note("start", number, run)
    while not released():
        await asyncio.sleep(0.01)
    note("end", number, run)


@hw.workflow(isolated=True)
def stubborn(number: int, run: Run) -> None:
    note("start", number, run)
    while not released():
        time.sleep(0.01)
    note("end", number, run)


@hw.workflow
def kills_its_process(number: int, run: Run) -> None:
    note("start", number, run)
    os.kill(os.getpid(), signal.SIGKILL)


@hw.workflow
def hands_over(number: int, run: Run) -> None:
    run.hand_over(f"look at number {number}")


@hw.workflow
def on_the_side(number: int, run: Run) -> None:
    note("start", number, run)
    note("end", number, run)


hw.task_servers.add("celery", CeleryServer(app), default=True)
aside = CeleryServer(app, queue=f"{app.conf.task_default_queue}-side", priority=3)
hw.task_servers.add("side", aside, workflows=[on_the_side])

for cap in CAPS:
    group = Group(f"at-most-{cap}", max_active_jobs=cap)
    for number, workflow in enumerate((quick, quick_async)):
        external_id = f"at-most-{cap}-{number}"
        hw.schedule(workflow, external_id, 0, group=group, allow_overlap=True)

capped = Group("capped", max_active_jobs=3)
hw.schedule(stubborn, "stubborn-0", 0, timeout=timedelta(seconds=2), group=capped)
hw.schedule(in_loop, "impatient-0", 0, timeout=timedelta(seconds=2), group=capped)
hw.schedule(kills_its_process, "poison-0", 0, group=capped)
