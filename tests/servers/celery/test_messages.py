"""What is sent to a broker, read there; and a broker that does not say whether it has it."""

from __future__ import annotations

import gc
import socket
import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from celery import Celery
from redis.exceptions import TimeoutError as RedisTimeout

from headway.celery import CeleryServer
from headway.servers import celery
from tests.brokers import Broker
from tests.builders import PATIENCE

UNANSWERED = (OSError, RedisTimeout)


def sent(broker: Broker, **options: Any) -> Any:
    """The message of execution 7, as it lies in the broker."""
    queue = f"messages-{uuid.uuid4().hex}"
    app = Celery("reader", broker=broker.url)
    with closing(CeleryServer(app, queue=queue, **options)) as server:
        server.publish(7)
    with app.connection_for_read() as connection:
        return connection.SimpleQueue(queue, no_ack=True).get(timeout=PATIENCE)


@pytest.mark.gate
def test_a_message_says_nothing_but_an_id_and_that_in_json(broker: Broker) -> None:
    message = sent(broker)
    positional, named, _ = message.decode()
    assert (positional, named) == ([7], {})
    assert (message.content_type, message.headers["task"]) == ("application/json", "headway.run")


def test_a_priority_reaches_the_broker(broker: Broker) -> None:
    assert sent(broker, priority=5).properties["priority"] == 5


@pytest.fixture
def silent_broker() -> Iterator[int]:
    """The port of somebody who takes every connection and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


# Their libraries leave the socket of a connection that never came about to the collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", ["redis", "amqp"])
def test_a_broker_that_never_answers_counts_as_away(
    silent_broker: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(celery, "PATIENCE", 0.2)
    monkeypatch.setattr(
        celery,
        "CAREFULLY",
        {
            driver: {
                name: 0.2 if name.endswith("timeout") else value for name, value in how.items()
            }
            for driver, how in celery.CAREFULLY.items()
        },
    )
    server = CeleryServer(Celery("unheard", broker=f"{kind}://127.0.0.1:{silent_broker}/"))
    with pytest.raises(UNANSWERED):
        server.reach()
    with pytest.raises(UNANSWERED):
        server.publish(7)
    gc.collect()
