"""The coming runs are those the manager would start if every run took no time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest

from headway.domain.due import MisfirePolicy
from headway.domain.exclusions import exclude
from headway.domain.manifest import Group, Manifest, Terms
from headway.domain.preview import coming_runs, how_it_runs
from headway.domain.schedule import Never, cron, every, once
from headway.domain.timing import FirstRun, Timing

FRIDAY = datetime(2030, 1, 4, 12, tzinfo=UTC)
WEEK = FRIDAY + timedelta(days=7)


def starts(timing: Timing, until: datetime = WEEK, key: str = "extract") -> list[str]:
    return [f"{run.at:%a %H:%M}" for run in coming_runs(timing, key, FRIDAY, until)]


@pytest.mark.parametrize(
    ("timing", "expected"),
    [
        (Timing(every(days=3)), ["Fri 12:00", "Mon 12:00", "Thu 12:00"]),
        (Timing(every(days=3, fixed_rate=True)), ["Fri 12:00", "Mon 12:00", "Thu 12:00"]),
        (
            Timing(cron("0 9 * * 1,5"), first_run=FirstRun.AT_FIRST_OCCURRENCE),
            ["Mon 09:00", "Fri 09:00"],
        ),
        (
            Timing(cron.daily(hour=9), exclusions=(exclude.weekends(),)),
            ["Fri 12:00", "Mon 09:00", "Tue 09:00", "Wed 09:00", "Thu 09:00", "Fri 09:00"],
        ),
        (
            Timing(cron("0 9 * * 6"), exclusions=(exclude.weekends(then="defer"),)),
            ["Fri 12:00", "Mon 00:00"],
        ),
        (Timing(once(FRIDAY + timedelta(hours=1))), ["Fri 13:00"]),
        (Timing(once(FRIDAY - timedelta(days=9))), ["Fri 12:00"]),
        (Timing(once(WEEK + timedelta(hours=1))), []),
        (Timing(Never()), []),
        (Timing(once(WEEK)), ["Fri 12:00"]),
        (Timing(every(days=7)), ["Fri 12:00", "Fri 12:00"]),
    ],
)
def test_the_runs_of_a_week(timing: Timing, expected: list[str]) -> None:
    assert starts(timing) == expected


def test_variance_moves_the_start_and_keeps_the_occurrence() -> None:
    timing = Timing(
        cron.daily(hour=9), variance=timedelta(hours=1), first_run=FirstRun.AT_FIRST_OCCURRENCE
    )
    runs = list(coming_runs(timing, "extract", FRIDAY, WEEK))
    assert [run.stands_for.hour for run in runs] == [9] * 7
    assert any(run.moved for run in runs)
    assert all(run.stands_for <= run.at < run.stands_for + timedelta(hours=1) for run in runs)
    assert [run.at for run in coming_runs(timing, "extract", FRIDAY, WEEK)] == [
        run.at for run in runs
    ]


def test_catching_up_has_nothing_to_catch_up_with() -> None:
    timing = Timing(cron.daily(), misfire_policy=MisfirePolicy.CATCH_UP)
    assert len(starts(timing)) == 8


def test_only_as_many_are_computed_as_are_asked_for() -> None:
    timing = Timing(every(seconds=1))
    until = FRIDAY + timedelta(days=3660)
    assert len(list(islice(coming_runs(timing, "extract", FRIDAY, until), 10))) == 10


def test_what_is_settled_is_over_and_an_earlier_declaration_counts() -> None:
    first = FirstRun.AT_FIRST_OCCURRENCE
    daily = Timing(every(days=2), first_run=first)
    settled = coming_runs(daily, "extract", FRIDAY, WEEK, settled=FRIDAY - timedelta(days=1))
    declared = coming_runs(daily, "extract", FRIDAY, WEEK, declared_at=FRIDAY - timedelta(hours=24))
    days = [f"{run.at:%a}" for run in settled]
    assert days == [f"{run.at:%a}" for run in declared] == ["Sat", "Mon", "Wed", "Fri"]
    assert [f"{run.at:%a}" for run in coming_runs(daily, "extract", FRIDAY, WEEK)] == [
        "Sun",
        "Tue",
        "Thu",
    ]


@pytest.mark.parametrize(
    ("changes", "parents", "words"),
    [
        ({}, (), "every 1 hour"),
        ({}, ("a", "b"), "after a and b"),
        ({"join": "any"}, ("a", "b"), "after a or b"),
        ({"dormant": True}, ("a", "b"), "when activated by a or b"),
    ],
)
def test_how_it_runs_in_words(
    changes: dict[str, Any], parents: tuple[str, ...], words: str
) -> None:
    terms = Terms("copy", "int", every(hours=1), Group("etl"), **changes)
    assert how_it_runs(Manifest("load", "1", terms, parents)) == words
