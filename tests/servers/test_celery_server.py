"""The connection to a broker: kept while messages go through, opened anew after one did not."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from celery import Celery

from headway.celery import CeleryServer


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
