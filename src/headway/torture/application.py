"""The application under torture: every body notes its start and its end."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path

from pydantic import BaseModel

from headway.definition.app import Headway
from headway.definition.builder import Chain
from headway.domain.manifest import Group
from headway.domain.retry import RetryPolicy
from headway.domain.schedule import every
from headway.run import Run
from headway.torture.evidence import Notebook
from headway.torture.plan import CAPS, GLOBAL_CAP, SIRENS, Moment, Plan

CALLS = 8  # dependents that one run activates at most
HIGHEST_PRIORITY = 31
LOOK_AT_SIGNAL = 0.01

RETRY = RetryPolicy(delay=timedelta(seconds=1), multiplier=1.0)


class Work(BaseModel):
    """A piece of work: its number, unique in a run, and how long it takes."""

    number: int
    seconds: float = 0.0


class Siren(BaseModel):
    """A job that activates dependents beside a restart of the database, from *moment* on."""

    number: str = "siren"
    restart: int = 0
    moment: Moment = Moment.AWAY


def signal_of(folder: Path, restart: int, moment: Moment) -> Path:
    """Return the file that exists once this moment of this restart has come."""
    return folder / f"restart-{restart}.{moment}"


def ready_file(folder: Path, number: str) -> Path:
    """Return the file that exists once the body of this siren has begun."""
    return folder / f"{number}.ready"


class Bodies:
    """What the jobs do, besides noting it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._notes = Notebook(folder)

    @contextmanager
    def _noted(self, run: Run, number: object) -> Iterator[None]:
        """However the body ends, it says so; only a kill leaves it without a word."""
        told = (run.execution_id, number, run.manifest or "-")
        self._notes.note("start", *told)
        try:
            yield
        finally:
            self._notes.note("end", *told)

    def tick(self, run: Run) -> None:
        """One occurrence of a schedule."""
        with self._noted(run, f"{run.manifest}@{run.scheduled_for}"):
            return

    async def nap(self, work: Work, run: Run) -> None:
        """Takes its time; hears when it is asked to stop."""
        with self._noted(run, work.number):
            await asyncio.sleep(work.seconds)

    def plod(self, work: Work, run: Run) -> None:
        """Takes its time in a thread, and hears nothing."""
        with self._noted(run, work.number):
            time.sleep(work.seconds)

    def flaky(self, run: Run) -> None:
        """Fails first, then succeeds."""
        with self._noted(run, run.manifest):
            if not (failed := self._folder / f"{run.manifest}.failed").exists():
                failed.touch()
                raise RuntimeError("not yet")

    def hopeless(self, run: Run) -> None:
        """Fails always."""
        with self._noted(run, run.manifest):
            raise RuntimeError("never")

    def poison(self, run: Run) -> None:
        """Takes its worker along."""
        with self._noted(run, run.manifest):
            os.kill(os.getpid(), signal.SIGKILL)

    def link(self, run: Run) -> None:
        """One link of a chain."""
        with self._noted(run, run.manifest):
            return

    def wake_sleepers(self, run: Run) -> None:
        """Activates a dormant dependent with its own number."""
        with self._noted(run, run.manifest):
            self._activate(run, [f"sleeper-{run.execution_id % 4}"])

    def call_in_turn(self, siren: Siren, run: Run) -> None:
        """Activates its dormant dependents beside a restart, one after the other."""
        with self._noted(run, siren.number):
            self._wait_for_signal(siren, run)
            for place, name in enumerate(woken_by(run.manifest)):
                self._activate(run, [name], place)

    async def call_together(self, siren: Siren, run: Run) -> None:
        """Activates its dormant dependents beside a restart, all at once."""
        with self._noted(run, siren.number):
            await asyncio.to_thread(self._wait_for_signal, siren, run)
            await asyncio.to_thread(self._activate, run, woken_by(run.manifest))

    def _wait_for_signal(self, siren: Siren, run: Run) -> None:
        ready_file(self._folder, siren.number).touch()
        signal_file = signal_of(self._folder, siren.restart, siren.moment)
        while not signal_file.exists():
            run.raise_if_cancelled()
            time.sleep(LOOK_AT_SIGNAL)

    def _activate(self, run: Run, names: Sequence[str], first: int = 0) -> None:
        """Activate dependents, each with a number that no other activation has."""
        numbers = {name: -run.execution_id * CALLS - first - n for n, name in enumerate(names)}
        pairs = [(name, Work(number=number)) for name, number in numbers.items()]
        for name, number in numbers.items():
            self._notes.note("asks", number, name, run.execution_id)
        taken = run.activate(*pairs[0]) if len(pairs) == 1 else run.activate_many(pairs)
        for name, number in numbers.items() if taken == len(pairs) else ():
            self._notes.note("activated", number, name)


