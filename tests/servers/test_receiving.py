"""What a Celery worker does with messages, without a broker: nothing here is sent."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from headway import Headway
from headway.celery import receiving
from headway.celery.receiving import Receiver
from headway.domain.execution import ExecutionState
from headway.history import History
from headway.store import dispatching
from headway.store.engine import Store
from headway.store.migrate import migrate
from tests.builders import PATIENCE, Recorder, eventually


def train(model: str) -> None: ...


@pytest.fixture
def hw(database_url: str) -> Headway:
    with closing(Store(database_url)) as store:
        migrate(store)
    hw = Headway("shop", database_url=database_url)

    @hw.workflow
    def load(table: str) -> None: ...

    hw.workflow(isolated=True)(train)
    return hw


@pytest.fixture
def receiver(hw: Headway) -> Iterator[Receiver]:
    receiver = Receiver(hw)
    yield receiver
    receiver.close()
    hw.runtime.store.close()


def sent(hw: Headway, workflow: str = "load") -> int:
    """The id of an execution that was sent to Celery."""
    entry = hw.enqueue(workflow, "users")
    with hw.runtime.store.writing() as tx:
        return dispatching.dispatch(tx, [entry], {entry: "celery"})[entry]


def living(hw: Headway) -> int:
    """How many processes have a lease."""
    return len(History(hw.runtime.store).servers.all())


def test_the_execution_a_message_names_is_run_and_only_once(
    hw: Headway, receiver: Receiver
) -> None:
    events = Recorder(hw.observer)
    first, second = sent(hw), sent(hw)
    assert receiver.receive(first) is ExecutionState.COMPLETED
    assert receiver.receive(first) is None
    assert receiver.receive(second) is ExecutionState.COMPLETED
    assert [one.fields for one in events.named("delivery.ignored")] == [{"execution_id": first}]
    assert living(hw) == 1, "both in one process"


@pytest.mark.parametrize(
    ("arguments", "named", "told"),
    [
        ((), {}, "()"),
        (("7",), {}, "('7',)"),
        ((True,), {}, "(True,)"),
        ((0,), {}, "(0,)"),
        ((-1,), {}, "(-1,)"),
        ((2**63,), {}, f"({2**63},)"),
        ((7, 8), {}, "(7, 8)"),
        ((7,), {"workflow": "os.system"}, "{'workflow': 'os.system'}"),
    ],
)
def test_whatever_else_a_message_says_is_refused(
    hw: Headway,
    receiver: Receiver,
    arguments: tuple[Any, ...],
    named: dict[str, Any],
    told: str,
) -> None:
    events = Recorder(hw.observer)
    assert receiver.receive(*arguments, **named) is None
    assert [(one.name, one.fields) for one in events.events] == [
        ("delivery.refused", {"told": told})
    ]


def test_the_greatest_id_there_can_be_is_looked_for(hw: Headway, receiver: Receiver) -> None:
    events = Recorder(hw.observer)
    assert receiver.receive(2**63 - 1) is None
    assert events.named("delivery.ignored", execution_id=2**63 - 1)
    assert not events.named("delivery.refused")


def test_a_worker_is_there_before_the_first_message_and_gone_after_the_last(
    hw: Headway, receiver: Receiver
) -> None:
    receiver.open_soon(forked=False)
    eventually(lambda: living(hw) == 1)
    receiver.close()
    assert living(hw) == 0
    events = Recorder(hw.observer)
    waiting = sent(hw)
    assert receiver.receive(waiting) is None
    [failed] = events.named("loop.failed")
    assert "this Celery worker stops and runs nothing more" in str(failed.fields["error"])
    assert living(hw) == 0


def test_greenlets_send_isolated_runs_back_and_say_so(
    hw: Headway, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.open_soon(forked=False, green=True)
    eventually(lambda: living(hw) == 1)
    [warned] = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert warned.startswith("workflow 'train': isolated = True: a pool of greenlets cannot")
    assert receiver.receive(sent(hw, "train")) is ExecutionState.HANDED_BACK
    assert receiver.receive(sent(hw)) is ExecutionState.COMPLETED
    states = {one.workflow: one.state for one in History(hw.runtime.store).executions.all()}
    assert states == {"train": ExecutionState.HANDED_BACK, "load": ExecutionState.COMPLETED}


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
