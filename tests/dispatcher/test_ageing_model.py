"""Nobody starves: the model of a thousand cycles over the dispatcher's own decisions."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.config import Settings
from headway.definition.registry import Registry
from headway.definition.task_servers import TaskServers
from headway.dispatcher.steps import apply_capacity_limits
from headway.dispatcher.workflow import DispatchEnv, DispatchState
from headway.domain.admission import Active, Verdict
from headway.domain.work_queue import Source, WorkQueueEntry, age, dispatch_order
from tests.builders import START

BOUND = timedelta(minutes=10)
CYCLE = timedelta(seconds=30)
CYCLES = 1000
NEVER = timedelta(days=1)
HOT, FULL, FAILING = 1, 2, 3
TROUBLED = 10**6


@dataclass
class Model:
    """A dispatcher on paper: runs last one cycle, group HOT always has more than there are slots.

    FULL never has room, and nothing of FAILING can ever be dispatched.
    """

    slots: int
    ageing: bool = True
    caps: dict[int, int] = field(default_factory=dict)
    priorities: dict[int, int] = field(default_factory=dict)
    number: int = 0
    cycle: int = 0
    queue: list[WorkQueueEntry] = field(default_factory=list)
    started: list[tuple[int, int]] = field(default_factory=list)
    failed: list[tuple[int, int]] = field(default_factory=list)
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
                eligible_since=self.now,
                missing="manifest" if group == FAILING else None,
            )
        )
        return key

    def waiting(self) -> list[WorkQueueEntry]:
        return sorted(map(self.since_it_was_shut, self.queue), key=dispatch_order)

    def since_it_was_shut(self, one: WorkQueueEntry) -> WorkQueueEntry:
        shut = self.shut_at.get(one.group_id or 0, START)
        return one if shut <= one.created_at else one._replace(eligible_since=shut)

    def starves(self, one: WorkQueueEntry) -> bool:
        return one.eligible_since is not None and one.eligible_since <= self.now - BOUND

    def env(self) -> DispatchEnv:
        """What the step asks for: the time, and the limits."""
        tx = cast(Any, SimpleNamespace(now=self.now))
        return DispatchEnv(tx, self.limits, None, TaskServers(Registry()))

    @cached_property
    def limits(self) -> Settings:
        after = BOUND if self.ageing else NEVER
        return Settings(max_active_jobs=self.slots, starvation_after=after)

    def step(self) -> None:
        """One cycle, and what has to be true of every single one."""
        entries = self.waiting()
        state = DispatchState(tuple(entries), active=Active(0, {FULL: 1}))
        admissions = apply_capacity_limits(state, self.env()).admissions
        unfit = [one.entry for one in admissions if one.verdict is Verdict.FAIL]
        gone = [one.entry for one in admissions if one.verdict is Verdict.DISPATCH]
        if self.ageing:
            sound = [one for one in entries if one.group_id != FAILING]
            ordered = [one.entry for one in admissions if one.verdict is not Verdict.FAIL]
            self.check(sound, ordered, gone)
        self.failed += [(self.cycle, one.id) for one in unfit]
        taken = {one.id for one in gone + unfit}
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
    trouble: tuple[int, ...] = (FULL, FAILING),
) -> tuple[Model, dict[int, int]]:
    """A thousand cycles; returns the model and in which cycle each of *arrivals* came."""
    priorities = {HOT: 31, FULL: 31, FAILING: 31}
    model = Model(slots, ageing, {**caps, FULL: 1}, priorities)
    came: dict[int, int] = {}
    by_cycle: dict[int, list[tuple[int, int, int]]] = {}
    for place, (when, group, priority) in enumerate(arrivals):
        by_cycle.setdefault(when, []).append((-1 - place, group, priority))
    for cycle in range(CYCLES):
        for _ in range(slots + 2 - model.count(model.queue, HOT)):
            model.arrive(HOT, 31)
        for number in range(slots + 2 if FULL in trouble and cycle == 0 else 0):
            model.arrive(FULL, 31, TROUBLED + number)
        for number in range(slots + 1 if FAILING in trouble else 0):
            model.arrive(FAILING, 31, 2 * TROUBLED + cycle * 100 + number)
        for key, group, priority in by_cycle.get(cycle, []):
            came[model.arrive(group, priority, key)] = cycle
        model.step()
    return model, came


@settings(max_examples=8)
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


@pytest.mark.parametrize("trouble", [(FULL,), (FAILING,)], ids=["full", "failing"])
@settings(max_examples=5)
@given(st.integers(1, 12), st.lists(ARRIVAL, min_size=1, max_size=10))
def test_a_full_or_failing_group_delays_nobody(
    trouble: tuple[int, ...], slots: int, arrivals: list[tuple[int, int, int]]
) -> None:
    troubled, _ = play(slots, arrivals, {}, trouble=trouble)
    without, _ = play(slots, arrivals, {}, trouble=())

    assert [one for one in troubled.started if one[1] < 0] == [
        one for one in without.started if one[1] < 0
    ]
    assert not [one for one in troubled.started if one[1] >= TROUBLED]
    came = [(cycle, (key - 2 * TROUBLED) // 100) for cycle, key in troubled.failed]
    assert len(came) == (CYCLES * (slots + 1) if FAILING in trouble else 0)
    assert all(cycle == arrived for cycle, arrived in came), "each in the cycle in which it came"
