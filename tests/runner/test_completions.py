"""Completions in batches: no timer, nothing lost, and one bad outcome spoils no other."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from headway.domain.execution import ExecutionState, Outcome
from headway.observe import Observer
from headway.runner import completions as module
from headway.runner.completions import Completions
from tests.builders import Recorder

COMPLETED = Outcome(ExecutionState.COMPLETED)
AWAY = OperationalError("DELETE", {}, Exception("server closed the connection"))


class Database:
    """Records each write; fails as often and for whom it is told to."""

    def __init__(self) -> None:
        self.writes: list[dict[int, Outcome]] = []
        self.away = 0
        self.refused: set[int] = set()
        self.hopeless: set[int] = set()
        self.gone: set[int] = set()

    def write(self, outcomes: Mapping[int, Outcome]) -> set[int]:
        if self.away:
            self.away -= 1
            raise AWAY
        for key, outcome in outcomes.items():
            if key in self.hopeless or (key in self.refused and outcome == COMPLETED):
                raise ValueError(f"cannot store {key}")
        self.writes.append(dict(outcomes))
        return set(outcomes) - self.gone


def run(
    database: Database, act: Callable[[Completions], Awaitable[Any]]
) -> tuple[Any, list[dict[str, Any]]]:
    """What *act* returns on an event loop whose store verbs take one turn of it."""
    observer = Observer()
    seen = Recorder(observer)

    async def call_store(function: Callable[..., Any], *arguments: Any) -> Any:
        await asyncio.sleep(0)
        return function(*arguments)

    async def main() -> Any:
        return await act(Completions(database.write, call_store, observer))

    return asyncio.run(main()), [event.fields for event in seen.named("loop.failed")]


async def record(completions: Completions, *ids: int) -> list[bool]:
    return list(await asyncio.gather(*(completions.record(key, COMPLETED) for key in ids)))


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.0)


def test_a_lone_completion_is_written_at_once() -> None:
    database = Database()

    assert run(database, lambda completions: record(completions, 7)) == ([True], [])
    assert database.writes == [{7: COMPLETED}]


def test_what_ends_during_a_write_goes_into_the_next() -> None:
    database = Database()

    async def act(completions: Completions) -> list[bool]:
        first = asyncio.create_task(completions.record(1, COMPLETED))
        await asyncio.sleep(0)  # the write of 1 begins
        await asyncio.sleep(0)
        rest = await record(completions, 2, 3, 4)
        return [await first, *rest]

    assert run(database, act)[0] == [True] * 4
    assert [sorted(write) for write in database.writes] == [[1], [2, 3, 4]]


def test_the_loser_of_a_race_is_told() -> None:
    database = Database()
    database.gone = {2}

    assert run(database, lambda completions: record(completions, 1, 2))[0] == [True, False]


def test_a_database_that_is_away_is_waited_for() -> None:
    database = Database()
    database.away = 3

    told, failures = run(database, lambda completions: record(completions, 1, 2))

    assert told == [True, True]
    assert [sorted(write) for write in database.writes] == [[1, 2]]
    assert [fields["loop"] for fields in failures] == ["completions"] * 3


def test_an_outcome_the_database_refuses_spoils_no_other_and_becomes_a_failure() -> None:
    database = Database()
    database.refused = {3}

    told, _ = run(database, lambda completions: record(completions, 1, 2, 3, 4, 5))

    assert told == [True] * 5
    written = {key: one for write in database.writes for key, one in write.items()}
    assert {key for key, one in written.items() if one == COMPLETED} == {1, 2, 4, 5}
    failure = written[3].failure
    assert failure is not None and failure.step == "RecordOutcome"
    assert failure.message == "cannot store 3"


def test_an_outcome_that_cannot_be_written_at_all_holds_up_nobody() -> None:
    database = Database()
    database.hopeless = {1}

    told, failures = run(database, lambda completions: record(completions, 1, 2))

    assert told == [False, True]
    assert all("cannot store 1" in fields["error"] for fields in failures)
    assert run(database, lambda completions: record(completions, 3))[0] == [True]


def test_a_cancelled_waiter_holds_up_no_other_of_its_batch() -> None:
    database = Database()

    async def act(completions: Completions) -> list[bool]:
        waiting = [asyncio.create_task(completions.record(key, COMPLETED)) for key in (1, 2, 3)]
        await asyncio.sleep(0)  # the write of all three begins
        for task in waiting[:2]:
            task.cancel()
        return [await waiting[2], *await record(completions, 4)]

    assert run(database, act)[0] == [True, True]
    assert [sorted(write) for write in database.writes] == [[1, 2, 3], [4]]


class Told:
    """What is told of ends that nobody waits for."""

    def __init__(self) -> None:
        self.written: list[tuple[list[int], set[int]]] = []
        self.unwritten: list[tuple[int, Outcome]] = []

    def of_written(self, handed_in: Collection[int], recorded: set[int]) -> None:
        self.written.append((sorted(handed_in), recorded))

    def of_unwritten(self, execution_id: int, outcome: Outcome) -> None:
        self.unwritten.append((execution_id, outcome))

    def hand_in(self, database: Database, *ids: int) -> None:
        async def call_store(function: Callable[..., Any], *arguments: Any) -> Any:
            return function(*arguments)

        async def main() -> None:
            completions = Completions(
                database.write, call_store, Observer(), self.of_written, self.of_unwritten
            )
            for key in ids:
                completions.hand_in(key, COMPLETED)
            others = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.gather(*others)

        asyncio.run(main())


def test_who_does_not_wait_is_told_of_each_write() -> None:
    database, told = Database(), Told()
    database.gone = {2}
    told.hand_in(database, 1, 2, 3)
    assert (told.written, told.unwritten) == ([([1, 2, 3], {1, 3})], [])


def test_an_end_that_cannot_be_written_at_all_is_told_with_the_failure_it_became() -> None:
    database, told = Database(), Told()
    database.hopeless = {1}
    told.hand_in(database, 1, 2)
    assert told.written == [([1, 2], {2})]
    [(execution_id, outcome)] = told.unwritten
    assert (execution_id, outcome.state) == (1, ExecutionState.FAILED)
    assert outcome.failure is not None and outcome.failure.step == "RecordOutcome"


def test_the_pauses_grow_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    database = Database()
    database.away = 6
    with monkeypatch.context() as patched:
        patched.setattr(module, "FIRST_PAUSE", 0.2)
        patched.setattr(asyncio, "sleep", noted)
        Told().hand_in(database, 1)
    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 4.0]
