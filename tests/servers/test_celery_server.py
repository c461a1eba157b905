"""The connection to a broker: kept while messages go through, opened anew after one did not."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from celery import Celery

from headway.celery import CeleryServer
from headway.errors import DefinitionError


def in_memory() -> Celery:
    """An application whose broker is this process."""
    return Celery("warehouse", broker="memory://")


def test_a_message_says_which_execution_and_goes_where_it_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app, sent = in_memory(), list[tuple[Any, ...]]()

    def send_task(*arguments: object, producer: object, **options: object) -> None:
        sent.append((arguments, options))

    monkeypatch.setattr(app, "send_task", send_task)
    always = {
        "args": [7],
        "task_id": "headway-7",
        "serializer": "json",
        "compression": None,
        "ignore_result": True,
        "retry": False,
    }
    chosen: dict[str, Any] = {"queue": "urgent", "exchange": "e", "routing_key": "r", "priority": 0}
    for options in ({}, chosen):
        with closing(CeleryServer(app, **options)) as server:
            server.publish(7)
    assert sent == [(("headway.run",), always), (("headway.run",), always | chosen)]


def test_a_message_is_with_the_broker_when_the_call_returns() -> None:
    app, queue = in_memory(), f"messages-{uuid.uuid4().hex}"
    with closing(CeleryServer(app, queue=queue, priority=9)) as server:
        server.publish(7)
    with app.connection_for_read() as connection, closing(connection.SimpleQueue(queue)) as left:
        message = left.get(timeout=1)
        message.ack()
    positional, named, _ = message.decode()
    assert (positional, named) == ([7], {})
    assert (message.headers["task"], message.headers["id"]) == ("headway.run", "headway-7")
    assert (message.content_type, message.properties["priority"]) == ("application/json", 9)


@pytest.mark.parametrize("end", [CeleryServer.close, CeleryServer.reach])
def test_who_closes_or_asks_for_the_broker_lets_go_of_the_connection_before(
    monkeypatch: pytest.MonkeyPatch, end: Callable[[CeleryServer], None]
) -> None:
    app, opened = in_memory(), list[Any]()
    connect = app.connection_for_write

    def connection_for_write(**options: Any) -> Any:
        connection = connect(**options)
        if options:  # Celery itself opens none with options
            opened.append(connection)
        return connection

    monkeypatch.setattr(app, "connection_for_write", connection_for_write)
    with closing(CeleryServer(app, queue=f"messages-{uuid.uuid4().hex}")) as server:
        server.publish(1)
        server.publish(2)
        assert len(opened) == 1 and opened[0].connected
        end(server)
        assert not opened[0].connected
        server.publish(3)
        assert len(opened) == 2 and opened[1].connected
    assert not opened[1].connected


@pytest.mark.parametrize("priority", [-1, 256, 1.5, "9"])
def test_a_priority_no_broker_has_is_refused(priority: Any) -> None:
    with pytest.raises(DefinitionError) as refused:
        CeleryServer(in_memory(), priority=priority)
    assert str(refused.value) == (
        f"CeleryServer: priority = {priority!r}: must be a whole number from 0 to 255 as your "
        "broker understands it; for example priority=9"
    )


def test_the_least_and_the_greatest_priority_are_accepted() -> None:
    for priority in (0, 255):
        CeleryServer(in_memory(), priority=priority).close()


def test_what_is_no_application_of_celery_is_refused() -> None:
    wrong: Any = "redis://localhost"
    with pytest.raises(DefinitionError, match="takes your Celery application; for example"):
        CeleryServer(wrong)


def test_a_connection_by_which_a_message_failed_is_not_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = Celery("warehouse", broker="memory://")
    producers: list[Any] = []
    failing: list[Exception] = []

    def send_task(*_arguments: object, producer: Any, **_options: object) -> None:
        producers.append(producer)
        if failing:
            raise failing.pop()

    monkeypatch.setattr(app, "send_task", send_task)
    with closing(CeleryServer(app)) as server:
        server.publish(1)
        server.publish(2)
        failing.append(ConnectionResetError("the broker restarts"))
        with pytest.raises(ConnectionResetError):
            server.publish(3)
        server.publish(3)

    first, second, third, again = producers
    assert first is second is third
    assert again is not first
