"""Chaos without processes: the real actors and the real store, one step at a time.

On SQLite in a temporary folder, with a virtual clock; which actor does what next is drawn from a
seed. Workers crash, freeze and come back as zombies between any two transactions. A seed plays
the same story every time.
"""

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random

from headway.applying import apply_declarations
from headway.definition.app import Headway
from headway.definition.runtime import Runtime
from headway.dispatcher.cycle import JobDispatcher
from headway.domain.execution import ExecutionState, Failure, Outcome
from headway.domain.manifest import Group
from headway.domain.schedule import every
from headway.domain.virtual_clock import VirtualClock
from headway.history import History
from headway.manager.cycle import ManifestManager
from headway.servers.local import LocalServer
from headway.store import executions, leases, outcomes
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.servers import ServerProcess

START = datetime(2030, 1, 7, 12, tzinfo=UTC)
LEASE = timedelta(seconds=6)
CAPS = {"one": 1, "two": 2, "five": 5}
GLOBAL_CAP = 6
WORKERS, SLOTS = 3, 3
TICK = 5
COMPLETED = ExecutionState.COMPLETED
CALM_ROUNDS = 8  # of two seconds: more than two leases
LIVE = (ExecutionState.PENDING, ExecutionState.IN_PROGRESS)


@dataclass
class SimulatedWorker:
    """A process that is not one: its id, what it thinks it runs, and until when it is frozen."""

    name: str
    owner: str = ""
    running: dict[int, str] = field(default_factory=dict)
    frozen: bool = False
    lives: int = 0


