"""What does a virtual week of an hourly manifest cost in real time?

    python -m benchmarks.virtual_week [--weeks N] [--rounds N]

Each run is the whole way of a job through the real actors on a throw-away SQLite file: the
manager queues, the dispatcher admits, the runner claims, runs (an empty function) and records.
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from typing import NamedTuple

from headway import Headway, cron, every
from headway.domain.schedule import Schedule
from headway.testing import Sandbox

HOURS_PER_WEEK = 168
SCHEDULES: dict[str, Schedule] = {
    "every(hours=1)": every(hours=1),
    'cron("0 * * * *")': cron("0 * * * *"),
}


class Cost(NamedTuple):
    """Seconds by the clock on the wall, and of CPU time: equal on a machine with nothing else."""

    wall: float
    cpu: float


def measure(schedule: Schedule, weeks: int) -> Cost:
    """What *weeks* virtual weeks take, after the first run."""
    hw = Headway("virtual-week")

    @hw.workflow
    def extract(table: str) -> None: ...

    hw.schedule(extract, "extract-users", "users", schedule)
    with Sandbox(hw) as box:
        box.run_until_idle()
        began, cpu_before = time.perf_counter(), time.process_time()
        box.advance(weeks=weeks)
        took = Cost(time.perf_counter() - began, time.process_time() - cpu_before)
        runs = len(box.executions("extract-users")) - 1
    if runs != weeks * HOURS_PER_WEEK:
        raise SystemExit(f"{runs} runs instead of {weeks * HOURS_PER_WEEK}")
    return took


def report(name: str, costs: Sequence[Cost], weeks: int) -> str:
    """One line: median and spread of the rounds, and the ratio per run."""
    runs = weeks * HOURS_PER_WEEK
    seconds = [cost.wall for cost in costs]
    typical = statistics.median(seconds)
    cpu = statistics.median(cost.cpu for cost in costs)
    faster = weeks * 7 * 86400 / typical
    return (
        f"{name:<20}{runs:>6}{typical:>10.2f}{min(seconds):>8.2f}{max(seconds):>8.2f}{cpu:>8.2f}"
        f"{typical / runs * 1000:>10.1f}{faster:>14,.0f}"
    )


def main() -> None:
    """Measure every schedule and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weeks", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    print("schedule              runs  median s     min     max   CPU s    ms/run  times faster")
    for name, schedule in SCHEDULES.items():
        costs = [measure(schedule, chosen.weeks) for _ in range(chosen.rounds)]
        print(report(name, costs, chosen.weeks))


if __name__ == "__main__":
    main()
