"""The chaos run: load and faults for a while, then calm, then judgement."""

import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

from headway.applying import apply_declarations
from headway.definition.app import Headway
from headway.doctor.examination import Doctor
from headway.doctor.findings import Severity
from headway.domain.execution import ExecutionState
from headway.errors import HeadwayError
from headway.history import History
from headway.store import sessions
from headway.store.engine import TRANSIENT, Store
from headway.store.migrate import migrate
from headway.torture import evidence, facts, mutations
from headway.torture.application import build
from headway.torture.clients import Client
from headway.torture.crew import Crew, Deployment, lineup, preload
from headway.torture.evidence import Notebook
from headway.torture.facts import Facts, Sample
from headway.torture.invariants import SHOWN
from headway.torture.nemesis import Nemesis
from headway.torture.operator import Operator
from headway.torture.plan import Plan
from headway.torture.postgres import PostgresServer, private_server

PENDING, IN_PROGRESS = ExecutionState.PENDING, ExecutionState.IN_PROGRESS
CALM = 90.0
SAMPLE_PAUSE = 0.1

Say = Callable[[str], None]


def torture(
    plan: Plan,
    say: Say,
    url: str | None = None,
    mutation: str | None = None,
    keep: Path | None = None,
) -> Facts:
    """Torture a deployment on a server of our own, or on the one at *url*, and gather the facts."""
    with _folder(keep) as folder:
        if url is not None:
            return _torture(plan, say, Deployment(url, folder, plan, mutation), None)
        with private_server(durable=True) as server:
            deployment = Deployment(server.url(), folder, plan, mutation)
            return _torture(plan, say, deployment, server)


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True)
        yield keep
        return
    folder = Path(tempfile.mkdtemp(prefix="headway-torture-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _torture(plan: Plan, say: Say, deployment: Deployment, server: PostgresServer | None) -> Facts:
    preload()
    hw = build(deployment.url, deployment.folder, plan)
    store = hw.open_store()
    migrate(store)
    apply_declarations(hw, store)
    mutations.damage(store, deployment.mutation)
    before = _connections(store)
    notes = Notebook(deployment.folder)
    crew = Crew(deployment, notes)
    try:
        for roles in lineup(plan):
            crew.start(roles)
        samples, cutoff = _under_load(plan, say, hw, store, crew, server, notes)
        left = _explained(_calm(plan, say, store, crew, cutoff), hw, store)
        say("examining")
        crew.weigh()
        ailments = _ailments(store, hw)
    finally:
        crew.disband()
    say("judging")
    gathered = _gathered(plan, deployment, store, samples, cutoff, left, before)
    return replace(gathered, ailments=ailments)


def _under_load(
    plan: Plan,
    say: Say,
    hw: Headway,
    store: Store,
    crew: Crew,
    server: PostgresServer | None,
    notes: Notebook,
) -> tuple[list[Sample], float]:
    client, sampler = Client(hw, plan, notes), Sampler(store)
    operator = Operator(hw, Random(f"{plan.seed}:operator"))
    nemesis = Nemesis(crew, store, server, Random(f"{plan.seed}:nemesis"), notes, operator)
    client.start()
    sampler.start()
    began, told = time.monotonic(), 0.0
    faults = plan.faults(own_server=server is not None)
    while (now := time.monotonic() - began) < plan.seconds:
        while faults and faults[0][0] <= now:
            nemesis.strike(faults.pop(0)[1])
        nemesis.tend()
        if now - told >= 10:
            told = now
            say(f"{now:4.0f} s  {nemesis.count} faults  {sampler.words()}")
        time.sleep(0.02)
    nemesis.relent()
    client.join()
    cutoff = time.time()
    sampler.stop()
    return sampler.samples, cutoff


def _calm(plan: Plan, say: Say, store: Store, crew: Crew, cutoff: float) -> list[str]:
    """Wait until everything asked for is over; returns what is not when patience ends."""
    history, began = History(store), time.monotonic()
    left, said = ["nobody has looked"], ""
    while (left or crew.starting()) and time.monotonic() - began < CALM:
        crew.replace_dead()
        crew.reap()
        time.sleep(0.5)
        try:
            left = facts.unfinished(history, plan, cutoff)
        except TRANSIENT:
            continue
        if (told := f"calm: {len(left)} left") != said:
            say(said := told)
    return left


def _explained(left: list[str], hw: Headway, store: Store) -> list[str]:
    """What is *left*, and why whatever is queued is not dispatched."""
    queued = History(store).queue.all() if left else []
    return left + [f"why: {_why(hw, one.id)}" for one in queued]


def _why(hw: Headway, entry: int) -> str:
    """The first answer may fail by a session that a fault has ended while it was idle."""
    try:
        return str(hw.why(entry=entry))
    except (*TRANSIENT, HeadwayError) as error:
        return f"not known: {error}"


def _gathered(
    plan: Plan,
    deployment: Deployment,
    store: Store,
    samples: list[Sample],
    cutoff: float,
    left: list[str],
    before: int,
) -> Facts:
    history = History(store)
    log = deployment.folder / "log"
    gathered = Facts(
        plan=plan,
        lines=tuple(evidence.read(deployment.folder)),
        executions=tuple(history.executions.all()),
        dead_letters=tuple(history.dead_letters.awaiting()),
        samples=tuple(samples),
        cutoff=cutoff,
        log=log.read_text() if log.exists() else "",
        connections=(before, _connections(store)),
        unfinished=tuple(left),
    )
    store.close()
    return gathered


def _ailments(store: Store, hw: Headway) -> tuple[str, ...]:
    """What the doctor finds while everybody is still there."""
    found = Doctor(store, hw.settings).examine().findings
    return tuple(
        f"{one.sentence} {'; '.join(one.rows[:SHOWN])}"
        for one in found
        if one.severity is Severity.ERROR
    )


def _connections(store: Store) -> int:
    with store.reading() as tx:
        return sessions.count_others(tx)


class Sampler:
    """Looks ten times a second how much holds a slot."""

    def __init__(self, store: Store) -> None:
        self.samples: list[Sample] = []
        self._history = History(store)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()
        self._thread.join()

    def words(self) -> str:
        """The last look, for people."""
        return f"{self.samples[-1].total} active" if self.samples else "nothing seen yet"

    def _work(self) -> None:
        while not self._stopped.wait(SAMPLE_PAUSE):
            try:
                self._look()
            except TRANSIENT:
                continue

    def _look(self) -> None:
        live = self._history.executions.all(states=(PENDING, IN_PROGRESS))
        by_group = Counter(one.group_name for one in live if one.group_name is not None)
        self.samples.append(Sample(time.time(), len(live), dict(by_group)))