def woken_by(siren: str | None) -> list[str]:
    """Return the dormant dependents of the manifest *siren*.

    >>> woken_by("siren-1")[0]
    'woken-by-siren-1-0'
    """
    return [f"woken-by-{siren}-{place}" for place in range(CALLS)]


def build(url: str, folder: Path, plan: Plan) -> Headway:
    """The application, the same in every process."""
    hw = Headway(
        "torture",
        database_url=url,
        server_lease=timedelta(seconds=plan.lease),
        max_active_jobs=GLOBAL_CAP,
        max_crashes=plan.max_crashes,
        worker_count=plan.slots,
        manager_polling_interval=timedelta(seconds=1),
        dispatcher_polling_interval=timedelta(seconds=1),
        shutdown_timeout=timedelta(seconds=2),
        max_work_queue_entries_per_cycle=None,
    )
    _register(hw, Bodies(folder))
    _declare(hw, plan)
    return hw


def _register(hw: Headway, bodies: Bodies) -> None:
    work = ("tick", "nap", "plod", "flaky", "hopeless", "poison", "link")
    for name in (*work, "wake_sleepers", "call_in_turn", "call_together"):
        hw.workflow(name)(getattr(bodies, name))


def _declare(hw: Headway, plan: Plan) -> None:
    groups = [Group(f"cap-{cap}", max_active_jobs=cap) for cap in CAPS for _ in range(cap)]
    loose = Group("loose", max_active_jobs=GLOBAL_CAP)
    often: Callable[..., object] = partial(
        hw.schedule, schedule=every(seconds=plan.tick_seconds, fixed_rate=True), misfire="catch_up"
    )
    for number in range(plan.tickers):
        often("tick", f"tick-{number}", group=groups[number % len(groups)], catch_up_limit=10_000)
    for number in range(plan.capped):
        group = groups[number % len(groups)]
        hw.schedule("nap", f"capped-{number}", Work(number=0), group=group)
    for number in range(plan.flaky):
        hw.schedule("flaky", f"flaky-{number}", every(hours=1), group=loose, retry=RETRY)
    for number in range(plan.hopeless):
        hw.schedule(
            "hopeless",
            f"hopeless-{number}",
            every(hours=1),
            group=loose,
            retry=RETRY,
            max_retries=2,
        )
    for number in range(plan.poisonous):
        hw.schedule("poison", f"poison-{number}", group=loose)
    for number in range(plan.chains):
        chain = hw.schedule("link", f"chain-{number}-a", every(seconds=5), group=loose)
        chain.then_include("link", f"chain-{number}-b", group=loose).then_include(
            "link", f"chain-{number}-c", group=loose
        )
    alarm = hw.schedule("wake_sleepers", "alarm", every(seconds=3), group=loose)
    _declare_dormant(alarm, [f"sleeper-{number}" for number in range(4)], loose)
    for number in range(len(SIRENS)):
        name = f"siren-{number}"
        calls = "call_together" if number % 2 else "call_in_turn"
        siren = hw.schedule(calls, name, Siren(), group=loose, priority=HIGHEST_PRIORITY)
        _declare_dormant(siren, woken_by(name), loose)


def _declare_dormant(parent: Chain, names: Sequence[str], group: Group) -> None:
    for name in names:
        parent.include("nap", name, Work(number=0), group=group, dormant=True, when_busy="keep")
