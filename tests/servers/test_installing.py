"""What ``install`` makes of a Celery application, and what its workers' signals open and close."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
from celery import Celery, signals
from celery.concurrency.prefork import TaskPool as Prefork

from headway import Headway
from headway.celery import install
from headway.errors import DefinitionError
from headway.history import History
from headway.store.engine import Store
from headway.store.migrate import migrate
from tests.builders import Recorder, eventually


@pytest.fixture
def app() -> Celery:
    return Celery("warehouse", broker="memory://")


SIGNALS = (
    signals.worker_init,
    signals.worker_process_init,
    signals.worker_ready,
    signals.worker_process_shutdown,
    signals.worker_shutdown,
)


@pytest.fixture
def own_signals() -> Iterator[None]:
    """What is installed elsewhere hears nothing of a test here, and the other way round."""
    before = [one.receivers for one in SIGNALS]
    for one in SIGNALS:
        one.receivers = []
    yield
    for one, receivers in zip(SIGNALS, before, strict=True):
        one.receivers = receivers


@pytest.fixture
def hw(sqlite_url: str, own_signals: None) -> Iterator[Headway]:
    with closing(Store(sqlite_url)) as store:
        migrate(store)
    hw = Headway("warehouse", database_url=sqlite_url)
    yield hw
    signals.worker_shutdown.send(sender=None)
    hw.runtime.store.close()


def living(hw: Headway) -> int:
    """How many processes have a lease."""
    return len(History(hw.runtime.store).servers.all())


def opening() -> int:
    """How many processes are about to have one."""
    return sum(one.name == "headway-open" for one in threading.enumerate())


@dataclass(eq=False)
class Worker:
    """What sends the signals of a worker."""

    app: Celery
    pool: object = None


@dataclass
class Threads:
    is_green: bool = False


def test_the_one_task_is_acknowledged_late_and_keeps_no_result(app: Celery, hw: Headway) -> None:
    install(app, hw)
    task = app.tasks["headway.run"]
    told = (task.ignore_result, task.acks_late, task.reject_on_worker_lost, task.serializer)
    assert told == (True, True, True, "json")
    assert app.conf.worker_consumer == "headway.celery.consuming:Consumer"


@pytest.mark.parametrize("wrong", ["app", "headway"])
def test_it_takes_an_application_of_each_kind(app: Celery, hw: Headway, wrong: str) -> None:
    none: Any = None
    with pytest.raises(DefinitionError, match=r"takes your Celery application and your Headway"):
        install(none if wrong == "app" else app, none if wrong == "headway" else hw)


def test_messages_that_could_name_code_are_refused(app: Celery, hw: Headway) -> None:
    app.conf.accept_content = ["json", "pickle"]
    with pytest.raises(DefinitionError, match=r"accept_content = \['json', 'pickle'\]: must be"):
        install(app, hw)
    assert app.conf.worker_consumer == "celery.worker.consumer:Consumer", "nothing is installed"
    app.conf.accept_content = ["application/json"]
    install(app, hw)


def test_a_worker_that_would_take_them_since_does_not_start(
    app: Celery, hw: Headway, caplog: pytest.LogCaptureFixture
) -> None:
    install(app, hw)
    app.conf.accept_content = ["pickle"]
    signals.worker_init.send(sender=Worker(Celery("another")))
    with pytest.raises(SystemExit) as ended:
        signals.worker_init.send(sender=Worker(app))
    assert ended.value.code == 1
    assert [one.levelname for one in caplog.records] == ["CRITICAL"]


def test_a_process_of_its_pool_opens_and_closes_with_its_signals(app: Celery, hw: Headway) -> None:
    install(app, hw)
    signals.worker_process_init.send(sender=None)
    signals.worker_ready.send(sender=Worker(Celery("another")))
    signals.worker_init.send(sender=Worker(app))
    signals.worker_ready.send(sender=Worker(app, Prefork(1)))
    assert (opening(), living(hw)) == (0, 0), "not in the main process of a prefork pool"
    signals.worker_process_init.send(sender=None)
    eventually(lambda: living(hw) == 1)
    signals.worker_process_shutdown.send(sender=None)
    assert living(hw) == 0


def test_a_pool_of_threads_opens_when_the_worker_is_ready(app: Celery, hw: Headway) -> None:
    install(app, hw)
    signals.worker_init.send(sender=Worker(app))
    signals.worker_ready.send(sender=Worker(app, Threads()))
    eventually(lambda: living(hw) == 1)
    signals.worker_shutdown.send(sender=Worker(app))
    assert living(hw) == 0


def test_two_applications_in_one_process_have_tasks_of_their_own(app: Celery, hw: Headway) -> None:
    other_app, other = Celery("shop", broker="memory://"), Headway("shop", database_url="sqlite://")
    events, other_events = Recorder(hw.observer), Recorder(other.observer)
    install(app, hw)
    install(other_app, other)
    app.tasks["headway.run"]("no id")
    assert len(events.named("delivery.refused")) == 1
    assert other_events.events == []
