"""Each gate of a manifest, passed or not, and whether the next cycle comes to it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from headway.domain.dependencies import EdgeState
from headway.domain.due import MisfirePolicy
from headway.domain.exclusions import exclude
from headway.domain.gates import (
    Gate,
    GateName,
    Stage,
    Why,
    as_clause,
    does_not_run,
    first_held,
    listed,
)
from headway.domain.manifest import DEPENDENT, DORMANT, ManifestDispatchView
from headway.domain.manifest_gates import Present, delay_gate, queue_gates
from headway.domain.readiness import Defaults
from headway.domain.retry import RetryPolicy, jittered
from headway.domain.schedule import Never, cron
from headway.domain.time_options import TimeOptions
from headway.domain.turn_gates import share_gate, wake_up_gate
from tests.domain.rows import HOUR, MINUTE, NOON, a_view

DEFAULTS = Defaults(RetryPolicy(7 * MINUTE), 3, MisfirePolicy.FIRE_ONCE_NOW, MINUTE)
NOTHING = Present()
OLD, NEW = EdgeState("extract", 2, 2), EdgeState("extract", 3, 2)
OFF = EdgeState("extract", 3, 2, parent_enabled=False)


def after(*edges: EdgeState, **changes: Any) -> ManifestDispatchView:
    return a_view(kind=DEPENDENT, schedule=Never(), edges=dict(enumerate(edges)), **changes)


def asked(view: ManifestDispatchView, present: Present = NOTHING) -> dict[GateName, Gate]:
    found = queue_gates(view, NOON, DEFAULTS, present)
    assert {gate.stage for gate in found} == {Stage.QUEUE}
    by_name = {gate.name: gate for gate in found}
    assert len(by_name) == len(found)
    return by_name


def told(gate: Gate) -> tuple[bool, str, str, datetime | None]:
    return gate.passed, gate.sentence, gate.until, gate.at


def test_a_manifest_that_is_due_passes_every_gate_in_order() -> None:
    found = queue_gates(a_view(), NOON, DEFAULTS, Present("entry 7", "run 9", "letter 5"))
    assert [(gate.name, *told(gate)) for gate in found] == [
        (GateName.ENABLED, True, "the manifest is enabled", "", None),
        (GateName.GROUP_ENABLED, True, "group 'users' is enabled", "", None),
        (GateName.NO_DEAD_LETTER, True, "no dead letter awaits intervention", "", None),
        (GateName.NOT_QUEUED, True, "nothing queued holds it back", "", None),
        (GateName.NOT_ACTIVE, True, "no run of it is going on", "", None),
        (GateName.DUE, True, "it is due since 2030-01-07 12:00:00 UTC", "", None),
        (GateName.NOT_EXCLUDED, True, "nothing excludes this moment", "", None),
        (GateName.NOT_MISSED, True, "it was not missed", "", None),
    ]


PRESENT = Present(queued="entry 7", active="run 9", dead_letter="letter 5")


@pytest.mark.parametrize(
    ("changes", "name", "sentence", "until"),
    [
        (
            {"enabled": False},
            GateName.ENABLED,
            "the manifest is disabled",
            "when somebody enables it",
        ),
        (
            {"group_enabled": False},
            GateName.GROUP_ENABLED,
            "group 'users' is disabled",
            "when somebody enables the group",
        ),
        (
            {"has_awaiting_dead_letter": True},
            GateName.NO_DEAD_LETTER,
            "a dead letter awaits intervention (letter 5)",
            "when somebody requeues or acknowledges that",
        ),
        (
            {"failed_count": 3},
            GateName.NO_DEAD_LETTER,
            "it is dead-lettered in this cycle (letter 5)",
            "when somebody requeues or acknowledges that",
        ),
        (
            {"failed_count": 1, "failed_for_good": True},
            GateName.NO_DEAD_LETTER,
            "it is dead-lettered in this cycle (letter 5)",
            "when somebody requeues or acknowledges that",
        ),
        (
            {"has_queued_work": True},
            GateName.NOT_QUEUED,
            "it is already queued (entry 7)",
            "when that has run",
        ),
        (
            {"has_active_execution": True},
            GateName.NOT_ACTIVE,
            "it is already running (run 9)",
            "when that run has ended",
        ),
        (
            {"has_active_execution": True, "may_overlap": True},
            GateName.NOT_ACTIVE,
            "it is already running, and the next run is counted from its end (run 9)",
            "when that run has ended",
        ),
    ],
)
def test_what_keeps_a_manifest_from_being_queued(
    changes: dict[str, Any], name: GateName, sentence: str, until: str
) -> None:
    gate = asked(a_view(**changes), PRESENT)[name]
    assert told(gate) == (False, sentence, until, None)


def test_of_a_manifest_that_may_overlap_a_run_does_not_matter() -> None:
    view = a_view(schedule=cron.hourly(), has_active_execution=True, may_overlap=True)
    assert told(asked(view)[GateName.NOT_ACTIVE])[:2] == (True, "its runs may overlap")


def test_its_own_limit_of_retries_counts_more_than_the_default() -> None:
    patient = asked(a_view(failed_count=3, max_retries=4))[GateName.NO_DEAD_LETTER]
    impatient = asked(a_view(failed_count=1, max_retries=0))[GateName.NO_DEAD_LETTER]
    assert (patient.passed, impatient.passed) == (True, False)


def test_a_row_that_cannot_be_read_has_one_gate() -> None:
    [gate] = queue_gates(a_view(trouble="no such zone"), NOON, DEFAULTS, NOTHING)
    sentence = "its row cannot be read: no such zone"
    assert gate == Gate(GateName.READABLE, Stage.QUEUE, False, sentence, "when that is mended")


@pytest.mark.parametrize(
    ("changes", "passed", "last"),
    [
        (
            {"settled_until": NOON - 30 * MINUTE},
            [],
            (
                GateName.DUE,
                False,
                "it is not due before 2030-01-07 12:30:00 UTC",
                "then",
                NOON + 30 * MINUTE,
            ),
        ),
        (
            {"schedule": Never(), "kind": "none"},
            [],
            (
                GateName.DUE,
                False,
                "it has no further occurrence by time",
                "when somebody triggers it",
                None,
            ),
        ),
        (
            {
                "settled_until": NOON - 100 * MINUTE,
                "time": TimeOptions(exclusions=(exclude.window("11:30", "13:00", then="defer"),)),
            },
            [(GateName.DUE, "it is due")],
            (
                GateName.NOT_EXCLUDED,
                False,
                "it is due, but nothing runs between 11:30 and 13:00",
                "at 2030-01-07 13:00:00 UTC",
                NOON + HOUR,
            ),
        ),
        (
            {
                "schedule": cron("30 * * * *"),
                "settled_until": NOON - HOUR,
                "time": TimeOptions(misfire_policy=MisfirePolicy.DO_NOTHING),
            },
            [
                (GateName.DUE, "it is due"),
                (GateName.NOT_EXCLUDED, "nothing excludes this moment"),
            ],
            (
                GateName.NOT_MISSED,
                False,
                "it missed 2030-01-07 11:30:00 UTC by more than the misfire threshold of 0:01:00",
                "at 2030-01-07 12:30:00 UTC",
                NOON + 30 * MINUTE,
            ),
        ),
    ],
)
def test_by_time_only_what_was_asked_is_told(
    changes: dict[str, Any],
    passed: list[tuple[GateName, str]],
    last: tuple[GateName, bool, str, str, datetime | None],
) -> None:
    timed = list(asked(a_view(**changes)).values())[5:]
    assert [(gate.name, gate.sentence) for gate in timed if gate.passed] == passed
    assert (timed[-1].name, *told(timed[-1])) == last


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ((NEW,), (True, "new success of 'extract'", "", None)),
        ((OLD,), (False, "it waits for the next success of 'extract'", "then", None)),
        (
            (OLD, OFF),
            (
                False,
                "it waits for the next success of 'extract'; parent disabled: 'extract'",
                "when somebody enables that parent",
                None,
            ),
        ),
        (
            (EdgeState(None), OFF),
            (
                False,
                "a parent was removed; parent disabled: 'extract'",
                "when its parents are declared again",
                None,
            ),
        ),
        ((), (False, "it has no parent", "when its parents are declared again", None)),
    ],
)
def test_after_parents(
    edges: tuple[EdgeState, ...], expected: tuple[bool, str, str, datetime | None]
) -> None:
    found = asked(after(*edges))
    assert told(found[GateName.PARENTS]) == expected
    assert GateName.DUE not in found


def test_one_parent_is_enough_where_that_is_said() -> None:
    assert asked(after(NEW, OLD, join="any"))[GateName.PARENTS].passed
    assert not asked(after(NEW, OLD))[GateName.PARENTS].passed


def test_a_dormant_dependent_waits_for_its_parent_whatever_that_is() -> None:
    found = asked(after(NEW, OFF, EdgeState(None))._replace(kind=DORMANT))
    dormant = "it is dormant: runs only when its parent activates it"
    assert told(found[GateName.PARENTS]) == (False, dormant, "then", None)


# --- the wait for the next attempt


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (True, "no retry has to wait", "", None)),
        ({"last_failed_at": NOON}, (True, "no retry has to wait", "", None)),
        (
            {"failed_count": 1, "last_failed_at": NOON},
            (
                False,
                "retry 1 waits 0:07:00, until 2030-01-07 12:07:00 UTC",
                "then",
                NOON + 7 * MINUTE,
            ),
        ),
        (
            {"failed_count": 2, "last_failed_at": NOON - 14 * MINUTE},
            (True, "no retry has to wait", "", None),
        ),
        (
            {
                "failed_count": 2,
                "last_failed_at": NOON - MINUTE,
                "retry": RetryPolicy(3 * MINUTE, multiplier=3.0),
            },
            (
                False,
                "retry 2 waits 0:09:00, until 2030-01-07 12:08:00 UTC",
                "then",
                NOON + 8 * MINUTE,
            ),
        ),
        (
            {"failed_count": 1, "last_failed_at": NOON - MINUTE, "retry_at": NOON + MINUTE},
            (False, "retry 1 waits 0:02:00, until 2030-01-07 12:01:00 UTC", "then", NOON + MINUTE),
        ),
        (
            {"failed_count": 1},
            (
                False,
                "retry 1 waits 0:07:00, until 2030-01-07 12:07:00 UTC",
                "then",
                NOON + 7 * MINUTE,
            ),
        ),
    ],
)
def test_the_wait_of_a_retry_is_counted_from_the_failure(
    changes: dict[str, Any], expected: tuple[bool, str, str, datetime | None]
) -> None:
    gate = delay_gate(a_view(**changes), NOON, DEFAULTS)
    assert told(gate) == expected
    assert (gate.name, gate.stage) == (GateName.DELAY_OVER, Stage.DISPATCH)


def test_many_retries_do_not_come_back_at_the_same_moment() -> None:
    policy = RetryPolicy(HOUR, jitter=1.0)
    jittering = Defaults(policy, 30, MisfirePolicy.FIRE_ONCE_NOW, MINUTE)
    moments = set()
    for key in range(20):
        view = a_view(key, failed_count=2, last_failed_at=NOON)
        moment = delay_gate(view, NOON, jittering).at
        assert moment == NOON + jittered(HOUR, policy, f"load-{key}", 2)
        moments.add(moment)
    assert len(moments) > 15


# --- whether the next cycle comes to it


@pytest.mark.parametrize(
    ("wake_at", "looked_at", "expected"),
    [
        (None, True, (True, "the manager looks at it in its next cycle", "", None)),
        (
            None,
            False,
            (
                False,
                "the manager has no time at which it looks at it again",
                "when the manager's sweep comes to it",
                None,
            ),
        ),
        (
            NOON,
            False,
            (
                False,
                "more manifests are due than one cycle of the manager looks at",
                "in a later cycle",
                None,
            ),
        ),
        (
            NOON + HOUR,
            False,
            (
                False,
                "the manager looks at it again at 2030-01-07 13:00:00 UTC",
                "then",
                NOON + HOUR,
            ),
        ),
    ],
)
def test_when_the_manager_looks(
    wake_at: datetime | None, looked_at: bool, expected: tuple[bool, str, str, datetime | None]
) -> None:
    gate = wake_up_gate(a_view(wake_at=wake_at), looked_at, NOON)
    assert told(gate) == expected
    assert (gate.name, gate.stage) == (GateName.WAKE_UP, Stage.QUEUE)


def test_the_share_of_a_group_goes_to_the_most_overdue() -> None:
    since = NOON - HOUR
    views = [a_view(manifest_id=key, settled_until=since - key * MINUTE) for key in (1, 2, 3)]
    doomed = a_view(manifest_id=9, settled_until=since - 9 * MINUTE, failed_count=3)
    held = a_view(manifest_id=8, settled_until=since - 8 * MINUTE, enabled=False)
    everything = [*views, doomed, held]
    gates = [share_gate(one, everything, NOON, DEFAULTS, 2) for one in views]
    left = (True, "its group 'users' has a share of this cycle left", "", None)
    gone = "its group 'users' had its share of 2 in this cycle (3 of it are due)"
    assert [told(gate) for gate in gates] == [(False, gone, "in a later cycle", None), left, left]
    assert {(gate.name, gate.stage) for gate in gates} == {(GateName.SHARE, Stage.QUEUE)}


def test_more_groups_than_places_take_turns() -> None:
    views = [a_view(manifest_id=key, group_id=key, group_name=f"g{key}") for key in (1, 2, 3)]
    first, enough = (share_gate(views[0], views, NOON, DEFAULTS, limit) for limit in (2, 3))
    sentence = "3 groups have due manifests, and a cycle queues 2, in turn"
    until = "when it is the turn of its group 'g1'"
    assert told(first) == (False, sentence, until, None)
    assert told(enough) == (True, "its group 'g1' has a share of this cycle left", "", None)


# --- what gates say together


@pytest.mark.parametrize(
    ("reason", "clause"),
    [
        ("first run", "its first run is due"),
        ("first run not due before noon", "its first run is not due before noon"),
        ("not due before noon", "it is not due before noon"),
        ("due since noon", "it is due since noon"),
        ("overdue by 0:01:01, fires once now", "it is overdue by 0:01:01, fires once now"),
        ("already queued", "it is already queued"),
        ("dormant: runs", "it is dormant: runs"),
        ("dead-lettered in this cycle", "it is dead-lettered in this cycle"),
        ("has no parent", "it has no parent"),
        ("waits for the next success", "it waits for the next success"),
        ("missed noon", "it missed noon"),
        ("parent disabled: 'extract'", "it has a parent disabled: 'extract'"),
        ("a parent was removed", "a parent was removed"),
        ("new success of 'extract'", "new success of 'extract'"),
    ],
)
def test_a_reason_becomes_a_clause(reason: str, clause: str) -> None:
    assert as_clause(reason) == clause


def test_names_in_a_row() -> None:
    assert listed(["a", "b"]) == "'a', 'b'"
    assert listed(["a"], 1) == "'a' and 1 more"


def test_a_gate_that_nothing_lifts_has_no_ending() -> None:
    gate = Gate(GateName.DECLARED, Stage.DISPATCH, False, "its manifest was removed")
    assert does_not_run("load", gate) == "load does not run because its manifest was removed"


def test_an_answer_knows_which_gates_hold_it_and_which_stages_are_passed() -> None:
    enabled = Gate(GateName.ENABLED, Stage.QUEUE, True, "it is enabled")
    due = Gate(GateName.DUE, Stage.QUEUE, False, "it is not due", "then", NOON)
    turn = Gate(GateName.TURN, Stage.DISPATCH, True, "a slot is left")
    why = Why("load", "load does not run", (enabled, due, turn), entry=7, execution=41)
    assert str(why) == "load does not run"
    assert why.waits_for == (due,)
    assert [why.passes(stage) for stage in Stage] == [False, True, False]
    assert first_held(why.gates, Stage.QUEUE) == due
    assert first_held(why.gates, Stage.DISPATCH) is None
    said = why.told()
    assert said == {
        "subject": "load",
        "answer": "load does not run",
        "gates": said["gates"],
        "entry": 7,
        "execution": 41,
    }
    assert said["gates"][0]["at"] is None
    assert said["gates"][1] == {
        "name": "due",
        "stage": "queue",
        "passed": False,
        "sentence": "it is not due",
        "until": "then",
        "at": "2030-01-07T12:00:00+00:00",
    }
