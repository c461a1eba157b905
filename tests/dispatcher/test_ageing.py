"""Nobody starves: the model of many cycles over the pure functions, and the real thing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from headway import Group, every
from headway.dispatcher.ageing import aged_first, free_slots
from headway.dispatcher.capacity import Verdict, admit
from headway.domain.execution import Execution, ExecutionState, Outcome
from headway.domain.work_queue import Source, WorkQueueEntry, age, dispatch_order
from headway.store import executions, outcomes
from headway.store.executions import Active
from headway.store.tables import manifest_group
from tests.builders import OWNER, START, Scene

BOUND = timedelta(minutes=10)
CYCLE = timedelta(seconds=30)
CYCLES = 1000
HOT, FULL = 1, 2


@dataclass
class Model:
    """A dispatcher on paper: runs last one cycle, group HOT always has more than there are slots.

    FULL never has room.
    """

    slots: int
    ageing: bool = True
    caps: dict[int, int] = field(default_factory=dict)
    priorities: dict[int, int] = field(default_factory=dict)
    number: int = 0
    cycle: int = 0
    queue: list[WorkQueueEntry] = field(default_factory=list)
    started: list[tuple[int, int]] = field(default_factory=list)
    shut_at: dict[int, datetime] = field(default_factory=dict)

    @property
    def now(self) -> datetime:
        return START + self.cycle * CYCLE

    def arrive(self, group: int, priority: int = 0, number: int | None = None) -> int:
        self.number += 1
        key = number or self.number
        self.queue.append(
            WorkQueueEntry(
                id=key,
                workflow="work",
                source=Source.TRIGGER,
                priority=priority,
                created_at=self.now,
                manifest_id=key,
                group_id=group,
                external_id=None,
                group_name=str(group),
                group_priority=self.priorities.get(group, 0),
                group_max_active_jobs=self.caps.get(group),
            )
        )
        return key

    def waiting(self) -> list[WorkQueueEntry]:
        since = [
            replace(
                one, eligible_since=max(one.created_at, self.shut_at.get(one.group_id or 0, START))
            )
            for one in self.queue
        ]
        return sorted(since, key=dispatch_order)

    def starves(self, one: WorkQueueEntry) -> bool:
        return one.eligible_since is not None and one.eligible_since <= self.now - BOUND

    def step(self) -> None:
        """One cycle, and what has to be true of every single one."""
        active = Active(0, {FULL: 1})
        entries = self.waiting()
        slots = free_slots(len(entries), active, self.slots)
        before = self.now - BOUND if self.ageing else None
        ordered = aged_first(entries, active, slots, before)
        admissions = admit(ordered, active, self.slots)
        gone = [one.entry for one in admissions if one.verdict is Verdict.DISPATCH]
        if self.ageing:
            self.check(entries, ordered, gone)
        taken = {one.id for one in gone}
        self.queue = [one for one in self.queue if one.id not in taken]
        self.started += [(self.cycle, one.id) for one in gone]
        for group, cap in self.caps.items():
            if group == FULL or sum(one.group_id == group for one in gone) >= cap:
                self.shut_at[group] = self.now
        self.cycle += 1

    def check(
        self,
        entries: list[WorkQueueEntry],
        ordered: list[WorkQueueEntry],
        gone: list[WorkQueueEntry],
    ) -> None:
        taken = {one.id for one in gone}
        open_ones = [one for one in entries if one.group_id != FULL]
        starving = sorted(filter(self.starves, open_ones), key=age)
        left = [one for one in starving if one.id not in taken]
        full = {group for group, cap in self.caps.items() if self.count(gone, group) >= cap}
        # Whoever starves and is not taken has seen an older one go in this very cycle.
        for one in left:
            older = [other for other in starving if age(other) < age(one) and other.id in taken]
            assert older or one.group_id in full, f"{one} starves in cycle {self.cycle}"
        young = [one for one in ordered if not self.starves(one)]
        assert young == sorted(young, key=dispatch_order)
        moved = [one for one, before in zip(ordered, entries, strict=True) if one != before]
        assert starving or not moved
        ahead = [one for one in ordered[: len(starving)] if self.starves(one)]
        without = {one.id for one in entries[: self.slots]}
        pushed = [one for one in ahead if one.id in taken and one.id not in without]
        assert len(pushed) <= max(1, self.slots // 10)

    def count(self, gone: list[WorkQueueEntry], group: int) -> int:
        return sum(one.group_id == group for one in gone)


ARRIVAL = st.tuples(st.integers(0, CYCLES - 100), st.integers(4, 7), st.integers(0, 31))


def play(
    slots: int,
    arrivals: list[tuple[int, int, int]],
    caps: dict[int, int],
    *,
    ageing: bool = True,
    troubled: bool = True,
) -> tuple[Model, dict[int, int]]:
    """A thousand cycles; returns the model and in which cycle each of *arrivals* came."""
    model = Model(slots, ageing, {**caps, FULL: 1}, {HOT: 31, FULL: 31})
    came: dict[int, int] = {}
    by_cycle: dict[int, list[tuple[int, int, int]]] = {}
    for place, (when, group, priority) in enumerate(arrivals):
        by_cycle.setdefault(when, []).append((-1 - place, group, priority))
    for cycle in range(CYCLES):
        while sum(one.group_id == HOT for one in model.queue) < slots + 2:
            model.arrive(HOT, 31)
        if troubled and cycle % 7 == 0:
            model.arrive(FULL, 31, 10**6 + cycle)
        for key, group, priority in by_cycle.get(cycle, []):
            came[model.arrive(group, priority, key)] = cycle
        model.step()
    return model, came


@settings(max_examples=8, deadline=None)
@given(
    st.integers(1, 30),
    st.lists(ARRIVAL, min_size=1, max_size=30),
    st.dictionaries(st.integers(4, 7), st.integers(1, 3)),
)
def test_everybody_goes_within_the_bound_and_one_cycle_for_each_older_one(
    slots: int, arrivals: list[tuple[int, int, int]], caps: dict[int, int]
) -> None:
    model, came = play(slots, arrivals, caps)

    went = {key: cycle for cycle, key in model.started}
    bound = BOUND // CYCLE
    for key, cycle in came.items():
        if arrivals[-1 - key][1] not in caps and cycle + bound + len(came) < CYCLES:
            # The hot ones age as well, but are younger than whoever waits before them.
            assert went[key] - cycle <= bound + len(came), f"{key} waited too long"


def test_without_ageing_the_last_ones_never_go() -> None:
    arrivals = [(5, 4, 0)]

    model, came = play(3, arrivals, {}, ageing=False)
    with_ageing, _ = play(3, arrivals, {})

    [key] = came
    assert key not in {one for _, one in model.started}
    assert {one: cycle for cycle, one in with_ageing.started}[key] == 5 + BOUND // CYCLE


@settings(max_examples=5, deadline=None)
@given(st.integers(1, 12), st.lists(ARRIVAL, min_size=1, max_size=10))
def test_a_full_group_delays_nobody(slots: int, arrivals: list[tuple[int, int, int]]) -> None:
    with_trouble, _ = play(slots, arrivals, {})
    without, _ = play(slots, arrivals, {}, troubled=False)

    assert [one for one in with_trouble.started if one[1] < 0] == [
        one for one in without.started if one[1] < 0
    ]
    assert not [one for one in with_trouble.started if one[1] >= 10**6]


class Crowd:
    """A hot group that always has more to do than there are slots, on a real store."""

    def __init__(self, scene: Scene, **options: object) -> None:
        self.scene = scene
        scene.configure(max_active_jobs=2, **options)
        hot, low = Group("hot", priority=31), Group("low", max_active_jobs=1)
        for number in range(4):
            scene.app.schedule("work", f"hot-{number}", None, every(days=9), group=hot)
        for name in ("low", "blocker"):
            scene.app.schedule("work", name, None, every(days=9), group=low)
        scene.apply()

    def minutes_until(self, external_id: str, most: int = 40) -> int | None:
        """How many cycles of a minute it takes until this manifest has run."""
        for minute in range(most):
            waiting = {one.external_id for one in self.scene.history.queued()}
            for number in range(4):
                if f"hot-{number}" not in waiting:
                    self.scene.trigger(f"hot-{number}", priority=31)
            self.scene.dispatch()
            self.finish({"blocker"})
            if external_id in {one.external_id for one in self.completed()}:
                return minute
            self.scene.clock.advance(minutes=1)
        return None

    def completed(self) -> list[Execution]:
        return list(self.scene.ended(ExecutionState.COMPLETED))

    def finish(self, but: set[str]) -> None:
        """Let all that runs end well, except these."""
        self.scene.claim()
        live = self.scene.history.executions(states=[ExecutionState.IN_PROGRESS])
        done = [one.id for one in live if one.external_id not in but]
        with self.scene.store.writing() as tx:
            outcomes.finish(tx, OWNER, dict.fromkeys(done, Outcome(ExecutionState.COMPLETED)))


def test_on_a_real_store_a_low_entry_goes_after_the_bound(scene: Scene) -> None:
    crowd = Crowd(scene)
    scene.trigger("low")

    assert crowd.minutes_until("low") == 10


def test_on_a_real_store_nothing_goes_ahead_before_the_bound(scene: Scene) -> None:
    crowd = Crowd(scene, starvation_after=timedelta(days=1))
    scene.trigger("low")

    assert crowd.minutes_until("low") is None


def test_an_entry_queued_for_later_ages_from_that_time(scene: Scene) -> None:
    crowd = Crowd(scene)
    scene.trigger("low", scheduled_at=START + timedelta(minutes=15))

    assert crowd.minutes_until("low") == 25


def test_waiting_for_room_in_the_own_group_is_not_starving(scene: Scene) -> None:
    crowd = Crowd(scene)
    blocker = scene.trigger("blocker")
    scene.dispatch()
    scene.trigger("low")

    assert crowd.minutes_until("low", most=20) is None, "its group is full"
    with scene.store.reading() as tx:
        chosen = select(manifest_group.c.last_shut_at).where(manifest_group.c.name == "low")
        noted = tx.connection.execute(chosen).scalar_one()
        assert noted is not None and scene.clock.now - noted <= BOUND / 10 + timedelta(minutes=1)
        assert executions.count_active(tx, ()).total >= 1
    crowd.finish(set())

    assert [one.entry_id for one in scene.history.executions() if one.external_id == "blocker"] == [
        blocker
    ]
    minutes = crowd.minutes_until("low")
    assert minutes is not None and 8 <= minutes <= 10


@pytest.mark.parametrize("enabled", [True, False])
def test_a_disabled_group_does_not_age_either(scene: Scene, enabled: bool) -> None:
    crowd = Crowd(scene)
    scene.trigger("low")
    with scene.store.writing() as tx:
        tx.connection.execute(
            manifest_group.update().where(manifest_group.c.name == "low").values(enabled=enabled)
        )
    waited = crowd.minutes_until("low", most=15)
    assert waited == (10 if enabled else None)
