"""What headway's consumer does otherwise than Celery's, without a broker: Celery's part is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from celery.worker.consumer import Consumer as Celerys

from headway.celery.consuming import Consumer


def broken(*_arguments: object) -> None:
    raise ConnectionResetError("the broker is gone")


@dataclass
class Connection:
    """A connection to a broker that is gone."""

    asked: list[dict[str, Any]] = field(default_factory=list)
    close: Callable[[], None] = broken

    def ensure_connection(self, **how: Any) -> None:
        self.asked.append(how)


@dataclass
class Channel:
    connection: object


@dataclass
class Message:
    channel: Channel | None
    ack: Callable[..., None] = broken
    reject: Callable[..., None] = broken


@pytest.fixture
def consumer() -> Any:
    made = Consumer.__new__(Consumer)
    made.connection = Connection()
    return made


def test_the_broker_is_asked_for_every_few_seconds(
    consumer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ensure_connected(_self: object, connection: Connection) -> str:
        connection.ensure_connection(max_retries=3)
        return "connected"

    monkeypatch.setattr(Celerys, "ensure_connected", ensure_connected)
    connection = Connection()
    assert consumer.ensure_connected(connection) == "connected"
    pauses = {"interval_start": 0.5, "interval_step": 0.5, "interval_max": 4.0}
    assert connection.asked == [{"max_retries": 3} | pauses]


def test_a_lost_connection_that_cannot_be_closed_does_not_end_the_worker(
    consumer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost: list[BaseException] = []

    def on_connection_error(self: Any, error: BaseException) -> None:
        self.connection.close()
        lost.append(error)

    monkeypatch.setattr(Celerys, "on_connection_error_after_connected", on_connection_error)
    error = ConnectionResetError("the broker is gone")
    consumer.on_connection_error_after_connected(error)
    assert lost == [error]


def received(consumer: Any, message: Message, monkeypatch: pytest.MonkeyPatch) -> Message:
    """The message as Celery gets it to handle."""
    handled: list[Message] = []

    def create_task_handler(_self: object) -> Callable[[Message], None]:
        return handled.append

    monkeypatch.setattr(Celerys, "create_task_handler", create_task_handler)
    consumer.create_task_handler()(message)
    [one] = handled
    return one


@pytest.mark.parametrize("act", ["ack", "reject"])
def test_what_cannot_be_acknowledged_on_a_living_connection_is_an_error(
    consumer: Any, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    message = received(consumer, Message(Channel(consumer.connection)), monkeypatch)
    with pytest.raises(ConnectionResetError):
        getattr(message, act)()


@pytest.mark.parametrize("act", ["ack", "reject"])
@pytest.mark.parametrize("how", ["another connection", "no channel", "a closed channel"])
def test_what_cannot_be_acknowledged_on_a_lost_connection_is_let_go(
    consumer: Any, monkeypatch: pytest.MonkeyPatch, how: str, act: str
) -> None:
    channels = {"no channel": None, "a closed channel": Channel(None)}
    channel = channels.get(how, Channel(consumer.connection))
    message = received(consumer, Message(channel), monkeypatch)
    if how == "another connection":
        consumer.connection = Connection()
    getattr(message, act)()


def test_what_can_be_acknowledged_is(consumer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[object, ...]] = []

    def note(*arguments: object) -> None:
        done.append(arguments)

    message = received(consumer, Message(Channel(consumer.connection), note, note), monkeypatch)
    message.ack("multiple")
    message.reject("requeue")
    assert done == [("multiple",), ("requeue",)]
