"""The judge of a chaos run: each invariant is seen to hold, and seen to break."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from headway.domain.dead_letter import DeadLetter, DeadLetterStatus
from headway.domain.execution import Execution, ExecutionState, Failure, FailureCode
from headway.torture.evidence import Line
from headway.torture.facts import Facts, Sample
from headway.torture.intervals import most_at_once
from headway.torture.invariants import INVARIANTS, breaches
from headway.torture.plan import Plan

PLAN = Plan(
    seed=1,
    minutes=1,
    tickers=1,
    tick_seconds=2,
    capped=1,
    flaky=0,
    hopeless=1,
    poisonous=1,
    chains=1,
)
END = 1000.0


def at(moment: float) -> datetime:
    return datetime.fromtimestamp(moment, UTC)


def line(moment: float, what: str, *words: object, pid: int = 10) -> Line:
    return Line(moment, pid, what, tuple(str(word) for word in words))


def ran(
    key: int,
    name: str | None,
    start: float,
    end: float,
    state: ExecutionState = ExecutionState.COMPLETED,
    **fields: Any,
) -> Execution:
    known: dict[str, Any] = {
        "entry_id": key,
        "manifest_id": None if name is None else 1,
        "external_id": name,
        "group_name": None if name is None else "loose",
        "workflow": "nap",
        "input": "null",
        "source": "trigger",
        "priority": 0,
        "attempt": 1,
        "crashes": 0,
        "scheduled_for": None,
        "dispatched_at": at(start),
        "owner": "host-10-abc",
        "cancel_requested": False,
        "running_step": None,
        "step_started_at": None,
        "progress": None,
        "progress_note": None,
        "failure": None,
        "output": None,
    }
    moments = {"started_at": at(start), "finished_at": at(end)}
    return Execution(id=key, state=state, **(known | moments | fields))


def lost(key: int, name: str | None, start: float, noticed: float, **fields: Any) -> Execution:
    failure = Failure("nap", FailureCode.WORKER_LOST, "gone")
    return ran(key, name, start, noticed, ExecutionState.FAILED, failure=failure, **fields)


def letter(name: str, failures: int = 2) -> DeadLetter:
    awaiting = DeadLetterStatus.AWAITING_INTERVENTION
    return DeadLetter(1, 1, name, awaiting, at(5), "because", failures, None, None)


def failed(key: int, name: str) -> Execution:
    failure = Failure("hopeless", "RuntimeError", "never")
    return ran(key, name, 20, 21, ExecutionState.FAILED, failure=failure)


def body(key: int, number: object, start: float, end: float, pid: int = 10) -> list[Line]:
    return [line(start, "start", key, number, pid=pid), line(end, "end", key, number, pid=pid)]


SOUND = Facts(
    plan=PLAN,
    lines=(
        line(1, "accepted", 7, 70),
        *body(1, 7, 2, 3),
        *body(2, "tick-0@a", 4, 4.1),
        *body(3, "tick-0@b", 6, 6.1),
        *body(4, "chain-0-a", 8, 8.1),
        *body(5, "chain-0-b", 9, 9.1),
        *body(6, "chain-0-c", 10, 10.1),
        line(10.9, "asks", -99, "sleeper-1", 8),
        line(11, "activated", -99, "sleeper-1"),
        *body(9, -99, 12, 13),
        line(14, "accepted", 8, 80),
        line(15, "cancelled", 8, "1_cancelled"),
        *(line(16, "stopped", 11, 18.0) for _ in range(10)),
        line(16, "execution.refused", 44),
        line(17, "led"),
        line(25, "led"),
        line(40, "down"),
        line(40.1, "begins", pid=13),
        line(40.2, "waits", "refused", pid=13),
        line(40.3, "asks", -98, "sleeper-2", 8),
        line(41, "up"),
        line(41.1, "activated", -98, "sleeper-2"),
        line(41.2, "serves", "host-13-abc", pid=13),
        *body(30, 9, 42, 43),
        *body(31, -98, 42, 43),
        line(50, "left", 12, 0),
        line(17, "weighed", 12, 60_000),
        line(50, "weighs", 12, 89_000),
    ),
    executions=(
        ran(1, None, 2, 3.1),
        ran(2, "tick-0", 4, 4.2, scheduled_for=at(4)),
        ran(3, "tick-0", 6, 6.2, scheduled_for=at(6)),
        ran(4, "chain-0-a", 8, 8.2),
        ran(5, "chain-0-b", 9, 9.2),
        ran(6, "chain-0-c", 10, 10.2),
        ran(9, "sleeper-1", 12, 13.1),
        failed(20, "hopeless-0"),
        failed(21, "hopeless-0"),
        ran(30, None, 42, 43.1),
        ran(31, "sleeper-2", 42, 43.1),
    ),
    dead_letters=(letter("hopeless-0"), letter("poison-0", 5)),
    samples=(Sample(2, 3, {"cap-1": 1, "loose": 2}),),
    cutoff=END,
    connections=(2, 3),
)


def plus(*lines: Line, **fields: Any) -> Facts:
    """The sound facts with something more; executions are added, all else replaces."""
    more = fields.pop("executions", ())
    return replace(
        SOUND,
        lines=tuple(sorted((*SOUND.lines, *lines), key=lambda one: one.moment)),
        executions=(*SOUND.executions, *more),
        _by_what={},
        **fields,
    )


def without(what: str) -> Facts:
    left = tuple(one for one in SOUND.lines if one.what != what)
    return replace(SOUND, lines=left, _by_what={})


BROKEN: dict[str, tuple[Callable[[], Facts], str]] = {
    "nothing_is_lost": (
        lambda: plus(line(1, "accepted", 12, 120)),
        "12 was accepted and did not complete; its runs: -",
    ),
    "one_completion": (
        lambda: plus(*body(40, 7, 60, 61), executions=[ran(40, None, 60, 61.1)]),
        "7 was completed 2 times",
    ),
    "what_is_completed_has_ended": (
        lambda: plus(line(60, "start", 41, 13), executions=[ran(41, None, 60, 61)]),
        "execution 41 of nap is completed, but its body never ended",
    ),
    "epochs_rise": (
        lambda: plus(*body(50, 14, 60, 61), *body(45, 14, 62, 63)),
        "14: execution 45 started after 50",
    ),
    "late_writes_were_refused": (
        lambda: without("execution.refused"),
        "nobody who was buried came back to write",
    ),
    "ticks_are_exact": (
        lambda: plus(
            *body(46, "tick-0@c", 10, 10.1),
            executions=[ran(46, "tick-0", 10, 10.2, scheduled_for=at(10))],
        ),
        "tick-0: nothing between 6.0 and 10.0",
    ),
    "caps_hold_in_the_record": (
        lambda: plus(samples=[Sample(3, 25, {"cap-2": 3})]),
        "25 at once",
    ),
    "caps_hold_in_the_bodies": (
        lambda: plus(
            *body(51, 15, 70, 72),
            *body(52, 16, 71, 73),
            executions=[
                ran(51, "a", 70, 72.1, group_name="cap-1"),
                ran(52, "b", 71, 73.1, group_name="cap-1"),
            ],
        ),
        "2 bodies of cap-1 ran at once",
    ),
    "nobody_is_given_up_without_reason": (
        lambda: plus(executions=[lost(53, None, 80, 90, owner="host-77-abc")]),
        "execution 53 was taken from host-77-abc, who lived",
    ),
    "the_dead_are_noticed_in_time": (
        lambda: plus(
            line(81, "killed", 78), executions=[lost(54, None, 80, 99, owner="host-78-abc")]
        ),
        "noticed after 18.0 s (p99)",
    ),
    "somebody_leads": (lambda: plus(line(45, "led")), "nobody led for 20.0 s"),
    "work_goes_on_after_an_outage": (
        lambda: plus(line(200, "down"), line(201, "up"), *body(55, "chain-9", 210, 211)),
        "nothing started for 9.0 s after the database was back",
    ),
    "failures_are_counted_once": (
        lambda: plus(executions=[failed(22, "hopeless-0")]),
        "hopeless-0 failed 3 times, with max_retries=2",
    ),
    "chains_are_followed": (
        lambda: plus(*body(56, "chain-0-a", 90, 91), executions=[ran(56, "chain-0-a", 90, 91.1)]),
        "chain-0-b did not run after its parent's last success",
    ),
    "no_activation_is_lost": (
        lambda: plus(line(90, "activated", -100, "sleeper-2")),
        "the activation -100 of sleeper-2 did not run once",
    ),
    "cancelled_is_cancelled": (
        lambda: plus(line(100, "cancelled", 17, "1_cancelled"), *body(57, 17, 101, 102)),
        "17 was told to be cancelled before it started, and started",
    ),
    "nobody_ends_uncalled": (
        lambda: plus(line(100, "exited", 33, 1)),
        "process 33 ended by itself",
    ),
    "nobody_is_overtaken": (
        lambda: plus(
            *(line(20 + 11 * later, "accepted", 60 + later, 60 + later) for later in range(2)),
            *body(60, 60, 35, 36),
            *body(61, 61, 34, 35),
            executions=[ran(60, None, 35, 36.1), ran(61, None, 34, 35.1)],
        ),
        "work without a manifest: what was asked for at 20 was sent after what came much later",
    ),
    "nobody_grows": (
        lambda: plus(line(20, "weighed", 14, 60_000), line(70, "weighs", 14, 91_000)),
        "process 14 has grown from 60000 to 91000 kB",
    ),
    "starts_beside_a_restart_come_up": (
        lambda: plus(line(40.5, "begins", pid=14)),
        "process 14, started beside a restart, did not come up",
    ),
    "activating_outlasts_a_restart": (
        lambda: plus(line(60, "asks", -97, "sleeper-1", 58), executions=[failed(58, "alarm")]),
        "execution 58 of alarm failed while it activated: hopeless: RuntimeError",
    ),
    "activations_are_written_once": (
        lambda: plus(
            *body(59, -98, 60, 61),
            executions=[ran(59, "sleeper-2", 60, 61, ExecutionState.HANDED_BACK, entry_id=159)],
        ),
        "the activation -98 of sleeper-2 was queued 2 times",
    ),
    "the_record_is_sound": (lambda: plus(ailments=("an orphan",)), "an orphan"),
    "nothing_unhandled": (
        lambda: plus(log="Traceback (most recent call last):\n  …"),
        "1 tracebacks in the log",
    ),
    "poison_is_put_away": (
        lambda: plus(dead_letters=(letter("hopeless-0"),)),
        "poison-0 is not dead-lettered",
    ),
}


def test_sound_facts_break_nothing() -> None:
    assert breaches(SOUND) == {}


@pytest.mark.parametrize("said_so", [0, 3, 4])
@pytest.mark.parametrize(("crashes", "is_lost"), [(PLAN.max_crashes, False), (4, True)])
def test_what_has_lost_too_many_workers_is_over(crashes: int, is_lost: bool, said_so: int) -> None:
    """However many of them died before the body could say which it was."""
    gone = [lost(70 + time, None, 80 + time, 81 + time, entry_id=180) for time in range(crashes)]
    starts = [line(80 + time, "start", 70 + time, 18) for time in range(said_so)]
    killed = line(79, "killed", 10)
    facts = plus(line(60, "accepted", 18, 180), killed, *starts, executions=gone)
    assert ("nothing_is_lost" in breaches(facts)) == is_lost


def test_the_judge_says_how_the_runs_of_what_is_lost_ended() -> None:
    refused = Failure("nap", FailureCode.NOT_DISPATCHABLE, "no")
    ends = (
        lost(70, None, 80, 81, entry_id=180),
        ran(71, None, 82, 83, ExecutionState.FAILED, failure=refused, entry_id=180),
        ran(72, None, 84, 85, ExecutionState.HANDED_BACK, entry_id=180),
    )
    facts = plus(line(60, "accepted", 18, 180), line(79, "killed", 10), executions=ends)
    [told] = breaches(facts)["nothing_is_lost"]
    assert told.endswith("its runs: WorkerLost, NotDispatchable, handed_back")


def test_every_invariant_is_seen_to_break() -> None:
    assert {check.__name__ for check in INVARIANTS} == BROKEN.keys()


@pytest.mark.parametrize("name", BROKEN)
def test_an_invariant_breaks_and_no_other(name: str) -> None:
    make, told = BROKEN[name]
    broken = breaches(make())
    assert list(broken) == [name]
    assert told in broken[name][0]


@pytest.mark.parametrize(
    ("intervals", "most"),
    [([], 0), ([(1, 2), (2, 3)], 1), ([(1, 3), (2, 4), (2.5, 2.6)], 3), ([(1, 1), (1, 2)], 1)],
)
def test_how_many_there_were_at_once(intervals: list[tuple[float, float]], most: int) -> None:
    assert most_at_once(intervals) == most
