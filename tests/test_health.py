"""Green or red, and why: what the loops and the lease of a process say."""

import threading
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from headway import health
from headway.errors import DatabaseOutage, DatabaseUnavailable, StepFailed
from headway.health import NO_PROGRESS, Health, HealthWatch, Trouble, diagnose
from headway.loops import Loop, LoopState
from headway.observe import Event, Observer
from tests.builders import PATIENCE, Recorder

NOW = datetime(2030, 1, 7, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
LEASE = timedelta(seconds=15)
AWAY = OperationalError("SELECT 1", {}, ConnectionError("connection refused\nis it running?"))


def a_loop(name: str = "manager", **state: Any) -> LoopState:
    return LoopState(name, NOW, **state)


def reasons(*loops: LoopState, renewed_at: datetime = NOW) -> list[str]:
    return diagnose(loops, renewed_at, LEASE).reasons


def failing(name: str, failures: int, error: Exception) -> LoopState:
    return a_loop(name, failing_since=NOW - SECOND, failures=failures, error=error)


def test_loops_that_rest_or_work_are_green() -> None:
    assert reasons(a_loop(), a_loop("pulse", busy_since=NOW - SECOND)) == []


def test_a_pulse_that_does_not_get_through_means_that_the_database_is_away() -> None:
    assert reasons(failing("pulse", 1, AWAY), failing("manager", 7, AWAY)) == [
        "the database does not answer since 2030-01-07 11:59:59 UTC: connection refused"
    ]


def test_a_loop_that_fails_once_is_no_trouble_but_one_that_goes_on_failing_is() -> None:
    broken = ValueError("no such column")
    assert reasons(failing("manager", 2, broken)) == []
    assert reasons(failing("manager", 3, broken)) == [
        "the manager fails again and again since 2030-01-07 11:59:59 UTC: no such column"
    ]


def test_a_database_that_is_away_is_no_trouble_of_the_loops_that_fail_for_it() -> None:
    """Each that fails for another reason is one."""
    assert reasons(failing("manager", 3, AWAY)) == []
    found = reasons(failing("pulse", 1, AWAY), failing("manager", 3, ValueError("no")))
    assert found[1:] == ["the manager fails again and again since 2030-01-07 11:59:59 UTC: no"]


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (DatabaseUnavailable("the file is damaged"), "the database cannot be used"),
        (DatabaseOutage("the file is damaged"), "the database does not answer"),
    ],
)
def test_a_database_that_answers_but_cannot_be_used_is_told_as_that(
    error: Exception, what: str
) -> None:
    assert reasons(failing("pulse", 1, error)) == [
        f"{what} since 2030-01-07 11:59:59 UTC: the file is damaged"
    ]


def test_an_error_without_words_is_told_by_its_kind() -> None:
    assert reasons(failing("manager", 3, KeyError()))[0].endswith("UTC: KeyError")


def test_what_a_step_suffered_from_counts() -> None:
    step = StepFailed("load")
    step.__cause__ = AWAY
    assert len(reasons(failing("pulse", 1, step))) == 1


def test_a_pass_that_does_not_end_is_no_progress() -> None:
    assert reasons(a_loop(busy_since=NOW - NO_PROGRESS)) == []
    assert reasons(a_loop(busy_since=NOW - NO_PROGRESS - SECOND)) == [
        "the manager makes no progress since 2030-01-07 11:59:29 UTC"
    ]


def test_a_lease_that_was_not_renewed_in_time_is_over() -> None:
    assert reasons(a_loop(), renewed_at=NOW - LEASE) == []
    assert reasons(a_loop(), renewed_at=NOW - LEASE - SECOND) == [
        "the lease is over since 2030-01-07 11:59:59 UTC: nothing new is started"
    ]


def test_a_change_is_told_once() -> None:
    away = Trouble("the database does not answer", NOW, "connection refused")
    over = Trouble("the lease is over", NOW)
    course = [(), (away,), (away,), (away, over), (over,), (), ()]
    observer = Observer()
    seen = Recorder(observer)
    healths = iter([Health(troubles) for troubles in course])
    watch = HealthWatch(lambda: next(healths), observer)
    for _ in course:
        watch.look()

    assert [event.name for event in seen.events] == [
        "service.unhealthy",
        "service.unhealthy",
        "service.healthy",
    ]
    assert seen.events[1].fields["reasons"] == [str(away), str(over)]


AWAY_SINCE = Trouble("the database does not answer", NOW, "connection refused")
REPORTED = Trouble("the database file was deleted", NOW, reported=True)


def looks(*course: tuple[Trouble, ...]) -> list[Event]:
    """What was told in this course of troubles."""
    observer = Observer()
    seen = Recorder(observer)
    healths = iter([Health(troubles) for troubles in course])
    watch = HealthWatch(lambda: next(healths), observer)
    for _ in course:
        watch.look()
    return seen.events


def test_what_has_an_event_of_its_own_is_not_told_again() -> None:
    assert looks((REPORTED,), ()) == []


def test_a_process_is_not_healthy_again_before_all_its_troubles_are_over() -> None:
    told = looks((AWAY_SINCE,), (REPORTED,), (AWAY_SINCE,), ())
    assert [one.name for one in told] == [
        "service.unhealthy",
        "service.unhealthy",
        "service.healthy",
    ]


def test_how_long_it_was_unhealthy_counts_from_the_first_trouble(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = NOW

    class Moments(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return now

    monkeypatch.setattr(health, "datetime", Moments)
    over = Trouble("the lease is over", NOW)
    course = iter([(AWAY_SINCE,), (AWAY_SINCE, over), ()])
    observer = Observer()
    seen = Recorder(observer)
    watch = HealthWatch(lambda: Health(next(course)), observer)
    for _ in range(3):
        watch.look()
        now += SECOND
    [healthy] = seen.named("service.healthy")
    assert healthy.fields == {"seconds": 2.0}


def test_a_watch_looks_by_itself_until_it_is_stopped() -> None:
    looked = threading.Event()

    def look() -> Health:
        looked.set()
        return Health()

    watch = HealthWatch(look, Observer())
    watch.start()
    assert looked.wait(PATIENCE)
    watch.stop()


def test_a_loop_knows_since_when_it_fails() -> None:
    def fail_twice() -> float:
        if loop.state().failures < 2:
            raise ValueError("no")
        return 60.0

    loop = Loop("manager", fail_twice, Observer())
    loop._pass()
    first = loop.state()
    loop._pass()
    second = loop.state()
    loop._pass()

    assert (first.failures, str(first.error), first.busy_since) == (1, "no", None)
    assert (second.failures, second.failing_since) == (2, first.failing_since)
    last = loop.state()
    assert (last.failures, last.error, last.failing_since) == (0, None, None)


def test_a_loop_knows_since_when_a_pass_is_under_way() -> None:
    seen: list[LoopState] = []

    def look() -> float:
        seen.append(loop.state())
        return 60.0

    loop = Loop("manager", look, Observer())
    before = datetime.now(UTC)
    loop._pass()

    assert seen[0].busy_since is not None
    assert before <= seen[0].busy_since <= datetime.now(UTC)
    assert loop.state().busy_since is None
