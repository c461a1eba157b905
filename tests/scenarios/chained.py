"""Chains of two manifests under a cap, run by processes of their own, which keep a diary."""

import asyncio
import os
from functools import cache
from pathlib import Path

from headway import Group, Headway, Run, every
from tests.scenarios.bodies import Diary

CAP = 2
SECOND = 1000
SECONDS = 0.05

hw = Headway("chained")
narrow = Group("narrow", max_active_jobs=CAP)


@cache
def diary() -> Diary:
    return Diary(Path(os.environ["SCENARIO_FOLDER"]))


@hw.workflow
async def work(number: int, run: Run) -> None:
    diary().note("start", number, run.execution_id)
    await asyncio.sleep(SECONDS)
    diary().note("end", number, run.execution_id)


for number in range(int(os.environ.get("SCENARIO_COUNT", "0"))):
    first = hw.schedule(work, f"first-{number}", number, every(days=365), group=narrow)
    first.include(work, f"second-{number}", SECOND + number, group=narrow)
