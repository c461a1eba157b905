"""What the judge says of starts and activations beside restarts of the database."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway.torture.evidence import Line
from headway.torture.facts import Facts
from headway.torture.invariants import breaches
from headway.torture.outages import activations_that_waited, starts_that_waited
from headway.torture.processes import noticed_after
from tests.torture.test_invariants import PLAN, SOUND, body, line, lost, plus, ran

STARTS, ACTIVATING = "starts_beside_a_restart_come_up", "activating_outlasts_a_restart"
ONCE = "activations_are_written_once"
AGAIN = (line(200, "down"), line(201, "up"), *body(55, "chain-9", 202, 203))


def test_a_start_that_ends_by_itself_is_told_with_its_status() -> None:
    facts = plus(line(40.5, "begins", pid=14), line(42, "exited", 14, 1))
    assert breaches(facts) == {
        "nobody_ends_uncalled": ["process 14 ended by itself"],
        STARTS: ["process 14, started beside a restart, ended with status 1"],
    }


@pytest.mark.parametrize(
    "lines",
    [
        (line(39, "begins", pid=14), line(39.9, "serves", "a", pid=14)),
        (line(41.1, "begins", pid=14),),
        (line(40.5, "begins", pid=14), line(40.6, "killed", 14, -9)),
        (line(39, "begins", pid=14), line(44, "serves", "a", pid=14)),
        (line(40.5, "begins", pid=14), line(60, "serves", "a", pid=14), line(61, "killed", 14, -9)),
    ],
    ids=["up before", "begun later", "killed", "up after", "killed later"],
)
def test_a_start_that_comes_up_or_is_killed_breaks_nothing(lines: tuple[Line, ...]) -> None:
    assert breaches(plus(*lines)) == {}


@pytest.mark.parametrize(
    ("what", "invariant", "told"),
    [("waits", STARTS, "no start waited"), ("activated", ACTIVATING, "no activation waited")],
)
def test_restarts_that_nothing_waited_for_have_shown_nothing(
    what: str, invariant: str, told: str
) -> None:
    once, twice = lacking(SOUND, what), lacking(plus(*AGAIN), what)
    assert breaches(once) == {}, "a single restart may meet nothing"
    [breach] = breaches(twice)[invariant]
    assert breach == f"{told} for the database: the run proved nothing about that"


def lacking(facts: Facts, what: str) -> Facts:
    left = tuple(one for one in facts.lines if one.what != what)
    return replace(facts, lines=left, _by_what={})


def test_a_dependent_that_runs_with_an_input_that_it_was_not_given() -> None:
    facts = plus(
        line(60, "asks", -97, "sleeper-1", 8),
        *body(59, -97, 61, 62),
        executions=[ran(59, "sleeper-3", 61, 62)],
    )
    assert breaches(facts)[ONCE] == [
        "sleeper-3 ran with the input of -97, which is no activation of it"
    ]


def test_what_waited_is_counted() -> None:
    assert (starts_that_waited(SOUND), activations_that_waited(SOUND)) == ({13}, {"-98"})


def noticed_in(facts: Facts) -> float:
    [seconds] = noticed_after(facts)
    return seconds


def killed_at_100(noticed: float, *outages: tuple[float, float]) -> Facts:
    spans = [
        line(at, what) for span in outages for at, what in zip(span, ("down", "up"), strict=True)
    ]
    runs = [lost(54, None, 80, noticed, owner="host-78-abc")]
    return plus(line(100, "killed", 78, -9), *spans, executions=runs)


@pytest.mark.parametrize(
    ("outages", "noticed", "told"),
    [
        ((), 107, 7),
        (((102, 104),), 109, 7),
        (((102, 105),), 112, 7),
        (((99, 102),), 109, 7),
        (((102, 105), (110, 113)), 120, 7),
        (((95, 98),), 107, 7),
        (((106.5, 109.5),), 110, 7),
    ],
    ids=["none", "short", "long", "killed in one", "two long", "before", "after the lease"],
)
def test_how_soon_the_dead_are_noticed_beside_outages(
    outages: tuple[tuple[float, float], ...], noticed: float, told: float
) -> None:
    """No server buries in the first six seconds after an outage of three."""
    assert PLAN.lease == 6
    assert noticed_in(killed_at_100(noticed, *outages)) == told


@pytest.mark.parametrize(("left", "is_excused"), [(201, True), (200.5, True), (199, False)])
def test_a_worker_that_ends_while_the_database_is_away_cannot_hand_back(
    left: float, is_excused: bool
) -> None:
    facts = plus(
        line(198, "terminated", 77),
        line(left, "left", 77, 0),
        line(200, "down"),
        line(201, "up"),
        *body(55, "chain-9", 202, 203),
        executions=[lost(53, None, 190, 207, owner="host-77-abc")],
    )
    assert ("nobody_is_given_up_without_reason" in breaches(facts)) != is_excused
