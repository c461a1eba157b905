"""The application whose processes are soaked: everything headway does, again and again."""

import asyncio
import time
from datetime import timedelta

from headway import Group, Headway, Run, every

KEPT = timedelta(seconds=20)
SHORT = timedelta(seconds=1)

hw = Headway(
    "soak",
    worker_count=8,
    max_active_jobs=16,
    default_retry_delay=SHORT,
    retention_period=KEPT,
    dead_letter_retention_period=KEPT,
    cleanup_interval=KEPT / 4,
)


@hw.workflow
def in_thread(run: Run) -> None:
    run.progress(0.5, "half of it")
    time.sleep(0.02)


@hw.workflow
async def in_loop(run: Run) -> None:
    await asyncio.sleep(0.05)


@hw.workflow(isolated=True)
def in_process(run: Run) -> None:
    run.progress(0.5, "half of it")


@hw.workflow(keep_output=True)
def fail_first(run: Run) -> str:
    if run.attempt == 1:
        raise RuntimeError("not the first time")
    return "the second time"


@hw.workflow
def fail(run: Run) -> None:
    raise RuntimeError("never")


@hw.workflow
def hold(run: Run) -> None:
    """Until somebody cancels it."""
    while True:
        run.raise_if_cancelled()
        time.sleep(0.02)


@hw.workflow
def activate(run: Run) -> None:
    run.activate_many((f"bucket-{number}", None) for number in range(4))


for number in range(8):
    group = Group(f"ticks-{number % 2}", max_active_jobs=3)
    chain = hw.schedule(in_thread, f"tick-{number}", None, every(seconds=1), group=group)
    chain.then_include(in_loop, f"after-{number}", None)
hw.schedule(in_process, "isolated", None, every(seconds=3))
hw.schedule(fail_first, "flaky", None, every(seconds=2))
hw.schedule(fail, "broken", None, every(seconds=2), max_retries=2)
spread = hw.schedule(activate, "spread", None, every(seconds=5))
for number in range(4):
    spread.include(in_loop, f"bucket-{number}", None, dormant=True)
hw.schedule(hold, "held")
