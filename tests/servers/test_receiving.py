"""What a Celery worker does with messages, without a broker: nothing here is sent."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from headway import Headway
from headway.celery import receiving
from headway.celery.receiving import Receiver
from tests.builders import PATIENCE, Recorder


def test_a_worker_that_stops_waits_no_longer_for_its_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiving, "PATIENCE", 100 * PATIENCE)
    hw = Headway("shop", database_url=f"sqlite:///{tmp_path}/not/there/headway.db")
    events = Recorder(hw.observer)
    receiver, answers = Receiver(hw), list[object]()

    def receive() -> None:
        answers.append(receiver.receive(7))

    worker = threading.Thread(target=receive, daemon=True)
    worker.start()
    events.wait_for("loop.failed", loop="celery")
    receiver.close()
    worker.join(PATIENCE)

    assert answers == [None], "the message is sent again when its lease is over"
    assert events.named("delivery.ignored")[0].fields == {"execution_id": 7}
