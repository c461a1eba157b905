"""Seed 003, group-fair batching: no group crowds out another, and no slot is wasted."""

import math
from collections import Counter
from datetime import timedelta
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway import Group, every
from headway.domain.fairness import fair_shares, last_served
from headway.domain.manifest import ManifestDispatchView
from headway.manager.cycle import ManifestManager
from headway.manager.decide import Decision, Verdict, keep_to_shares
from tests.builders import START, Scene, names

GROUPS = st.dictionaries(
    st.integers(1, 30), st.tuples(st.integers(1, 60), st.integers(0, 31)), max_size=20
)
LIMITS = st.integers(1, 300)


def shares_of(groups: dict[int, tuple[int, int]], limit: int) -> dict[int, int]:
    wanted = {group: count for group, (count, _) in groups.items()}
    return fair_shares(wanted, {group: priority for group, (_, priority) in groups.items()}, limit)


@given(GROUPS, LIMITS)
def test_shares_are_never_above_the_limit_nor_above_what_is_wanted(
    groups: dict[int, tuple[int, int]], limit: int
) -> None:
    shares = shares_of(groups, limit)

    assert shares.keys() == groups.keys()
    assert sum(shares.values()) <= limit
    assert all(0 <= share <= groups[group][0] for group, share in shares.items())


@given(GROUPS, LIMITS)
def test_nobody_starves_who_could_get_a_base_share(
    groups: dict[int, tuple[int, int]], limit: int
) -> None:
    base = limit // max(len(groups), 1)

    for group, share in shares_of(groups, limit).items():
        assert share >= min(groups[group][0], base)


@given(GROUPS, LIMITS)
def test_all_slots_are_used_while_anyone_is_hungry(
    groups: dict[int, tuple[int, int]], limit: int
) -> None:
    wanted = sum(count for count, _ in groups.values())

    assert sum(shares_of(groups, limit).values()) == min(wanted, limit)


@given(GROUPS, LIMITS)
def test_what_is_left_over_goes_to_the_highest_priority_first(
    groups: dict[int, tuple[int, int]], limit: int
) -> None:
    shares = shares_of(groups, limit)
    base = limit // max(len(groups), 1)
    hungry = [group for group, share in shares.items() if share < groups[group][0]]
    above_base = [group for group, share in shares.items() if share > max(base, 0)]

    for group in above_base:
        assert not any(groups[other][1] > groups[group][1] for other in hungry if base)


@given(GROUPS, st.integers(1, 5), st.integers(0, 20))
def test_no_group_waits_for_ever_when_groups_outnumber_the_places(
    groups: dict[int, tuple[int, int]], limit: int, turn: int
) -> None:
    """Each has more due than will ever be served, and still comes round (W29)."""
    wanted = dict.fromkeys(groups, 1000)
    priorities = {group: priority for group, (_, priority) in groups.items()}
    served = set()
    for _ in range(math.ceil(len(groups) / limit)):
        shares = fair_shares(wanted, priorities, limit, turn)
        turn = last_served(shares, turn)
        served |= {group for group, share in shares.items() if share}
    assert served == groups.keys()


def due(manifest_id: int, group_id: int, priority: int, overdue: int) -> Decision:
    view = ManifestDispatchView(
        manifest_id=manifest_id,
        external_id=str(manifest_id),
        workflow="work",
        input="null",
        input_type="None",
        schedule=every(hours=1),
        enabled=True,
        max_retries=None,
        group_id=group_id,
        group_name=str(group_id),
        group_priority=priority,
        group_enabled=True,
        settled_until=None,
        wake_at=START,
    )
    since = START - timedelta(minutes=overdue)
    return Decision(view, Verdict.QUEUE, "due", scheduled_for=since)


def due_in_groups(groups: dict[int, tuple[int, int]]) -> list[Decision]:
    flat = [(group, priority) for group, (count, priority) in groups.items() for _ in range(count)]
    return [due(number, *place, overdue=number % 7) for number, place in enumerate(flat)]


