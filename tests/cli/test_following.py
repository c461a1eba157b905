"""Following executions: a line for each thing that happens, and none twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from headway.cli import following
from headway.domain.views import ExecutionFilter
from headway.history import History
from headway.store import executions
from headway.store.engine import Store
from tests.databases import sqlite_url
from tests.store.factories import FAILED, ME, Clock, declare, dispatched, finish, started

__all__ = ["sqlite_url"]

Act = Callable[[], object]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(sqlite_url: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(following, "LOOK_AGAIN", 0.0)
    with closing(Store(sqlite_url, clock=clock, durable=False)) as store:
        declare(store, "extract", "load")
        yield store


class Changing:
    """The history of a database in which something happens before each look but the first."""

    def __init__(self, store: Store, *acts: Act) -> None:
        self._history = History(store)
        self._acts = [lambda: None, *acts]
        self.asked: list[int] = []

    @property
    def executions(self) -> Any:
        return self

    def page(self, wanted: ExecutionFilter, cursor: None, most: int) -> Any:
        self._act()
        self.asked.append(most)
        return self._history.executions.page(wanted, cursor, most)

    def detail(self, execution: int) -> Any:
        self._act()
        return self._history.executions.detail(execution)

    def _act(self) -> None:
        if not self._acts:
            raise KeyboardInterrupt
        self._acts.pop(0)()


def followed(history: Any, limit: int = 10, **wanted: Any) -> None:
    as_json = wanted.pop("as_json", False)
    with pytest.raises(KeyboardInterrupt):
        following.follow_all(history, ExecutionFilter(**wanted), limit, as_json=as_json)


def test_each_change_of_a_state_is_a_line(
    store: Store, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    first = started(store)

    def fail() -> None:
        clock.advance(seconds=5)
        finish(store, first, FAILED)

    followed(
        Changing(store, lambda: None, lambda: dispatched(store, "load"), fail, lambda: None),
    )
    assert capsys.readouterr().out.splitlines() == [
        "2025-01-01 12:00:00Z  in_progress  #1  extract",
        "2025-01-01 12:00:00Z  pending      #2  load",
        "2025-01-01 12:00:05Z  failed       #1  extract  in 5.00 s  load: ValueError: no rows",
    ]


def test_the_oldest_of_those_shown_comes_first(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(3):
        finish(store, started(store))
    history = Changing(store, lambda: None)
    followed(history, limit=2)

    told = [line.split()[3] for line in capsys.readouterr().out.splitlines()]
    assert told[:2] == ["#2", "#3"]
    assert history.asked == [2, 200]


def test_many_are_read_a_page_at_a_time(store: Store) -> None:
    history = Changing(store)
    followed(history, limit=1000)
    assert history.asked == [200]


def test_programs_get_a_json_object_on_each_line(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    one = started(store)
    followed(Changing(store, lambda: finish(store, one)), as_json=True)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["id"], line["state"]) for line in told] == [(1, "in_progress"), (1, "completed")]


def test_only_what_is_wanted_is_followed(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    dispatched(store, "extract")
    dispatched(store, "load")
    followed(Changing(store), manifest="load")
    assert capsys.readouterr().out == "2025-01-01 12:00:00Z  pending      #2  load\n"


def test_the_steps_of_one_are_told_once_until_it_ends(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    number = dispatched(store)

    def start() -> None:
        with store.writing() as tx:
            executions.claim_pending(tx, ME, 1, ["work"], {"work": "extract"})

    def end() -> None:
        [one] = History(store).executions.all()
        finish(store, one)

    following.follow_one(Changing(store, start, lambda: None, end), number)  # type: ignore[arg-type]
    assert capsys.readouterr() == ("", "2025-01-01 12:00:00Z  step extract\n")
