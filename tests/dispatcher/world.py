"""Groups, manifests and entries of all sorts, and what a cycle of the dispatcher makes of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from hypothesis import strategies as st
from sqlalchemy import insert, select, update

from headway import Group, every, exclude
from headway.config import Settings
from headway.definition.registry import Registry
from headway.definition.task_servers import TaskServers
from headway.dispatcher.cycle import JOB_DISPATCHER
from headway.dispatcher.workflow import DispatchEnv, DispatchState
from headway.domain.admission import Admission, Verdict
from headway.domain.work_queue import MAX_INPUT_BYTES, NewEntry, Source
from headway.store import work_queue
from headway.store.glance import Glance
from headway.store.locks import Lock
from headway.store.servers import Workers as Living
from headway.store.servers import living_workers
from headway.store.tables import dead_letter, manifest_group
from headway.store.tables import work_queue as entries
from headway.store.transaction import Transaction
from tests.builders import START, Scene
from tests.dispatcher.test_started_at_once import Workers, alive

GOES, WAITS, FAILS = "dispatched", "queued", "failed"
KNOWN = ("work", "internal")
NOBODY = 10**9
NO_MANIFEST = "of no manifest there is"
HOUR = timedelta(hours=1)
TOO_MUCH = '"' + "x" * MAX_INPUT_BYTES + '"'
BY_TIME = {"source": Source.SCHEDULE}


@contextmanager
def leading(scene: Scene) -> Iterator[Transaction]:
    with scene.store.leading(Lock.DISPATCH) as tx:
        assert tx is not None
        yield tx


@contextmanager
def undone(tx: Transaction) -> Iterator[None]:
    """Whatever is written meanwhile never was."""
    nested = tx.connection.begin_nested()
    try:
        yield
    finally:
        nested.rollback()


class Outcome(NamedTuple):
    """What one cycle admits, in its order, what it makes of that, and what it leaves."""

    admitted: list[int]
    dispatched: list[int]
    failed: list[int]
    left: list[Any]
    next_at: datetime | None


def outcome(
    tx: Transaction, limits: Settings, workers: Living, free: int | None, seen: Glance | None
) -> Outcome:
    """Of a cycle that has *seen* this, or else reads everything itself; then it is undone."""
    env = DispatchEnv(
        tx, limits, workers, TaskServers(Registry()), free_hands=free, careful=True, seen=seen
    )
    with undone(tx):
        state: DispatchState = JOB_DISPATCHER.run_now(DispatchState(), env)
        by_execution = sorted(state.dispatched, key=lambda one: state.dispatched[one])
        admitted = of_verdict(Verdict.DISPATCH, state.admissions)
        return Outcome(admitted, by_execution, sorted(state.failed), left(tx), state.next_at)


def of_verdict(verdict: Verdict, admissions: Collection[Admission]) -> list[int]:
    return [one.entry.id for one in admissions if one.verdict is verdict]


def left(tx: Transaction) -> list[Any]:
    """Every entry there still is: whether it is queued, and for when."""
    said = select(entries.c.id, entries.c.status, entries.c.delayed, entries.c.scheduled_at)
    return list(tx.connection.execute(said.order_by(entries.c.id)).all())


@dataclass(frozen=True)
class World:
    """Groups and manifests of all sorts, some of which have something running already."""

    scene: Scene
    ids: dict[str, tuple[int, int]]

    def entry(self, kind: str, **more: Any) -> NewEntry:
        name, fields = KINDS[kind]
        manifest_id, group_id = self.ids[name] if name else (None, None)
        source = Source.TRIGGER if name else Source.AD_HOC
        of = {"manifest_id": manifest_id, "group_id": group_id}
        usual = {"workflow": "work", "source": source, "input": "null"}
        return NewEntry(**{**usual, **of, **fields, **more})

    def queue(self, *kinds: str, **more: Any) -> list[int]:
        return self.scene.enqueue(*(self.entry(kind, **more) for kind in kinds))

    def foresee(self, workers: Workers) -> Outcome:
        """What a dispatcher does that does not glance."""
        with leading(self.scene) as tx:
            limits = self.scene.app.settings
            return outcome(tx, limits, living_workers(tx), workers.free, None)

    def left(self) -> list[Any]:
        with self.scene.store.reading() as tx:
            return left(tx)


# Of which manifest, if any, and what is special about it.
KINDS: dict[str, tuple[str | None, dict[str, Any]]] = {
    "ad hoc": (None, {}),
    "with too much input": (None, {"input": TOO_MUCH}),
    "that nobody knows": (None, {"workflow": "unheard-of"}),
    "outside the limit": (None, {"workflow": "internal"}),
    "that is not due": (None, {"scheduled_at": START + HOUR}),
    "in an open group": ("open", {}),
    "by time, in an open group": ("open", BY_TIME),
    "in another open group": ("high", {}),
    "in a group with room": ("narrow-1", {}),
    "also in the group with room": ("narrow-2", {}),
    "in a full group": ("full", {}),
    "in a disabled group": ("off", {}),
    "by time, of a disabled manifest": ("disabled", BY_TIME),
    "asked for, of a disabled manifest": ("disabled", {}),
    "by time, of a dead-lettered manifest": ("dead", BY_TIME),
    "asked for, of a dead-lettered manifest": ("dead", {"source": Source.REQUEUE}),
    "of a removed manifest": ("removed", {}),
    "of a manifest that runs": ("running", {}),
    "of one that runs and may overlap": ("overlapping", {}),
    "by time, at rest": ("resting", BY_TIME),
    "asked for, at rest": ("resting", {}),
    NO_MANIFEST: ("open", {"manifest_id": NOBODY}),
    "of no group there is": (None, {"group_id": NOBODY}),
}
FATES = {
    "with too much input": FAILS,
    "that nobody knows": WAITS,
    "that is not due": WAITS,
    "in a full group": WAITS,
    "in a disabled group": WAITS,
    "by time, of a disabled manifest": WAITS,
    "by time, of a dead-lettered manifest": WAITS,
    "of a removed manifest": WAITS,
    "of a manifest that runs": WAITS,
    "by time, at rest": WAITS,
    NO_MANIFEST: FAILS,
    "of no group there is": FAILS,
}


def made_world(scene: Scene) -> World:
    """Me alive with ten slots, and a manifest of each sort that KINDS names."""

    @scene.app.workflow("internal")
    def internal() -> None: ...

    wide, narrow = Group("open"), Group("narrow", max_active_jobs=2)
    declared: dict[str, dict[str, Any]] = {
        "open": {"group": wide},
        "high": {"group": Group("high", priority=7)},
        "narrow-1": {"group": narrow},
        "narrow-2": {"group": narrow},
        "narrow-3": {"group": narrow},
        "full": {"group": Group("full", max_active_jobs=1)},
        "filling": {"group": Group("full", max_active_jobs=1)},
        "off": {"group": Group("off", enabled=False)},
        "disabled": {"group": wide, "enabled": False},
        "dead": {"group": wide},
        "removed": {"group": wide},
        "running": {"group": wide},
        "overlapping": {"group": wide, "allow_overlap": True},
        "resting": {"group": wide, "exclude": [exclude.window("11:00", "13:00")]},
    }
    for name, options in declared.items():
        scene.app.schedule("work", name, None, every(days=9), **options)
    scene.apply()
    made = World(scene, {name: scene.ids_of(name) for name in declared})
    outside = made.queue("outside the limit")
    run(made, "filling", "running", "overlapping", "narrow-3", also=outside)
    dead_lettered(made, "dead")
    scene.remove("removed")
    alive(scene, slots=10, workflows=KNOWN)
    return made


def run(world: World, *names: str, also: Sequence[int] = ()) -> None:
    """Have one run of each of these manifests in progress, and *also* those of these entries."""
    asked = [world.scene.trigger(name) for name in names]
    with world.scene.store.writing() as tx:
        work_queue.dispatch(tx, [*asked, *also])
    world.scene.claim()


def dead_lettered(world: World, name: str) -> None:
    with world.scene.store.writing() as tx:
        letter = {"dead_lettered_at": tx.now, "reason": "too often", "failures": 3}
        manifest_id, _ = world.ids[name]
        tx.connection.execute(insert(dead_letter).values(manifest_id=manifest_id, **letter))


class Limited(NamedTuple):
    """What binds a cycle."""

    active: int | None
    excluded: tuple[str, ...]
    slots: int
    free: int | None
    cap: int


class Queued(NamedTuple):
    """An entry of some kind, queued so long ago."""

    kind: str
    priority: int
    minutes: int


LIMITED = st.builds(
    Limited,
    active=st.sampled_from([None, 20, 10, 6, 4]),
    excluded=st.sampled_from([(), ("internal",)]),
    slots=st.sampled_from([30, 10, 7, 5]),
    free=st.sampled_from([None, 10, 3, 0]),
    cap=st.integers(1, 3),
)
QUEUED = st.builds(
    Queued,
    kind=st.sampled_from(sorted(KINDS)),
    priority=st.sampled_from([0, 1, 31]),
    minutes=st.sampled_from([0, 1, 30]),
)


def put_in(tx: Transaction, world: World, limited: Limited, mixture: list[Queued]) -> None:
    narrow = manifest_group.c.name == "narrow"
    tx.connection.execute(update(manifest_group).where(narrow).values(max_active_jobs=limited.cap))
    for number, one in enumerate(mixture):
        # Each of another that is missing: of one manifest, the longer way takes one at a time.
        missing = {"manifest_id": NOBODY + number} if one.kind == NO_MANIFEST else {}
        then = replace(tx, now=tx.now - timedelta(minutes=one.minutes))
        work_queue.enqueue(then, [world.entry(one.kind, priority=one.priority, **missing)])