@given(GROUPS, LIMITS)
def test_a_batch_keeps_to_the_shares_and_says_why_the_rest_waits(
    groups: dict[int, tuple[int, int]], limit: int
) -> None:
    decisions = due_in_groups(groups)

    kept = keep_to_shares(decisions, limit, START)

    assert [one.view for one in kept] == [one.view for one in decisions]
    queued = Counter(one.view.group_id for one in kept if one.verdict is Verdict.QUEUE)
    assert queued == Counter(shares_of(groups, limit))
    for one in kept:
        if one.verdict is not Verdict.QUEUE:
            assert one.verdict is Verdict.DEFER and "share of its group" in one.reason
            assert one.wake_at == START, "looked at again in the very next cycle"


@given(GROUPS, LIMITS)
def test_inside_a_group_the_most_overdue_go_first(
    groups: dict[int, tuple[int, int]], limit: int
) -> None:
    kept = keep_to_shares(due_in_groups(groups), limit, START)

    since = {one.view.manifest_id: one.scheduled_for for one in due_in_groups(groups)}
    for group in groups:
        mine = [one for one in kept if one.view.group_id == group]
        queued = [since[one.view.manifest_id] for one in mine if one.verdict is Verdict.QUEUE]
        deferred = [since[one.view.manifest_id] for one in mine if one.verdict is Verdict.DEFER]
        if queued and deferred:
            latest, earliest = max(filter(None, queued)), min(filter(None, deferred))
            assert latest <= earliest


def test_inside_a_group_dependents_go_before_what_is_due_by_time(scene: Scene) -> None:
    extract = scene.app.schedule("work", "extract", None, every(days=9), group="all")
    scene.app.schedule("work", "poll", None, every(hours=1), group="all")
    extract.include("work", "load", group="all")
    scene.apply()
    scene.cycle()
    scene.clock.advance(hours=2)
    scene.configure(max_work_queue_entries_per_cycle=1)

    assert scene.manage().queued == 1

    assert names(scene.history.queue.all()) == ["load"], "although the other is an hour late"


def test_without_a_limit_everything_is_queued() -> None:
    decisions = due_in_groups({1: (500, 0)})

    assert keep_to_shares(decisions, None, START) == decisions


def test_skipped_manifests_take_no_place() -> None:
    skipped = Decision(due(1, 1, 0, 0).view, Verdict.SKIP, "already queued")

    assert keep_to_shares([skipped, due(2, 1, 0, 0)], 1, START)[1].verdict is Verdict.QUEUE


def queued_by_group(scene: Scene) -> Counter[str | None]:
    return Counter(entry.group_name for entry in scene.history.queue.all())


def a_manager(scene: Scene) -> ManifestManager:
    return ManifestManager(scene.store, scene.app.settings, scene.app.observer)


class Row(NamedTuple):
    """Groups with how many are due in each and their priority, the limit, who gets how many.

    ``first`` is what is queued after one cycle, ``second`` after two.
    """

    groups: dict[str, tuple[int, int]]
    limit: int | None
    first: dict[str, int]
    second: dict[str, int]


SHARES: dict[str, Row] = {
    "5,000 and 15 share 200": Row(
        {"cache": (5000, 0), "delta": (15, 0)},
        200,
        {"cache": 185, "delta": 15},
        {"cache": 385, "delta": 15},
    ),
    "15 and 5,000 share 200": Row(
        {"delta": (15, 0), "cache": (5000, 0)},
        200,
        {"cache": 185, "delta": 15},
        {"cache": 385, "delta": 15},
    ),
    "equal groups share equally": Row(
        {"a": (10, 0), "b": (10, 0)}, 6, {"a": 3, "b": 3}, {"a": 6, "b": 6}
    ),
    "a high priority takes none of another's base": Row(
        {"high": (50, 31), "low": (50, 0)}, 10, {"high": 5, "low": 5}, {"high": 10, "low": 10}
    ),
    "what does not divide goes to the highest priority": Row(
        {"a": (9, 0), "b": (9, 5), "c": (9, 9)},
        10,
        {"a": 3, "b": 3, "c": 4},
        {"a": 6, "b": 6, "c": 8},
    ),
    "what a small group leaves goes to the highest priority": Row(
        {"low": (20, 1), "high": (20, 9), "tiny": (2, 0)},
        10,
        {"low": 3, "high": 5, "tiny": 2},
        {"low": 8, "high": 10, "tiny": 2},
    ),
    "what the highest does not need goes to the next": Row(
        {"tiny": (1, 0), "high": (5, 9), "mid": (20, 5), "low": (20, 1)},
        16,
        {"tiny": 1, "high": 5, "mid": 6, "low": 4},
        {"tiny": 1, "high": 5, "mid": 14, "low": 12},
    ),
    "fewer than the limit": Row(
        {"a": (3, 0), "b": (2, 7)}, 200, {"a": 3, "b": 2}, {"a": 3, "b": 2}
    ),
    "more groups than places": Row(
        {"a": (3, 9), "b": (3, 0), "c": (3, 0)}, 2, {"a": 1, "b": 1}, {"a": 2, "b": 1, "c": 1}
    ),
    "no limit": Row({"a": (300, 0), "b": (7, 9)}, None, {"a": 300, "b": 7}, {"a": 300, "b": 7}),
}


