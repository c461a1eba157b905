"""Who gets a slot in a cycle, who is passed over, and why: from values to verdicts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from headway.domain.admission import NO_WORKER_FREE, Active, Admission, Verdict, admit, has_room
from headway.domain.ageing import aged_first, free_slots
from headway.domain.dispatching import NOTHING_READY, Limits, decide_admissions
from headway.domain.faults import failing, fault_of, unknown_since
from headway.domain.refusals import is_hopeless, pause_after, waited
from headway.domain.starting import Hands, Start
from headway.domain.work_queue import (
    MAX_INPUT_BYTES,
    WorkQueueEntry,
    dispatch_order,
    one_per_manifest,
)
from tests.domain.rows import MINUTE, NOON, an_entry

IDLE = Active(0, {})


def entries(*keys: int, **changes: Any) -> list[WorkQueueEntry]:
    return [an_entry(key, **changes) for key in keys]


def verdicts(found: list[Admission] | tuple[Admission, ...]) -> dict[int, str]:
    return {one.entry.id: one.reason for one in found}


# --- the walk


def test_what_is_live_is_counted_by_group_by_worker_and_in_all() -> None:
    kinds = [
        (7, "load", "local", 2, 41),
        (7, "train", "gpu", 3, 40),
        (None, "load", "local", 1, 43),
        (8, "report", "local", 5, 42),
    ]
    assert Active.counted(kinds, ["report"]) == Active(6, {7: 5, 8: 5}, local=8, oldest=40)
    assert Active.counted([]) == Active(0, {}, local=0, oldest=None)


def test_a_full_group_is_passed_over_and_the_global_limit_stops() -> None:
    capped = entries(1, 2, group_max_active_jobs=2)
    others = entries(3, 4, 5, group_id=4, group_name="other")
    found = admit([*capped, *others], Active(1, {3: 1}), 4)
    assert [(one.entry.id, one.verdict, one.reason) for one in found] == [
        (1, Verdict.DISPATCH, "dispatched"),
        (2, Verdict.SKIP, "group 'users' has reached its cap of 2"),
        (3, Verdict.DISPATCH, "dispatched"),
        (4, Verdict.DISPATCH, "dispatched"),
        (5, Verdict.STOP, "global limit of 4 reached"),
    ]
    assert not has_room(found)
    assert has_room(found[:4])


def test_an_excluded_workflow_needs_no_global_slot_but_its_groups() -> None:
    free = entries(1, 2, 3, workflow="report", group_max_active_jobs=2)
    found = admit([*free, an_entry(4, group_id=4)], IDLE, 1, ["report"])
    assert [one.verdict for one in found] == [
        Verdict.DISPATCH,
        Verdict.DISPATCH,
        Verdict.SKIP,
        Verdict.DISPATCH,
    ]


def test_own_workers_take_what_they_have_hands_for() -> None:
    waiting = [*entries(1, 2), an_entry(3, task_server="gpu"), an_entry(4)]
    found = admit(waiting, IDLE, None, room=1)
    assert verdicts(found) == {
        1: "dispatched",
        2: NO_WORKER_FREE,
        3: "dispatched",
        4: NO_WORKER_FREE,
    }
    assert not has_room(found)


def test_an_entry_without_a_group_has_no_cap() -> None:
    alone = entries(1, 2, group_id=None, group_max_active_jobs=0)
    assert [one.verdict for one in admit(alone, IDLE, None)] == [Verdict.DISPATCH] * 2


# --- ageing


@pytest.mark.parametrize(
    ("waiting", "total", "most", "room", "free"),
    [
        (3, 0, None, None, 3),
        (9, 4, 10, None, 6),
        (9, 4, 10, 2, 2),
        (9, 12, 10, None, 0),
        (9, 0, None, -1, 0),
    ],
)
def test_slots_that_are_free(
    waiting: int, total: int, most: int | None, room: int | None, free: int
) -> None:
    assert free_slots(waiting, Active(total, {}), most, room) == free


def ids(found: list[WorkQueueEntry]) -> list[int]:
    return [one.id for one in found]


def test_a_tenth_of_the_slots_and_at_least_one_goes_to_the_oldest() -> None:
    young = entries(1, 2, created_at=NOON + MINUTE)
    old = [an_entry(key, created_at=NOON - key * MINUTE) for key in (3, 4, 5)]
    waiting = [*young, *old]
    assert ids(aged_first(waiting, IDLE, 1, NOON)) == [5, 1, 2, 3, 4]
    assert ids(aged_first(waiting, IDLE, 19, NOON)) == [5, 1, 2, 3, 4]
    assert ids(aged_first(waiting, IDLE, 20, NOON)) == [5, 4, 1, 2, 3]
    assert ids(aged_first(waiting, IDLE, 0, NOON)) == [1, 2, 3, 4, 5]
    assert ids(aged_first(waiting, IDLE, 20, None)) == [1, 2, 3, 4, 5]


def test_ageing_counts_from_when_it_could_have_run() -> None:
    first = an_entry(1, created_at=NOON - 2 * MINUTE, eligible_since=NOON + MINUTE)
    second = an_entry(2, created_at=NOON - MINUTE, eligible_since=NOON)
    assert ids(aged_first([first, second], IDLE, 1, NOON)) == [2, 1]


@pytest.mark.parametrize(
    ("held", "options"),
    [
        ({"group_max_active_jobs": 1, "group_id": 9}, {"active": Active(1, {9: 1})}),
        ({"workflow": "report"}, {"excluded": ["report"]}),
        ({"task_server": "local"}, {"room": 0}),
    ],
    ids=["its group is full", "it needs no slot", "no worker is free"],
)
def test_the_oldest_that_cannot_start_gives_its_place_to_the_next(
    held: dict[str, Any], options: dict[str, Any]
) -> None:
    best = an_entry(1, task_server="gpu")
    oldest = an_entry(2, created_at=NOON - 2 * MINUTE, **held)
    next_one = an_entry(3, created_at=NOON - MINUTE, task_server="gpu")
    known: dict[str, Any] = {"active": IDLE, "slots": 1, "before": NOON - MINUTE}
    found = aged_first([best, oldest, next_one], **known | options)
    assert ids(found) == [3, 1, 2]


def test_the_aged_of_one_group_fill_it() -> None:
    oldest = [
        an_entry(key, created_at=NOON - key * MINUTE, group_max_active_jobs=1) for key in (1, 2)
    ]
    other = an_entry(3, created_at=NOON - MINUTE / 2, group_id=4)
    best = an_entry(4, created_at=NOON + MINUTE)
    assert ids(aged_first([best, *oldest, other], IDLE, 20, NOON)) == [2, 3, 4, 1]


def test_the_aged_fill_the_own_workers() -> None:
    oldest = [an_entry(key, created_at=NOON - key * MINUTE) for key in (1, 2)]
    best = an_entry(3, created_at=NOON + MINUTE)
    assert ids(aged_first([best, *oldest], IDLE, 20, NOON, room=1)) == [2, 3, 1]


# --- all of it together


@pytest.mark.parametrize(
    ("limits", "local", "room"),
    [
        (Limits(), 3, None),
        (Limits(slots=2), 1, 3),
        (Limits(slots=2, ready=NOTHING_READY), 1, 1),
        (Limits(slots=2), 5, 0),
        (Limits(slots=2, free=1), 0, 1),
        (Limits(slots=2, free=9), 0, 4),
    ],
)
def test_the_room_of_the_own_workers(limits: Limits, local: int, room: int | None) -> None:
    assert limits.room(Active(9, {}, local=local)) == room


def test_a_cycle_fails_what_is_faulty_and_lets_the_aged_go_first() -> None:
    faulty = an_entry(1, missing="manifest")
    best, aged = an_entry(2), an_entry(3, created_at=NOON - MINUTE)
    limits = Limits(max_active_jobs=1, aged_before=NOON - MINUTE)
    found = decide_admissions([faulty, best, aged], IDLE, limits)
    assert [(one.entry.id, one.verdict, one.reason) for one in found] == [
        (1, Verdict.FAIL, "the manifest it belongs to does not exist"),
        (3, Verdict.DISPATCH, "dispatched"),
        (2, Verdict.STOP, "global limit of 1 reached"),
    ]


def test_a_cycle_keeps_to_the_hands_and_to_what_is_excluded() -> None:
    waiting = [an_entry(1), an_entry(2), an_entry(3, task_server="gpu", workflow="report")]
    limits = Limits(max_active_jobs=1, excluded=["report"], slots=1, ready=1)
    assert verdicts(decide_admissions(waiting, IDLE, limits)) == {
        1: "dispatched",
        2: "global limit of 1 reached",
        3: "dispatched",
    }
    full = Active(0, {}, local=1)
    assert verdicts(decide_admissions(waiting, full, limits)) == {
        1: NO_WORKER_FREE,
        2: NO_WORKER_FREE,
        3: "dispatched",
    }


def test_what_goes_elsewhere_counts_among_the_slots_that_age() -> None:
    """Twenty slots elsewhere: two of the oldest go first, though no own worker is free."""
    young = entries(*range(1, 19), created_at=NOON + MINUTE, task_server="gpu")
    old = entries(20, 21, created_at=NOON - MINUTE, task_server="gpu")
    limits = Limits(slots=1, ready=1, aged_before=NOON)
    found = decide_admissions([*young, *old], Active(1, {}, local=1), limits)
    assert [one.entry.id for one in found[:2]] == [20, 21]


# --- faults, refusals, order


def test_an_input_may_be_as_large_as_is_allowed() -> None:
    most, more = (an_entry(1, input_bytes=MAX_INPUT_BYTES + n) for n in (0, 1))
    assert fault_of(most) is None
    assert fault_of(more) == "its input is 256001 bytes, more than 256000"
    assert failing([most, more]) == [Admission(more, Verdict.FAIL, fault_of(more) or "")]


def test_since_when_a_workflow_is_unknown() -> None:
    before = {"load": NOON - MINUTE, "report": NOON - MINUTE, "gone": NOON - MINUTE}
    known = frozenset({"report"})
    assert unknown_since(before, ["load", "report", "train"], known, NOON) == {
        "load": NOON - MINUTE,
        "train": NOON,
    }
    assert unknown_since(before, ["load"], frozenset(), NOON) == {}


def test_a_refused_entry_fails_after_its_last_chance_and_not_before_patience_is_over() -> None:
    assert [waited(count) for count in (1, 2, 3)] == [
        timedelta(0),
        timedelta(seconds=5),
        timedelta(seconds=15),
    ]
    assert pause_after(1000) == timedelta(minutes=1)
    assert [is_hopeless(count, limit=3) for count in (2, 3)] == [False, True]
    patience = timedelta(seconds=15)
    assert [is_hopeless(count, 1, patience) for count in (2, 3)] == [False, True]


def test_the_order_of_dispatch() -> None:
    expected = [
        an_entry(9, group_priority=2),
        an_entry(8, group_priority=1, priority=5),
        an_entry(7, group_priority=1, created_at=NOON - MINUTE),
        an_entry(5, group_priority=1),
        an_entry(6, group_priority=1),
        an_entry(1, priority=31),
    ]
    assert sorted(reversed(expected), key=dispatch_order) == expected


def test_of_a_manifest_that_runs_once_at_a_time_the_best_entry_stays() -> None:
    best, worse = an_entry(2, manifest_id=1, priority=5), an_entry(1, manifest_id=1)
    free = [an_entry(key, manifest_id=4, may_overlap=True) for key in (3, 4)]
    alone = [an_entry(key, manifest_id=None) for key in (5, 6)]
    given = [worse, *free, best, *alone, worse, alone[0]]
    assert one_per_manifest(given) == [*free, best, *alone]
    assert one_per_manifest([worse, worse, *free]) == [worse, *free]


def test_free_hands_take_the_first_of_their_own_workflows() -> None:
    hands = Hands("me", 2, ["load"], {"load": "read"}, key=5)
    admitted = [
        an_entry(1, task_server="gpu"),
        an_entry(2, workflow="train"),
        *entries(3, 4, 5),
    ]
    assert hands.start(admitted) == Start("me", (3, 4), {"load": "read"})
