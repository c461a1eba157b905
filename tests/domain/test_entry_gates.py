"""Each gate of an entry, passed or not: its sentence, what lifts it, and when that is."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from headway.domain.admission import Active
from headway.domain.dispatching import Limits
from headway.domain.entry_gates import (
    Refusal,
    Standing,
    Surroundings,
    absent,
    entry_gates,
    limit_gates,
    turn_gate,
)
from headway.domain.exclusion_json import exclusions_to_json
from headway.domain.exclusions import exclude
from headway.domain.gates import Gate, GateName, Stage
from headway.domain.work_queue import RestingTimes, Source
from tests.domain.rows import NOON, an_entry

LATER = NOON + timedelta(minutes=7)
ALONE = Surroundings(Active(0, {}), Limits())
REFUSED = Refusal("gpu", 2, "no route")


def gates_of(standing: Standing, around: Surroundings = ALONE) -> dict[GateName, Gate]:
    found = entry_gates(standing, around, NOON)
    assert {gate.stage for gate in found} == {Stage.DISPATCH}
    by_name = {gate.name: gate for gate in found}
    assert len(by_name) == len(found)
    return by_name


def told(gate: Gate) -> tuple[bool, str, str]:
    return gate.passed, gate.sentence, gate.until


def test_an_entry_that_nothing_holds_passes_every_gate_in_order() -> None:
    found = entry_gates(Standing(an_entry(), {}), ALONE, NOON)
    assert [(gate.name, *told(gate), gate.at) for gate in found] == [
        (GateName.ENABLED, True, "the manifest is enabled", "", None),
        (GateName.GROUP_ENABLED, True, "group 'users' is enabled", "", None),
        (GateName.NO_DEAD_LETTER, True, "no dead letter awaits intervention", "", None),
        (GateName.DELAY_OVER, True, "it waits for no later time", "", None),
        (GateName.SINGLE_FLIGHT, True, "no other run of the manifest is in its way", "", None),
        (GateName.GROUP_CAP, True, "its group 'users' has no cap", "", None),
        (GateName.GLOBAL_CAP, True, "the global limit is not reached (there is none)", "", None),
        (GateName.WORKER, True, "somebody takes its workflow", "", None),
    ]


def test_an_entry_without_a_manifest_has_no_gates_of_one() -> None:
    alone = an_entry(manifest_id=None, group_id=None, group_name=None, source=Source.AD_HOC)
    assert list(gates_of(Standing(alone, {}))) == [
        GateName.DELAY_OVER,
        GateName.GLOBAL_CAP,
        GateName.WORKER,
    ]


@pytest.mark.parametrize(
    ("name", "sentence", "until"),
    [
        (GateName.DECLARED, "its manifest was removed", ""),
        (GateName.ENABLED, "the manifest is disabled", "when somebody enables it"),
        (
            GateName.GROUP_ENABLED,
            "group 'users' is disabled",
            "when somebody enables the group",
        ),
        (
            GateName.NO_DEAD_LETTER,
            "a dead letter awaits intervention",
            "when somebody requeues or acknowledges that",
        ),
        (
            GateName.SINGLE_FLIGHT,
            "another run of the manifest is going on",
            "when that run has ended",
        ),
    ],
)
def test_a_condition_that_does_not_hold_is_told(name: GateName, sentence: str, until: str) -> None:
    found = gates_of(Standing(an_entry(), {name: False}))
    assert told(found[name]) == (False, sentence, until)
    assert [gate.name for gate in found.values() if not gate.passed] == [name]


def test_a_run_that_was_asked_for_minds_neither_switch_nor_dead_letter() -> None:
    found = gates_of(Standing(an_entry(source=Source.TRIGGER), {}))
    asked = (True, "somebody asked for this run, so that does not matter", "")
    assert told(found[GateName.ENABLED]) == told(found[GateName.NO_DEAD_LETTER]) == asked


def test_a_faulty_entry_fails_in_the_next_cycle() -> None:
    found = gates_of(Standing(an_entry(missing="group"), {}))
    sentence = "the group it belongs to does not exist, so it fails in the next cycle"
    assert told(found[GateName.SOUND]) == (False, sentence, "")


@pytest.mark.parametrize("standing", [{"held": True}, {"answers": {GateName.TURN: False}}])
def test_behind_another_entry_of_the_manifest(standing: dict[str, Any]) -> None:
    found = gates_of(Standing(**{"entry": an_entry(), "answers": {}} | standing))
    sentence = "another entry of the manifest goes first"
    assert told(found[GateName.SINGLE_FLIGHT]) == (False, sentence, "when that one has run")


@pytest.mark.parametrize(
    ("standing", "sentence"),
    [
        ({}, "it waits until 2030-01-07 12:07:00 UTC"),
        ({"attempts": 2}, "retry 2 waits until 2030-01-07 12:07:00 UTC"),
        (
            {"refusal": REFUSED},
            "task server 'gpu' refused it 2 times, last with: no route; "
            "it waits until 2030-01-07 12:07:00 UTC",
        ),
    ],
)
def test_a_delay_says_until_when_and_why(standing: dict[str, Any], sentence: str) -> None:
    answers = {GateName.DELAY_OVER: False}
    found = gates_of(Standing(an_entry(), answers, LATER, **standing))[GateName.DELAY_OVER]
    assert (*told(found), found.at) == (False, sentence, "then", LATER)


@pytest.mark.parametrize(
    ("moment", "over"), [(LATER, True), (None, False)], ids=["over", "no later time"]
)
def test_a_delay_is_over_once_its_time_has_come(moment: datetime | None, over: bool) -> None:
    answers = {GateName.DELAY_OVER: over}
    once = Refusal("gpu", 1, "no route")
    plain = gates_of(Standing(an_entry(), answers, moment))[GateName.DELAY_OVER]
    refused = gates_of(Standing(an_entry(), answers, moment, refusal=once))[GateName.DELAY_OVER]
    assert told(plain) == (True, "it waits for no later time", "")
    sentence = "task server 'gpu' refused it once, with: no route; its pause is over"
    assert told(refused) == (True, sentence, "")


def test_exclusions_are_asked_once_more() -> None:
    text = exclusions_to_json((exclude.window("11:00", "13:00"),))
    assert text is not None
    resting = gates_of(Standing(an_entry(resting=RestingTimes(text, "UTC")), {}))
    awake = gates_of(Standing(an_entry(resting=RestingTimes(text, "Asia/Tokyo")), {}))
    held, free = resting[GateName.NOT_EXCLUDED], awake[GateName.NOT_EXCLUDED]
    until = "at 2030-01-07 13:00:00 UTC"
    assert told(held) == (False, "nothing runs between 11:00 and 13:00", until)
    assert held.at == NOON + timedelta(hours=1)
    assert (*told(free), free.at) == (True, "nothing excludes this moment", "", None)


@pytest.mark.parametrize(
    ("active", "holders", "expected"),
    [
        (1, (), (True, "its group 'users' has room (1 of 2)", "")),
        (2, (), (False, "its group 'users' is full (2 of 2)", "when one of them ends")),
        (
            7,
            ("a", "b", "c", "d", "e", "f"),
            (
                False,
                "its group 'users' is full (7 of 2: 'a', 'b', 'c', 'd', 'e' and 2 more)",
                "when one of them ends",
            ),
        ),
    ],
)
def test_the_cap_of_a_group_names_some_of_its_holders(
    active: int, holders: tuple[str, ...], expected: tuple[bool, str, str]
) -> None:
    around = Surroundings(Active(active, {3: active}), Limits(), holders=holders)
    found = gates_of(Standing(an_entry(group_max_active_jobs=2), {}), around)
    assert told(found[GateName.GROUP_CAP]) == expected


@pytest.mark.parametrize(
    ("total", "excluded", "expected"),
    [
        (3, (), (True, "the global limit is not reached (3 of 4)", "")),
        (4, (), (False, "the global limit is reached (4 of 4)", "when any run ends")),
        (4, ("load",), (True, "its workflow is outside the global limit", "")),
    ],
)
def test_the_global_limit(
    total: int, excluded: tuple[str, ...], expected: tuple[bool, str, str]
) -> None:
    around = Surroundings(Active(total, {}), Limits(max_active_jobs=4, excluded=excluded))
    assert told(gates_of(Standing(an_entry(), {}), around)[GateName.GLOBAL_CAP]) == expected


@pytest.mark.parametrize(
    ("entry", "around", "expected"),
    [
        ({"task_server": "gpu"}, {}, (True, "it goes to task server 'gpu'", "")),
        (
            {"task_server": "gpu"},
            {"taken": False, "absent": "OSError: no route"},
            (False, "task server 'gpu' does not answer (OSError: no route)", "when it does"),
        ),
        ({}, {"taken": False}, (False, "no worker is alive", "when one is started")),
        (
            {},
            {"taken": False, "limits": Limits(slots=2)},
            (
                False,
                "no living server takes its workflow 'load'",
                "when one is started that does",
            ),
        ),
        (
            {},
            {"taken": False, "limits": Limits(slots=2), "fails_at": LATER},
            (
                False,
                "no living server takes its workflow 'load' (it fails at 2030-01-07 12:07:00 UTC)",
                "when one is started that does",
            ),
        ),
    ],
)
def test_who_would_run_it(
    entry: dict[str, Any], around: dict[str, Any], expected: tuple[bool, str, str]
) -> None:
    known: dict[str, Any] = {"active": Active(0, {}), "limits": Limits()}
    found = gates_of(Standing(an_entry(**entry), {}), Surroundings(**known | around))
    assert told(found[GateName.WORKER]) == expected
    assert GateName.FREE_WORKER not in found


@pytest.mark.parametrize(
    ("local", "expected"),
    [
        (3, (True, "the workers have room (3 for 2 slots)", "")),
        (4, (False, "no worker is free (4 for 2 slots)", "when one of their runs ends")),
    ],
)
def test_own_workers_have_their_hands_full(local: int, expected: tuple[bool, str, str]) -> None:
    around = Surroundings(Active(9, {}, local=local), Limits(slots=2))
    assert told(gates_of(Standing(an_entry(), {}), around)[GateName.FREE_WORKER]) == expected
    elsewhere = gates_of(Standing(an_entry(task_server="gpu"), {}), around)
    assert GateName.FREE_WORKER not in elsewhere


def test_the_limits_are_asked_about_what_is_not_queued_yet() -> None:
    names = [gate.name for gate in limit_gates(an_entry(), ALONE)]
    assert names == [GateName.GROUP_CAP, GateName.GLOBAL_CAP, GateName.WORKER]


def test_the_turn_of_an_entry() -> None:
    assert told(turn_gate(True)) == (True, "a slot is left when its turn comes", "")
    behind = "what goes ahead of it takes the free slots"
    assert told(turn_gate(False)) == (False, behind, "in a later cycle")
    assert turn_gate(True).name is turn_gate(False).name is GateName.TURN


def test_a_server_that_does_not_answer_needs_no_reason() -> None:
    assert absent("task server 'gpu'", "") == "task server 'gpu' does not answer"