@pytest.mark.parametrize("row", SHARES)
def test_the_table_of_shares(scene: Scene, row: str) -> None:
    groups, limit, first, second = SHARES[row]
    scene.configure(max_work_queue_entries_per_cycle=limit)
    for name, (count, priority) in groups.items():
        for number in range(count):
            group = Group(name, priority=priority)
            scene.app.schedule("work", f"{name}-{number}", None, every(hours=1), group=group)
    scene.apply()
    manager = a_manager(scene)

    result = manager.run_once()

    assert queued_by_group(scene) == first
    deferred = sum(count for count, _ in groups.values()) - sum(first.values())
    at_once = result.due_in is not None and result.due_in <= timedelta(0)
    assert at_once == bool(deferred), "with more to do the next cycle is due now"
    manager.run_once()
    assert queued_by_group(scene) == second


def test_200_is_the_limit_by_default(scene: Scene) -> None:
    for number in range(201):
        scene.app.schedule("work", f"load-{number}", None, every(hours=1), group="all")
    scene.apply()

    assert [scene.manage().queued for _ in range(3)] == [200, 1, 0]


def test_after_a_mass_failure_retries_do_not_crowd_out_a_small_group(scene: Scene) -> None:
    scene.configure(max_work_queue_entries_per_cycle=None, max_active_jobs=None)
    for group, count in {"cache": 60, "delta": 3}.items():
        for number in range(count):
            external_id = f"{group}-{number}"
            scene.failing |= {external_id} if group == "cache" else set()
            scene.app.schedule("work", external_id, None, every(hours=1), group=group)
    scene.apply()
    scene.cycle()
    scene.clock.advance(hours=1)
    scene.configure(max_work_queue_entries_per_cycle=10)

    result = scene.manage()

    assert queued_by_group(scene) == {"cache": 7, "delta": 3}
    queued = [one for one in result.decisions if one.verdict is Verdict.QUEUE]
    retries = [one for one in queued if one.view.failed_count == 1]
    assert {one.view.group_name for one in retries} == {"cache"} and len(retries) == 7
    assert result.skipped == {"due, but this cycle's share of its group is used up": 53}


def test_null_queues_everything_at_once(scene: Scene) -> None:
    scene.configure(max_work_queue_entries_per_cycle=None)
    for number in range(300):
        scene.app.schedule("work", f"load-{number}", None, every(hours=1), group="all")
    scene.apply()

    assert scene.manage().queued == 300


def test_groups_of_low_priority_come_round_although_others_are_always_due(scene: Scene) -> None:
    scene.configure(max_work_queue_entries_per_cycle=2)
    for number in range(5):
        for item in range(10):
            group = Group(f"group-{number}", priority=9 - number)
            scene.app.schedule("work", f"{group.name}-{item}", None, every(hours=1), group=group)
    scene.apply()
    manager = a_manager(scene)

    for _ in range(3):
        assert manager.run_once().queued == 2

    assert queued_by_group(scene).keys() == {f"group-{number}" for number in range(5)}
