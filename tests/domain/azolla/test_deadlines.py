"""When an objective is overdue: not before its time, for good then, under the same id each time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.domain.azolla.artifacts import (
    Objective,
    ObjectiveStatus,
    ObjectiveType,
    PauseReason,
)
from headway.domain.azolla.deadlines import ALLOWED, SHORTEST, deadline_of, overdue
from headway.domain.azolla.entries import standing
from headway.domain.azolla.ids import pause_for_deadline
from headway.domain.azolla.pausing import ACTION_LIMIT

NOW = datetime(2030, 1, 7, 12, tzinfo=UTC)
MOMENTS = st.datetimes(
    datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.timezones() | st.just(UTC)
)
SPANS = st.timedeltas(timedelta(0), timedelta(days=100))


def ticket(
    urgency: int = 0,
    status: ObjectiveStatus = ObjectiveStatus.TODO,
    updated_at: datetime = NOW,
    kind: ObjectiveType = ObjectiveType.TICKET,
    title: str = "clean the tables",
) -> Objective:
    changes = {
        "objective_id": "clean",
        "objective_type": kind,
        "status": status,
        "urgency": urgency,
        "updated_at": updated_at,
        "title": title,
    }
    return standing("warehouse", "warehouse", NOW).model_copy(update=changes)


@given(
    st.integers(0, 4),
    st.sampled_from(ObjectiveStatus),
    st.sampled_from(ObjectiveType),
    MOMENTS,
    st.timedeltas(timedelta(days=-100), timedelta(days=100)),
)
def test_it_is_overdue_exactly_when_its_time_is_over(
    urgency: int,
    status: ObjectiveStatus,
    kind: ObjectiveType,
    updated_at: datetime,
    later: timedelta,
) -> None:
    now = updated_at.astimezone(UTC) + later
    days = {0: 30, 1: 14, 2: 7, 3: 1}.get(urgency)
    waits = status is not ObjectiveStatus.DONE and kind is ObjectiveType.TICKET
    expected = waits and days is not None and later >= timedelta(days=days)
    assert bool(overdue([ticket(urgency, status, updated_at, kind)], now)) is expected


@given(st.integers(0, 4), MOMENTS, SPANS, SPANS)
def test_once_overdue_it_stays_so_under_the_same_id(
    urgency: int, updated_at: datetime, first: timedelta, then: timedelta
) -> None:
    one = ticket(urgency, updated_at=updated_at)
    early = overdue([one], updated_at.astimezone(UTC) + first)
    late = overdue([one], updated_at.astimezone(UTC) + first + then)
    assert [pause_id for pause_id, _ in early] == [pause_id for pause_id, _ in late][: len(early)]


@given(MOMENTS, st.timedeltas(timedelta(microseconds=1), timedelta(days=1)))
def test_who_touches_it_begins_anew(updated_at: datetime, later: timedelta) -> None:
    updated_at = updated_at.astimezone(UTC)
    now = updated_at + timedelta(days=200)
    [(before, _)] = overdue([ticket(updated_at=updated_at)], now)
    [(after, _)] = overdue([ticket(updated_at=updated_at + later)], now)
    assert before != after


def test_the_same_moment_has_one_id_in_every_zone() -> None:
    now = NOW + timedelta(days=40)
    elsewhere = NOW.astimezone(ZoneInfo("Asia/Kathmandu"))
    [(here, _)] = overdue([ticket()], now)
    [(there, _)] = overdue([ticket(updated_at=elsewhere)], now)
    assert here == there


@given(st.integers(0, 3), st.integers(0, 3))
def test_the_more_urgent_the_sooner(one: int, other: int) -> None:
    assert (one < other) == (ALLOWED[one] > ALLOWED[other])
    assert ALLOWED[one] >= SHORTEST


@pytest.mark.parametrize(
    "never",
    [
        ticket(urgency=4),
        ticket(status=ObjectiveStatus.DONE),
        ticket(kind=ObjectiveType.STANDING),
    ],
)
def test_what_has_no_deadline(never: Objective) -> None:
    assert deadline_of(never) is None
    assert overdue([never], datetime.max.replace(tzinfo=UTC)) == []


def test_the_pause_says_what_and_since_when() -> None:
    now = NOW + timedelta(days=2)
    [(pause_id, pause)] = overdue([ticket(urgency=3)], now)
    assert (pause.objective_id, pause.azolla_id) == ("clean", "warehouse")
    assert (pause.reason, pause.created_at) == (PauseReason.RUN_COMPLETE, now)
    assert pause.prioritized_actions[0] == (
        "go on with “clean the tables” (objective clean): overdue since 2030-01-08 12:00 UTC, "
        "nobody has touched it"
    )
    assert pause.prioritized_actions[1:] == (
        "or say how it stands: headway azolla objective set … clean --status done",
    )
    assert pause_id == pause_for_deadline("clean", NOW)
    elsewhere = ticket(urgency=3, updated_at=NOW.astimezone(ZoneInfo("Asia/Kathmandu")))
    assert overdue([elsewhere], now) == [(pause_id, pause)]
    assert deadline_of(elsewhere) == NOW + timedelta(days=1)


@given(st.text(min_size=1, max_size=2000))
def test_whatever_the_title_is_the_sentences_fit(title: str) -> None:
    [(_, pause)] = overdue([ticket(title=title)], NOW + timedelta(days=31))
    assert all(0 < len(action) <= ACTION_LIMIT for action in pause.prioritized_actions)
    assert all("\n" not in action for action in pause.prioritized_actions)
