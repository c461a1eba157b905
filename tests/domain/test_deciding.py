"""Which manifests a cycle of the manager queues, and what it says of the others."""

from __future__ import annotations

from typing import Any

import pytest

from headway.domain.deciding import (
    TROUBLED_PAUSE,
    Decision,
    Verdict,
    decide,
    decide_all,
    keep_to_shares,
    last_group,
)
from headway.domain.dependencies import EdgeState
from headway.domain.due import MisfirePolicy
from headway.domain.exclusions import exclude
from headway.domain.fairness import fair_shares, last_served
from headway.domain.manifest import DEPENDENT, DORMANT, ManifestDispatchView
from headway.domain.overlap import waits_for_the_end
from headway.domain.readiness import Defaults, held_by
from headway.domain.retry import RetryPolicy
from headway.domain.schedule import Every, Never, Schedule, cron, every
from headway.domain.time_options import TimeOptions
from tests.domain.rows import HOUR, MINUTE, NOON, a_view

DEFAULTS = Defaults(RetryPolicy(7 * MINUTE), 3, MisfirePolicy.FIRE_ONCE_NOW, MINUTE)
NEW = EdgeState("extract", 3, 2)
SHARE_USED = "due, but this cycle's share of its group is used up"


def dependent(key: int = 1, kind: str = DEPENDENT, **changes: Any) -> ManifestDispatchView:
    return a_view(key, kind=kind, schedule=Never(), **{"edges": {1: NEW}} | changes)


def decided(view: ManifestDispatchView, dead: frozenset[int] = frozenset()) -> Decision:
    return decide(view, dead, NOON, DEFAULTS)


def test_what_is_due_is_queued_for_its_occurrence() -> None:
    view = a_view()
    reason = "due since 2030-01-07 12:00:00 UTC"
    assert decided(view) == Decision(view, Verdict.QUEUE, reason, scheduled_for=NOON)


def test_what_is_not_due_is_looked_at_when_it_is() -> None:
    view = a_view(settled_until=NOON - 30 * MINUTE)
    reason = "not due before 2030-01-07 12:30:00 UTC"
    back = NOON + 30 * MINUTE
    assert decided(view) == Decision(view, Verdict.SKIP, reason, wake_at=back)


def test_what_failed_waits_for_its_next_attempt() -> None:
    view = a_view(failed_count=1, last_failed_at=NOON - MINUTE)
    told = Decision(
        view,
        Verdict.QUEUE,
        "retry 1 after 0:07:00",
        scheduled_for=NOON,
        not_before=NOON + 6 * MINUTE,
    )
    assert decided(view) == told
    rested = decided(a_view(failed_count=1, last_failed_at=NOON - 7 * MINUTE))
    assert (rested.reason, rested.not_before) == ("due since 2030-01-07 12:00:00 UTC", None)


def test_a_row_that_cannot_be_read_is_looked_at_again_some_time() -> None:
    view = a_view(trouble="no such zone", enabled=False)
    reason = "its row cannot be read: no such zone"
    assert decided(view) == Decision(view, Verdict.SKIP, reason, wake_at=NOON + TROUBLED_PAUSE)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"enabled": False, "group_enabled": False}, "the manifest is disabled"),
        (
            {"group_enabled": False, "has_awaiting_dead_letter": True},
            "group 'users' is disabled",
        ),
        (
            {"has_awaiting_dead_letter": True, "has_queued_work": True},
            "a dead letter awaits intervention",
        ),
        ({"has_queued_work": True, "has_active_execution": True}, "already queued"),
        ({"has_active_execution": True}, "already running"),
    ],
)
def test_the_first_guard_that_holds_is_the_reason(changes: dict[str, Any], reason: str) -> None:
    view = a_view(**changes)
    assert decided(view) == Decision(view, Verdict.SKIP, reason)


def test_what_is_dead_lettered_in_this_cycle_is_not_queued_in_it() -> None:
    view = a_view(7)
    dead = decided(view, frozenset({7}))
    assert dead == Decision(view, Verdict.SKIP, "dead-lettered in this cycle")
    assert held_by(view, {8}) is None


def test_what_was_skipped_for_good_is_written_down_unless_something_runs() -> None:
    lunch = TimeOptions(exclusions=(exclude.window("11:30", "12:30"),))
    view = a_view(
        schedule=cron("*/20 * * * *"),
        settled_until=NOON - 20 * MINUTE,
        time=lunch,
        may_overlap=True,
    )
    back = NOON + 40 * MINUTE
    reason = "not due before 2030-01-07 12:40:00 UTC"
    skipped = Decision(view, Verdict.SKIP, reason, wake_at=back, settle_until=NOON)
    assert decided(view) == skipped
    busy = view._replace(has_active_execution=True)
    assert decided(busy) == Decision(busy, Verdict.SKIP, reason, wake_at=back)


def test_what_has_never_been_declared_counts_from_now() -> None:
    new = decided(a_view(settled_until=None, declared_at=None))
    assert (new.verdict, new.reason, new.scheduled_for) == (Verdict.QUEUE, "first run", NOON)


def test_defaults_fill_in_what_the_manifest_leaves_open() -> None:
    strict = Defaults(RetryPolicy(), 3, MisfirePolicy.DO_NOTHING, 5 * MINUTE)
    early, late = (a_view(settled_until=NOON - HOUR - n * MINUTE) for n in (5, 6))
    assert decide(early, (), NOON, strict).verdict is Verdict.QUEUE
    missed = decide(late, (), NOON, strict)
    assert (missed.verdict, missed.settle_until) == (Verdict.SKIP, NOON - 6 * MINUTE)


