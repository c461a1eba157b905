"""What is read lane by lane is what ranking the whole queue would give, on both databases."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import insert, select

from headway.domain.manifest import Group
from headway.domain.routing import Share
from headway.domain.work_queue import AUTOMATIC, Source, WorkQueueEntry
from headway.store import delays, work_queue
from headway.store.dead_letters import awaiting
from headway.store.engine import Store
from headway.store.tables import execution, manifest, manifest_group
from headway.store.tables import work_queue as queue_table
from tests.store.factories import (
    NOON,
    Clock,
    a_manifest,
    change_group,
    dead_letter_for,
    declare,
    dispatched,
    queue,
    queue_ad_hoc,
)

FIELDS = {"workflow": "work", "input": "null", "input_type": ""}
WORK = Share(frozenset({"work"}))
MANUAL = [Source.TRIGGER, Source.RERUN, Source.REQUEUE]


def fill(store: Store, chance: random.Random) -> list[Any]:
    """Groups and manifests in every condition, and a queue that refers to all of them."""
    groups = [
        Group(f"group-{n}", chance.choice([None, 1, 3]), chance.randrange(3), chance.random() < 0.8)
        for n in range(8)
    ]
    names = [f"load-{n}" for n in range(40)]
    declared = [
        a_manifest(name, group=chance.choice(groups), enabled=chance.random() < 0.8)
        for name in names
    ]
    declare(store, *declared, groups=groups)
    for name in chance.sample(names, 6):
        dead_letter_for(store, name)
    for name in chance.sample(names, 8):
        dispatched(store, name, source=Source.TRIGGER)
    for _ in range(120):
        name = chance.choice(names)
        fields: dict[str, Any] = {
            "priority": chance.randrange(4),
            "source": chance.choice([*MANUAL, Source.ACTIVATION]),
            "workflow": chance.choice(["work", "work", "other"]),
            "scheduled_at": chance.choice([None, None, NOON - timedelta(1), NOON + timedelta(1)]),
        }
        try_to_queue(store, name, fields)
    for _ in range(20):
        queue_ad_hoc(store, priority=chance.randrange(4), workflow=chance.choice(["work", "other"]))
    return everything_queued(store)


def try_to_queue(store: Store, name: str, fields: dict[str, Any]) -> None:
    with suppress(ValueError):  # a second activation is left out
        queue(store, name, **fields)


def everything_queued(store: Store) -> list[Any]:
    statement = (
        select(
            queue_table,
            manifest.c.enabled.label("manifest_enabled"),
            manifest.c.external_id,
            manifest_group.c.enabled.label("group_enabled"),
            manifest_group.c.priority.label("group_priority"),
            manifest_group.c.max_active_jobs,
        )
        .select_from(
            queue_table.outerjoin(manifest, manifest.c.id == queue_table.c.manifest_id).outerjoin(
                manifest_group, manifest_group.c.id == queue_table.c.group_id
            )
        )
        .where(queue_table.c.status == "queued")
    )
    with store.reading() as tx:
        return list(tx.connection.execute(statement))


def expected(
    store: Store, rows: list[Any], letters: set[str], per_group: int, in_total: int
) -> list[int]:
    """The rules in their plainest words, over every row there is."""
    with store.reading() as tx:
        live = tx.connection.execute(select(execution.c.manifest_id, execution.c.group_id)).all()
    running, active = {one.manifest_id for one in live}, Counter(one.group_id for one in live)

    def may_run(row: Any) -> bool:
        due = row.scheduled_at is None or row.scheduled_at <= NOON
        if row.manifest_id is None:
            return bool(due and row.workflow == "work")
        automatic = Source(row.source) in AUTOMATIC
        held = automatic and (not row.manifest_enabled or row.external_id in letters)
        free = row.manifest_id not in running
        return bool(due and row.workflow == "work" and row.group_enabled and free and not held)

    def place(row: Any) -> tuple[Any, ...]:
        return (-(row.group_priority or 0), -row.priority, row.created_at, row.id)

    chosen, seen, of_group = [], set(), Counter[int | None]()
    for row in sorted(filter(may_run, rows), key=place):
        if row.manifest_id is not None and row.manifest_id in seen:
            continue
        seen.add(row.manifest_id)
        of_group[row.group_id] += 1
        cap = row.max_active_jobs
        room = per_group if cap is None else min(per_group, cap - active[row.group_id])
        if of_group[row.group_id] <= room:
            chosen.append(row.id)
    return chosen[:in_total]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ripened", [True, False])
def test_the_lanes_give_what_ranking_everything_gives(
    store: Store, seed: int, ripened: bool
) -> None:
    rows = fill(store, random.Random(seed))
    with store.writing() as tx:
        letters = {row.external_id for row in rows if row.external_id in _dead(tx)}
        if ripened:
            delays.ripen(tx, 1000)
    for per_group, in_total in [(100, 1000), (100, 7), (2, 1000), (1, 5), (3, 12)]:
        with store.reading() as tx:
            found = work_queue.dispatchable(tx, per_group, in_total, taken=[WORK])
        wanted = expected(store, rows, letters, per_group, in_total)
        assert _without_kept_out(found, wanted) == wanted, (per_group, in_total)


def _dead(tx: Any) -> set[str]:
    return {letter.external_id for letter in awaiting(tx)}


def _without_kept_out(found: list[WorkQueueEntry], wanted: list[int]) -> list[int]:
    """The entries found; those of capped groups beyond what is wanted are there for the reason."""
    return [one.id for one in found if one.id in wanted or one.group_max_active_jobs is None]


def test_many_full_groups_hide_nobody(store: Store) -> None:
    groups = [Group(f"full-{n}", max_active_jobs=1, priority=9) for n in range(30)]
    declare(
        store,
        *(a_manifest(f"{group.name}-{n}", group=group) for group in groups for n in range(2)),
        a_manifest("low", group=Group("idle")),
        groups=groups,
    )
    for group in groups:
        dispatched(store, f"{group.name}-0")
        queue(store, f"{group.name}-1")
    low = queue(store, "low")
    with store.reading() as tx:
        found = work_queue.dispatchable(tx, 100, 10)
    assert low in [one.id for one in found]
    assert len(found) == 10


def test_many_groups_without_anything_that_may_run_hide_nobody(store: Store) -> None:
    groups = [Group(f"idle-{n}", priority=9) for n in range(50)]
    names = [f"{group.name}-{n}" for group in groups for n in range(2)]
    declare(
        store,
        *(a_manifest(f"{g.name}-{n}", group=g, enabled=False) for g in groups for n in range(2)),
        a_manifest("low", group=Group("low")),
        groups=groups,
    )
    for name in names:
        queue(store, name)
    low = queue(store, "low")
    with store.reading() as tx:
        assert [one.id for one in work_queue.dispatchable(tx, 100, 10)] == [low]


def test_a_later_time_holds_an_entry_back_though_nobody_marked_it(store: Store) -> None:
    declare(store, "extract")
    with store.writing() as tx:
        rows = [
            {"source": "ad_hoc", "created_at": NOON, "priority": 31, "scheduled_at": moment}
            for moment in (NOON + timedelta(1), NOON)
        ]
        tx.connection.execute(insert(queue_table), [FIELDS | row for row in rows])
    with store.reading() as tx:
        [one] = work_queue.dispatchable(tx, 100, 10)
    assert one.eligible_since == NOON


@pytest.mark.parametrize(
    ("last_shut_at", "ages"),
    [
        (None, True),
        (NOON, True),
        (NOON + timedelta(minutes=30), True),
        (NOON + timedelta(minutes=55), False),
    ],
)
def test_a_group_ages_again_after_it_was_full_or_disabled(
    store: Store, clock: Clock, last_shut_at: datetime | None, ages: bool
) -> None:
    groups = [Group(f"hot-{n}", priority=31) for n in range(9)]
    declare(
        store,
        *(a_manifest(group.name, group=group) for group in groups),
        a_manifest("low", group=Group("low")),
        groups=groups,
    )
    low = queue(store, "low")
    change_group(store, "low", last_shut_at=last_shut_at)
    clock.advance(hours=1)
    for group in groups:
        queue(store, group.name)

    with store.reading() as tx:
        bound = NOON + timedelta(minutes=30)
        found = work_queue.dispatchable(tx, 100, 3, aged_before=bound)

    assert (low in [one.id for one in found]) is ages