class Simulation:
    """One story.

    >>> Simulation(seed=1, folder=Path("/tmp/x")).play(100)  # doctest: +SKIP
    []
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self._chance = Random(seed)
        self._clock = VirtualClock(START)
        url = f"sqlite:///{folder}/{seed}.db"
        self._store = Store(url, clock=self._clock, durable=False)
        migrate(self._store)
        self._app = _application(url)
        apply_declarations(self._app, self._store)
        settings, observer = self._app.settings, self._app.observer
        self._history = History(self._store)
        self._runtime = Runtime("simulation", self._app.registry, self._store)
        self._manager = ManifestManager(self._store, settings, observer)
        server = LocalServer(lambda: None)
        self._dispatcher = JobDispatcher(self._store, settings, observer, server)
        self._workers = [SimulatedWorker(f"worker-{number}") for number in range(WORKERS)]
        self._entries: list[int] = []
        self._breaches: list[str] = []
        self.refused = 0

    def play(self, steps: int) -> list[str]:
        """Take so many steps, let everything end, and return what did not hold."""
        for worker in self._workers:
            self._register(worker)
        actions: list[tuple[Callable[[], None], int]] = [
            (self._pass_time, 12),
            (self._manage, 4),
            (self._dispatch, 5),
            (lambda: self._claim(self._anybody()), 6),
            (lambda: self._finish(self._anybody()), 8),
            (lambda: self._sweep(self._anybody()), 3),
            (self._ask, 3),
            (self._cancel, 1),
            (lambda: self._crash(self._anybody()), 1),
            (lambda: self._freeze(self._anybody()), 2),
        ]
        kinds, weights = zip(*actions, strict=True)
        for act in self._chance.choices(kinds, weights, k=steps):
            act()
            self._look()
        self._calm_down()
        self._judge()
        self._store.close()
        return self._breaches

    def _anybody(self) -> SimulatedWorker:
        return self._chance.choice(self._workers)

    def _pass_time(self) -> None:
        """A little, and everybody who is not frozen says that it lives."""
        self._advance(self._chance.choice((0.5, 1, 2)))
        for worker in self._workers:
            self._beat(worker)

    def _advance(self, seconds: float) -> None:
        self._clock.move_to(self._clock.now + timedelta(seconds=seconds))

    def _manage(self) -> None:
        self._manager.run_once()

    def _dispatch(self) -> None:
        self._dispatcher.run_once()

    def _ask(self) -> None:
        if self._chance.random() < 0.5:
            self._runtime.trigger(f"by-hand-{self._chance.randrange(3)}")
        else:
            self._entries.append(self._runtime.enqueue("work"))

    def _cancel(self) -> None:
        self._runtime.cancelling.cancel(
            f"by-hand-{self._chance.randrange(3)}", None, None, None, None
        )

    def _register(self, worker: SimulatedWorker) -> None:
        worker.lives += 1
        worker.owner = f"{worker.name}-{worker.lives}"
        process = ServerProcess(worker.owner, "here", 1, ["worker"], ["work"], SLOTS)
        with self._store.writing() as tx:
            leases.register(tx, process, LEASE)

    def _beat(self, worker: SimulatedWorker) -> None:
        """Who finds itself dead goes on under a new id; what it ran goes on as a zombie."""
        if worker.frozen:
            worker.frozen = self._chance.random() < 0.92
            return
        with self._store.writing() as tx:
            alive = leases.renew(tx, worker.owner, LEASE)
        if not alive:
            self._register(worker)

    def _claim(self, worker: SimulatedWorker) -> None:
        free = SLOTS - len(worker.running)
        if worker.frozen or free < 1:
            return
        with self._store.writing() as tx:
            if leases.hold(tx, worker.owner):
                for one in executions.claim_pending(tx, worker.owner, free, ["work"]):
                    worker.running[one.id] = worker.owner

    def _finish(self, worker: SimulatedWorker, *, well: bool = False) -> None:
        """Of whatever it thinks it runs; also what was taken from it long ago."""
        if worker.frozen or not worker.running:
            return
        key = self._chance.choice(sorted(worker.running))
        owner = worker.running.pop(key)
        drawn = 1.0 if well else self._chance.random()
        outcome = Outcome(COMPLETED)
        if drawn < 0.1:
            outcome = Outcome(ExecutionState.FAILED, Failure("work", "ValueError", "no"))
        elif drawn < 0.15:
            outcome = Outcome(ExecutionState.HANDED_BACK)
        with self._store.writing() as tx:
            if not outcomes.finish(tx, owner, {key: outcome}):
                self.refused += 1

    def _crash(self, worker: SimulatedWorker) -> None:
        worker.running.clear()
        worker.frozen = False
        self._register(worker)

    def _freeze(self, worker: SimulatedWorker) -> None:
        worker.frozen = True

    def _sweep(self, worker: SimulatedWorker) -> None:
        if worker.frozen:
            return
        with self._store.writing() as tx:
            leases.bury(tx, worker.owner, LEASE)
        with self._store.writing() as tx:
            outcomes.end_orphans(tx, self._app.settings.max_crashes)

    def _look(self) -> None:
        """What must hold after every single step."""
        live = self._history.executions.all(states=LIVE)
        if len(live) > GLOBAL_CAP:
            self._breaches.append(f"{len(live)} at once")
        for group, count in Counter(one.group_name for one in live if one.group_name).items():
            if count > CAPS[group]:
                self._breaches.append(f"{count} of {group} at once")
        for name, count in Counter(one.external_id for one in live if one.external_id).items():
            if count > 1:
                self._breaches.append(f"{count} runs of {name} at once")

    def _calm_down(self) -> None:
        for worker in self._workers:
            worker.frozen = False
        for _ in range(CALM_ROUNDS):
            self._advance(2)
            for worker in self._workers:
                self._beat(worker)
            self._sweep(self._workers[0])
            self._work_off()
            while self._manager.run_once().queued or self._dispatcher.run_once().dispatched:
                self._dispatch()
                self._work_off()
                self._look()

    def _work_off(self) -> None:
        for worker in self._workers:
            self._claim(worker)
            while worker.running:
                self._finish(worker, well=True)

    def _judge(self) -> None:
        """What must hold in the end: everything is over, and was done once."""
        ended = self._history.executions.all(states=[COMPLETED])
        per_entry = Counter(one.entry_id for one in ended)
        self._breaches += [
            f"entry {key} completed {n} times" for key, n in per_entry.items() if n > 1
        ]
        over = {one.entry_id for one in self._history.executions.all() if one.state.terminal}
        self._breaches += [f"entry {key} is lost" for key in self._entries if key not in over]
        ticks: dict[str, list[datetime]] = defaultdict(list)
        for one in ended:
            if one.external_id and one.external_id.startswith("tick") and one.scheduled_for:
                ticks[one.external_id].append(one.scheduled_for)
        for name, moments in ticks.items():
            for earlier, later in pairwise(sorted(moments)):
                if later - earlier != timedelta(seconds=TICK):
                    self._breaches.append(f"{name}: {later} follows {earlier}")
            if max(moments) < self._clock.now - timedelta(seconds=2 * TICK):
                self._breaches.append(f"{name}: nothing after {max(moments)}")
        if len(ticks) < 3:
            self._breaches.append(f"only {len(ticks)} of 3 tickers ran")


def _application(url: str) -> Headway:
    hw = Headway(
        "simulation",
        database_url=url,
        max_active_jobs=GLOBAL_CAP,
        max_crashes=1000,
        default_max_retries=1000,
        default_retry_delay=timedelta(0),
    )
    hw.workflow("work")(lambda: None)
    groups = [Group(name, max_active_jobs=cap) for name, cap in CAPS.items()]
    for number, group in enumerate(groups):
        hw.schedule(
            "work",
            f"tick-{number}",
            every(seconds=TICK, fixed_rate=True),
            group=group,
            misfire="catch_up",
            catch_up_limit=10_000,
        )
        hw.schedule("work", f"by-hand-{number}", group=group)
    return hw


def simulate(seed: int, steps: int = 100) -> tuple[list[str], int]:
    """Play one story in a folder of its own: what did not hold, and how many late writes were
    refused."""
    with tempfile.TemporaryDirectory(prefix="headway-simulation-") as folder:
        story = Simulation(seed, Path(folder))
        return story.play(steps), story.refused
