"""The observation seam: everybody hears everything, and a failing subscriber stops nobody."""

import logging

import pytest
from sqlalchemy.exc import OperationalError

from headway.errors import DatabaseLost, StepFailed
from headway.observe import KEPT_EACH, Event, Observer, StepTimes, told
from tests.builders import Recorder


def test_every_subscriber_hears_every_event_in_order() -> None:
    observer = Observer()
    first, second = Recorder(observer), Recorder(observer)

    observer.emit("manager.cycle", queued=3)
    observer.emit("dispatcher.cycle", dispatched=2)

    expected = [Event("manager.cycle", {"queued": 3}), Event("dispatcher.cycle", {"dispatched": 2})]
    assert first.events == second.events == expected


@pytest.mark.parametrize("error", [RuntimeError("broken exporter"), SystemExit(1)])
def test_a_failing_subscriber_stops_nobody(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    observer = Observer()

    def fail(event: Event) -> None:
        raise error

    observer.subscribe(fail)
    heard = Recorder(observer)

    observer.emit("manager.cycle")

    assert len(heard.events) == 1
    [record] = caplog.records
    assert record.message == "a subscriber failed on manager.cycle"
    assert record.exc_info is not None


def test_a_subscriber_may_subscribe_another() -> None:
    observer = Observer()
    late: list[Event] = []
    observer.subscribe(lambda event: observer.subscribe(late.append))

    observer.emit("first")
    assert late == []
    observer.emit("second")

    assert [event.name for event in late] == ["second"]


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("execution.completed", logging.DEBUG),
        ("manager.cycle", logging.DEBUG),
        ("execution.failed", logging.WARNING),
        ("execution.refused", logging.WARNING),
        ("execution.stuck", logging.WARNING),
        ("server.buried", logging.WARNING),
        ("server.cut_off", logging.WARNING),
        ("server.dead", logging.WARNING),
        ("server.late", logging.WARNING),
        ("manifest.dead_lettered", logging.WARNING),
        ("manifest.refused", logging.WARNING),
        ("declaration.outdated", logging.WARNING),
        ("declaration.kept_back", logging.WARNING),
        ("declaration.waiting", logging.WARNING),
        ("queue.stranded", logging.WARNING),
        ("workflow.unimportable", logging.WARNING),
        ("database.waiting", logging.WARNING),
        ("delivery.ignored", logging.INFO),
        ("delivery.refused", logging.WARNING),
        ("relay.unclaimed", logging.WARNING),
        ("task_server.away", logging.WARNING),
        ("task_server.back", logging.WARNING),
        ("azolla.claim_lost", logging.WARNING),
        ("azolla.failed", logging.WARNING),
        ("azolla.given_up", logging.WARNING),
        ("azolla.parked", logging.WARNING),
        ("membrane.refused", logging.INFO),
        ("membrane.unavailable", logging.WARNING),
        ("registry.refused", logging.WARNING),
        ("worker.abandoned", logging.WARNING),
        ("loop.failed", logging.ERROR),
        ("service.unhealthy", logging.ERROR),
        ("service.worn_out", logging.ERROR),
        ("service.database_lost", logging.ERROR),
        ("service.healthy", logging.WARNING),
        ("service.pooled", logging.INFO),
    ],
)
def test_events_are_log_lines(name: str, level: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "headway")

    Observer().emit(name, external_id="load-users", count=2)

    [record] = caplog.records
    assert (record.name, record.levelno) == ("headway", level)
    assert record.message == f"{name} external_id='load-users' count=2"


def test_what_nobody_logs_is_not_even_formatted(caplog: pytest.LogCaptureFixture) -> None:
    class Loud:
        def __repr__(self) -> str:
            raise AssertionError("formatted")

    caplog.set_level(logging.WARNING, "headway")
    Observer().emit("manager.cycle", value=Loud())

    assert caplog.records == []


class DriverError(Exception):
    """What psycopg or sqlite3 raise: with a code of their own, or without."""

    def __init__(self, message: str, **codes: str) -> None:
        super().__init__(message)
        vars(self).update(codes)


