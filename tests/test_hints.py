"""Hints: what is announced reaches the loops of a process, and what is lost disturbs nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from headway import hints
from headway.observe import Observer
from headway.store import notifications
from headway.store.bells import ring
from headway.store.engine import Store
from headway.store.notifications import Heard
from headway.wakeups import Role, WakeUps
from tests.builders import Recorder

MANAGER, DISPATCHER, WORKER = Role
LINE: Any = object()


class Process:
    """The loops of one process: which of them were woken, and in which order."""

    def __init__(self) -> None:
        self.woken: list[Role] = []
        self.wakeups = WakeUps()
        for role in Role:
            self.wakeups.on(role, partial(self.woken.append, role))

    def take(self) -> set[Role]:
        woken = set(self.woken)
        self.woken.clear()
        return woken


@pytest.fixture
def process() -> Process:
    return Process()


@pytest.fixture
def store(sqlite_url: str) -> Iterator[Store]:
    store = Store(sqlite_url)
    yield store
    store.close()


def test_on_sqlite_each_topic_wakes_its_role_until_nobody_listens(
    process: Process, store: Store
) -> None:
    stop = hints.listen_here(store, process.wakeups)
    ring(store.url, "dispatcher")
    assert process.take() == {DISPATCHER}
    ring(store.url, notifications.EVERYBODY)
    assert process.take() == set(Role)
    stop()
    ring(store.url, "dispatcher")
    assert process.take() == set()


class Listening:
    """What is heard through one connection, each time the process listens on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *heard: Sequence[str]) -> None:
        self._heard = heard
        self.asked: list[tuple[Any, ...]] = []
        self.closed = False
        monkeypatch.setattr(notifications, "listen", self._listen)

    def _listen(self, *arguments: Any) -> Iterator[Heard]:
        self.asked.append(arguments)
        with self._open():
            for topics in self._heard:
                yield Heard(frozenset(topics), LINE)

    @contextmanager
    def _open(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.closed = True


def listened(
    process: Process,
    store: Store,
    start_all: Callable[[Any], bool],
    stop_after: int = 99,
) -> tuple[list[set[Role]], float, Recorder]:
    """Whom each look has woken, how long to wait afterwards, and what was told."""
    woken: list[set[Role]] = []
    observer = Observer()
    events = Recorder(observer)

    def stopping() -> bool:
        woken.append(process.take())
        return len(woken) > stop_after

    pause = hints.listen(store, process.wakeups, observer, stopping, "me", start_all)
    assert process.take() == set(), "nobody is woken for what came when it was to stop"
    return woken[1:], pause, events


def test_the_first_look_is_for_everybody_and_each_further_one_for_whom_it_concerns(
    process: Process, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was announced before this connection listened was heard by nobody."""
    listening = Listening(monkeypatch, [], ["worker"], ["manager", "dispatcher"], [""], [], [])
    woken, pause, events = listened(process, store, lambda line: True, stop_after=5)
    assert woken == [set(Role), {WORKER}, {MANAGER, DISPATCHER}, set(Role), set()]
    assert (pause, events.events) == (0.0, [])
    assert listening.asked == [(store, hints.LISTEN_PULSE, "me")]


@pytest.mark.parametrize("started", [True, False])
def test_what_is_only_to_be_dispatched_is_started_at_once_if_that_can_be(
    process: Process, store: Store, monkeypatch: pytest.MonkeyPatch, started: bool
) -> None:
    Listening(monkeypatch, [], ["dispatcher"], ["dispatcher", "worker"], [])
    lines: list[Any] = []

    def start_all(line: Any) -> bool:
        lines.append(line)
        return started

    woken, _, _ = listened(process, store, start_all, stop_after=3)
    assert lines == [LINE], "only for what nobody else is concerned with"
    assert woken == [set(Role), set() if started else {DISPATCHER}, {DISPATCHER, WORKER}]


def test_behind_a_pooler_nothing_is_heard_and_that_is_said(
    process: Process, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    Listening(monkeypatch)
    woken, pause, events = listened(process, store, lambda line: True)
    assert (woken, pause) == ([], 3600.0)
    [told] = events.events
    assert (told.name, list(told.fields)) == ("service.pooled", ["advice"])
    assert "a pooler between this process and PostgreSQL" in told.fields["advice"]


def test_an_announcement_that_is_lost_is_told_and_ends_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*arguments: object) -> None:
        asked.append(arguments)
        raise OperationalError("NOTIFY", {}, Exception("gone"))

    asked: list[tuple[object, ...]] = []
    monkeypatch.setattr(notifications, "notify", away)
    observer = Observer()
    events = Recorder(observer)

    hints.announcing(store, observer, "me")([WORKER])

    assert asked == [(store, [WORKER], "me")]
    [told] = events.events
    assert (told.name, told.fields) == (
        "loop.failed",
        {"loop": "notify", "error": "OperationalError: gone"},
    )
