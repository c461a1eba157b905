"""Many things in as few tasks as that takes, and none of them notices the others."""

import asyncio
import contextvars
import time
from collections.abc import Awaitable, Callable, Iterable

import pytest

from headway.runner import in_turn as module
from headway.runner.in_turn import InTurn

Body = Callable[[int], Awaitable[None]]


class Work:
    """Notes which task does what, in the order of their starts."""

    def __init__(self, body: Body) -> None:
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.ended: list[int] = []
        self._body = body

    async def do(self, number: int) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks[number] = task
        try:
            await self._body(number)
        finally:
            self.ended.append(number)


def done(body: Body, numbers: Iterable[int], *more: Iterable[int]) -> Work:
    """Everything done, in a loop that ends once nothing is left."""
    work = Work(body)

    async def main() -> None:
        in_turn = InTurn(asyncio.get_running_loop(), work.do)
        wanted = 0
        for some in (numbers, *more):
            several = list(some)
            wanted += len(several)
            in_turn.start(several)
        while len(work.ended) < wanted:
            await asyncio.sleep(0)

    asyncio.run(main())
    return work


async def at_once(number: int) -> None:
    """Waits for nothing."""


async def a_moment(number: int) -> None:
    await asyncio.sleep(0)


def test_what_waits_for_nothing_shares_one_task_and_keeps_its_order() -> None:
    work = done(at_once, range(500))

    assert list(work.tasks) == work.ended == list(range(500))
    assert len(set(work.tasks.values())) == 1


def test_what_waits_has_a_task_to_itself() -> None:
    work = done(a_moment, range(500))

    assert list(work.tasks) == list(range(500))
    assert len(set(work.tasks.values())) == 500


def test_one_that_waits_holds_up_nobody_and_nothing_follows_it_in_its_task() -> None:
    gate = asyncio.Event()

    async def third_waits(number: int) -> None:
        if number == 3:
            await gate.wait()
        if number == 9:
            gate.set()

    work = done(third_waits, range(10))

    assert work.ended == [0, 1, 2, 4, 5, 6, 7, 8, 9, 3]
    with_third = [key for key, task in work.tasks.items() if task is work.tasks[3]]
    assert with_third == [0, 1, 2, 3]


def test_what_comes_later_is_done_as_well() -> None:
    assert done(a_moment, range(3), range(3, 5), (), range(5, 9)).ended == list(range(9))


def test_no_run_sees_a_context_variable_of_another() -> None:
    variable = contextvars.ContextVar("variable", default="nothing")
    seen = []

    async def leaves_a_trace(number: int) -> None:
        seen.append(variable.get())
        variable.set(f"of {number}")

    done(leaves_a_trace, range(5))

    assert seen == ["nothing"] * 5


def test_a_variable_that_was_put_back_costs_no_task() -> None:
    variable = contextvars.ContextVar("variable", default="nothing")

    async def tidies_up(number: int) -> None:
        variable.reset(variable.set(f"of {number}"))

    # Setting it for the first time leaves it in the context, although it has no value.
    assert len(set(done(tidies_up, range(50)).tasks.values())) <= 2


def test_nothing_is_done_in_a_task_that_was_cancelled() -> None:
    async def second_is_cancelled(number: int) -> None:
        if number == 1:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.sleep(0)

    work = done(second_is_cancelled, range(4))

    assert work.ended == [0, 1, 2, 3]
    assert work.tasks[2] is not work.tasks[1]
    assert not work.tasks[2].cancelled()


def test_the_loop_sees_to_others_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONG_ENOUGH", 0.0)
    others: list[int] = []

    async def among_others(number: int) -> None:
        asyncio.get_running_loop().call_soon(others.append, number)
        before = time.monotonic()
        while time.monotonic() == before:
            pass
        if number == 9:
            assert others[:3] == [0, 1, 2]

    assert len(set(done(among_others, range(10)).tasks.values())) > 1
