"""The observation seam: everybody hears everything, and a failing subscriber stops nobody."""

import logging

import pytest

from headway.observe import Event, Observer
from tests.builders import Recorder


def test_every_subscriber_hears_every_event_in_order() -> None:
    observer = Observer()
    first, second = Recorder(observer), Recorder(observer)

    observer.emit("manager.cycle", queued=3)
    observer.emit("dispatcher.cycle", dispatched=2)

    expected = [Event("manager.cycle", {"queued": 3}), Event("dispatcher.cycle", {"dispatched": 2})]
    assert first.events == second.events == expected


def test_a_failing_subscriber_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    observer = Observer()

    def fail(event: Event) -> None:
        raise RuntimeError("broken exporter")

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
        ("execution.failed", logging.WARNING),
        ("manifest.dead_lettered", logging.WARNING),
        ("loop.failed", logging.ERROR),
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