def test_a_failed_run_is_retried_for_the_same_occurrence_however_late() -> None:
    strict = Defaults(RetryPolicy(), 3, MisfirePolicy.DO_NOTHING, MINUTE)
    failed_for = NOON - 50 * MINUTE
    view = a_view(
        settled_until=NOON - 110 * MINUTE,
        failed_count=1,
        last_failed_at=NOON - HOUR,
        failed_for=failed_for,
    )
    retried = decide(view, (), NOON, strict)
    assert (retried.verdict, retried.scheduled_for) == (Verdict.QUEUE, failed_for)


@pytest.mark.parametrize(
    ("schedule", "policy", "reason"),
    [
        (every(hours=1), None, "already running, and the next run is counted from its end"),
        (
            cron.hourly(),
            MisfirePolicy.CATCH_UP,
            "already running, and missed runs are made up for one after another",
        ),
        (Every(HOUR, fixed_rate=True), None, None),
    ],
)
def test_only_what_keeps_to_the_clock_overlaps(
    schedule: Schedule, policy: MisfirePolicy | None, reason: str | None
) -> None:
    options = TimeOptions(misfire_policy=policy)
    view = a_view(schedule=schedule, time=options, has_active_execution=True, may_overlap=True)
    found = decided(view)
    assert waits_for_the_end(options.timing(schedule)) == reason
    if reason is None:
        assert found.verdict is Verdict.QUEUE
    else:
        assert found == Decision(view, Verdict.SKIP, reason)


# --- all of a cycle


def test_dependents_come_after_what_runs_by_time_and_dormant_ones_last() -> None:
    views = [dependent(1, DORMANT), dependent(2), a_view(3), dependent(4), a_view(5)]
    decisions = decide_all(views, (), NOON, DEFAULTS, None)
    assert [one.view.manifest_id for one in decisions] == [3, 5, 2, 4, 1]
    assert [one.verdict for one in decisions[:4]] == [Verdict.QUEUE] * 4
    dormant = "dormant: runs only when its parent activates it"
    assert decisions[4] == Decision(views[0], Verdict.SKIP, dormant)
    assert decisions[2] == Decision(views[1], Verdict.QUEUE, "new success of 'extract'")


def test_inside_a_group_dependents_go_first_then_the_most_overdue() -> None:
    since = NOON - HOUR
    views = [
        a_view(1, settled_until=since - MINUTE),
        a_view(2, settled_until=since - 3 * MINUTE),
        a_view(3, settled_until=since - 2 * MINUTE),
        dependent(9),
        dependent(8, edges={}),
    ]
    for limit, late in ((3, {1}), (2, {1, 3}), (1, {1, 2, 3}), (4, set())):
        decisions = decide_all(views, (), NOON, DEFAULTS, limit)
        assert {one.view.manifest_id for one in decisions if one.reason == SHARE_USED} == late


def test_what_is_beyond_the_share_is_looked_at_in_the_next_cycle() -> None:
    waiting, unknown = a_view(2, wake_at=NOON - MINUTE), a_view(3)
    decisions = decide_all([a_view(1), waiting, unknown], (), NOON, DEFAULTS, 1)
    assert decisions[1:] == [
        Decision(waiting, Verdict.DEFER, SHARE_USED, wake_at=NOON - MINUTE),
        Decision(unknown, Verdict.DEFER, SHARE_USED, wake_at=NOON),
    ]
    assert decisions[0].verdict is Verdict.QUEUE


def test_what_is_not_due_takes_no_share() -> None:
    idle, due = a_view(1, settled_until=NOON), a_view(2)
    found = [decided(idle), decided(due)]
    assert keep_to_shares(found, 1, NOON) == found


def test_groups_share_by_priority_and_take_turns_where_there_are_too_many() -> None:
    views = [
        a_view(key, group_id=group, group_priority=priority)
        for key, group, priority in ((1, 1, 0), (2, 1, 0), (3, 2, 9), (4, 2, 9))
    ]

    def queued(limit: int, after: int = 0) -> list[int]:
        decisions = decide_all(views, (), NOON, DEFAULTS, limit, after)
        return [one.view.manifest_id for one in decisions if one.verdict is Verdict.QUEUE]

    assert queued(3) == [1, 3, 4]
    assert (queued(1), queued(1, after=1)) == ([1], [3])


def test_the_next_round_begins_after_the_last_group_that_was_served() -> None:
    due, idle = a_view(1, group_id=4), a_view(2, group_id=6, settled_until=NOON)
    decisions = [decided(due), decided(idle)]
    assert last_group(decisions, 0) == 4
    assert last_group(decisions[1:], 5) == 5


def test_what_is_left_of_a_limit_goes_by_priority_then_by_id() -> None:
    assert fair_shares({}, {}, 5) == {}
    assert fair_shares({2: 9, 1: 9, 3: 9}, {1: 0, 2: 5, 3: 0}, 10) == {2: 4, 1: 3, 3: 3}
    assert fair_shares({2: 9, 1: 9, 3: 9}, {1: 0, 2: 0, 3: 0}, 10) == {2: 3, 1: 4, 3: 3}
    assert fair_shares({1: 1, 2: 9}, {1: 9, 2: 0}, 5) == {1: 1, 2: 4}
    assert last_served({1: 1, 2: 1, 3: 0}, after=1) == 1
    assert last_served({1: 0}, after=7) == 7