@pytest.mark.parametrize(
    ("driver", "code"),
    [
        (DriverError("terminating connection", sqlstate="57P01"), "57P01"),
        (DriverError("malformed", sqlite_errorname="SQLITE_CORRUPT_INDEX"), "SQLITE_CORRUPT"),
        (DriverError("connection refused\nis it running?"), "connection refused"),
    ],
)
@pytest.mark.parametrize("in_a_step", [False, True])
def test_a_loop_that_fails_tells_the_code_of_the_database(
    driver: Exception, code: str, in_a_step: bool
) -> None:
    error: Exception = OperationalError("SELECT 1", {}, driver)
    if in_a_step:
        step = StepFailed("load")
        step.__cause__ = error
        error = step
    observer = Observer()
    seen = Recorder(observer)

    observer.loop_failed("manager", error)

    expected = {"loop": "manager", "error": told(error), "database": code}
    assert seen.events == [Event("loop.failed", expected)]


def test_a_loop_that_fails_for_another_reason_has_no_code_of_the_database() -> None:
    observer = Observer()
    seen = Recorder(observer)
    try:
        try:
            raise OperationalError("SELECT 1", {}, DriverError("gone"))
        except OperationalError:
            raise ValueError("no rows") from None
    except ValueError as error:
        observer.loop_failed("manager", error)

    expected = {"loop": "manager", "error": "ValueError: no rows", "database": None}
    assert seen.events == [Event("loop.failed", expected)]


def test_each_lost_database_is_reported_once_whatever_fails_for_it() -> None:
    one, other = DatabaseLost("a.db", "a.db", "deleted"), DatabaseLost("b.db", "b.db", "deleted")
    step = StepFailed("load")
    step.__cause__ = one
    observer = Observer()
    seen = Recorder(observer)

    observer.loop_failed("manager", step)
    observer.loop_failed("worker", one)
    observer.database_lost(one)
    observer.database_lost(other)

    assert seen.events == [
        Event("service.database_lost", {"error": str(one)}),
        Event("service.database_lost", {"error": str(other)}),
    ]


def raised_from(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError(), "ValueError: "),
        (ValueError("no rows\nat all"), "ValueError: no rows"),
        (
            OperationalError("SELECT 1", {}, DriverError("gone")),
            "OperationalError: gone",
        ),
        (
            raised_from(StepFailed("load"), ValueError("no rows")),
            "StepFailed: step 'load' failed: ValueError: no rows",
        ),
        (
            raised_from(RuntimeError("could not load: no rows"), ValueError("no rows")),
            "RuntimeError: could not load: no rows",
        ),
        (
            raised_from(
                RuntimeError("could not load: no rows"),
                raised_from(ValueError("no rows"), KeyError("users")),
            ),
            "RuntimeError: could not load: no rows: KeyError: 'users'",
        ),
    ],
)
def test_an_error_is_told_in_one_line_with_the_causes_it_does_not_quote(
    error: Exception, line: str
) -> None:
    assert told(error) == line


def test_the_last_cycles_are_kept_although_nobody_listens(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "headway")
    observer = Observer()
    for number in range(KEPT_EACH + 2):
        observer.emit("manager.cycle", queued=number)
    observer.emit("dispatcher.cycle", dispatched=7)
    observer.emit("service.pulse")

    kept = [one.fields["queued"] for one in observer.recent("manager.cycle")]
    assert kept == list(range(2, KEPT_EACH + 2))
    assert observer.recent("dispatcher.cycle") == [Event("dispatcher.cycle", {"dispatched": 7})]
    assert observer.recent("service.pulse") == []
    assert (observer.wants("service.pulse"), observer.wants("manager.cycle")) == (False, True)


def test_each_step_is_timed_from_its_start_to_the_start_of_the_next() -> None:
    times = StepTimes()
    times("load")
    before = dict(times.seconds)
    times("decide")
    between = dict(times.seconds)
    times.stop()

    assert (before, list(between)) == ({}, ["load"])
    assert list(times.seconds) == ["load", "decide"]
    assert times.seconds["load"] == between["load"] > 0
