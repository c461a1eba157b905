"""Between the loop and threads: what passes from one to the other, and what is left behind."""

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from headway.runner.progress import ProgressWriter
from headway.runner.tasks import Tasks
from headway.runner.threads import abandon_the_rest, happens, in_daemon_thread, until_idle
from headway.store.executions import Progress
from tests.builders import PATIENCE

variable = contextvars.ContextVar("variable", default="nothing")


def test_a_sync_step_gets_its_arguments_and_the_context_in_a_daemon_thread() -> None:
    def step(*arguments: int) -> tuple[Any, ...]:
        thread = threading.current_thread()
        return arguments, variable.get(), thread.name, thread.daemon

    async def main() -> Any:
        variable.set("of the run")
        return await in_daemon_thread(step, 1, 2)

    assert asyncio.run(main()) == ((1, 2), "of the run", "headway-step", True)


@pytest.mark.parametrize("error", [ValueError("no rows"), SystemExit(3), KeyboardInterrupt()])
def test_whatever_a_sync_step_raises_reaches_whoever_awaits_it(error: BaseException) -> None:
    def step() -> None:
        raise error

    async def main() -> BaseException:
        try:
            await in_daemon_thread(step)
        except BaseException as raised:
            return raised
        raise AssertionError("nothing was raised")

    assert asyncio.run(main()) is error


def test_a_generator_exit_of_a_sync_step_closes_nothing() -> None:
    def step() -> None:
        raise GeneratorExit

    async def main() -> None:
        await in_daemon_thread(step)

    with pytest.raises(RuntimeError, match="the step raised GeneratorExit") as raised:
        asyncio.run(main())
    assert isinstance(raised.value.__cause__, GeneratorExit)


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("loop_ends", [False, True])
def test_a_sync_step_that_ends_when_nobody_waits_any_more_disturbs_nobody(loop_ends: bool) -> None:
    go_on, threads = threading.Event(), set(threading.enumerate())
    unhandled: list[object] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, told: unhandled.append(told))
        waiting = asyncio.create_task(in_daemon_thread(go_on.wait, PATIENCE))
        await asyncio.sleep(0)
        waiting.cancel()
        if not loop_ends:
            go_on.set()
            await asyncio.to_thread(join_new)

    def join_new() -> None:
        for one in threading.enumerate():
            if one.name == "headway-step" and one not in threads:
                one.join(PATIENCE)

    asyncio.run(main())
    go_on.set()
    join_new()
    assert unhandled == []


def test_an_event_happens_or_does_not() -> None:
    async def main() -> None:
        event = asyncio.Event()
        assert await happens(event, within=0.0) is False
        event.set()
        assert await happens(event, within=PATIENCE) is True

    asyncio.run(main())


def test_who_waits_until_all_is_done_looks_again_after_each_wake_up() -> None:
    async def main() -> list[int]:
        left, asked, woken = [3], list[int](), asyncio.Event()

        def awaited() -> int:
            asked.append(left[0])
            left[0] -= 1
            asyncio.get_running_loop().call_soon(woken.set)
            return asked[-1]

        await until_idle(awaited, woken, lambda: PATIENCE)
        return asked

    assert asyncio.run(main()) == [3, 2, 1, 0]


def test_who_waits_does_not_look_again_and_again_for_one_wake_up() -> None:
    async def main() -> int:
        asked, woken = [0], asyncio.Event()

        def awaited() -> int:
            asked[0] += 1
            return 1

        woken.set()
        await until_idle(awaited, woken, lambda: 0.02)
        return asked[0]

    assert asyncio.run(main()) == 2, "at its begin, and when the grace is over"


def test_a_grace_that_was_shortened_ends_the_wait_at_the_next_wake_up() -> None:
    async def main() -> None:
        woken, grace = asyncio.Event(), [10 * PATIENCE]
        waiting = asyncio.create_task(until_idle(lambda: 1, woken, lambda: grace[0]))
        await asyncio.sleep(0)
        grace[0] = 0.0
        woken.set()
        await asyncio.wait_for(waiting, PATIENCE)

    asyncio.run(main())


def test_what_is_abandoned_may_record_that_and_what_goes_on_even_then_is_counted() -> None:
    recorded: list[str] = []

    async def records() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            recorded.append("ended")

    async def hears_it_the_second_time() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.Event().wait()

    async def goes_on() -> None:
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            try:
                await asyncio.sleep(0.5)
            except asyncio.CancelledError:
                continue

    async def main() -> tuple[int, int, int]:
        assert await abandon_the_rest(PATIENCE) == 0
        tasks = [asyncio.create_task(records())]
        await asyncio.sleep(0)
        first = await abandon_the_rest(PATIENCE)
        tasks += [asyncio.create_task(goes_on())]
        await asyncio.sleep(0)
        second = await abandon_the_rest(0.01)
        await asyncio.wait(tasks)
        tasks = [asyncio.create_task(hears_it_the_second_time())]
        await asyncio.sleep(0)
        return first, second, await abandon_the_rest(0.01)

    assert asyncio.run(main()) == (0, 1, 0)
    assert recorded == ["ended"]


def test_a_pool_knows_what_goes_on_and_is_told_of_each_end() -> None:
    told: list[int] = []

    async def main() -> None:
        tasks = Tasks(asyncio.get_running_loop(), lambda: told.append(len(tasks)))
        both = [tasks.start(asyncio.sleep(0, number)) for number in (1, 2)]
        assert len(tasks) == 2
        assert await asyncio.gather(*both) == [1, 2]
        await asyncio.sleep(0)

    asyncio.run(main())
    assert told == [1, 0]


class Reports:
    """Progress on its way into a database that is away as often as it is told."""

    def __init__(self, away: int = 0) -> None:
        self.written: list[dict[int, Progress]] = []
        self.unhandled: list[object] = []
        self._away = away

    def write(self, reported: Mapping[int, Progress]) -> None:
        if self._away:
            self._away -= 1
            raise OperationalError("UPDATE", {}, Exception("gone"))
        self.written.append(dict(reported))

    def after(self, act: Callable[[ProgressWriter], None], *more: Callable[..., None]) -> None:
        async def main() -> None:
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, told: self.unhandled.append(told))
            writer = ProgressWriter(loop, self.write, self._call)
            for one in (act, *more):
                one(writer)
                for _ in range(9):
                    await asyncio.sleep(0)

        asyncio.run(main())

    async def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        await asyncio.sleep(0)
        return function(*arguments)


def test_the_newest_report_of_each_run_is_written_with_those_of_others() -> None:
    reports = Reports()

    def report(writer: ProgressWriter) -> None:
        for execution_id, fraction in ((1, 0.1), (2, 0.2), (1, 0.3)):
            writer.report(execution_id, Progress(fraction, None))

    reports.after(report)
    assert reports.written == [{1: Progress(0.3, None), 2: Progress(0.2, None)}]


def test_a_report_that_is_lost_is_made_up_for_by_the_next() -> None:
    reports = Reports(away=1)

    def first(writer: ProgressWriter) -> None:
        writer.report(1, Progress(0.1, None))

    def second(writer: ProgressWriter) -> None:
        writer.report(1, Progress(0.5, "half"))

    reports.after(first, second)
    assert (reports.written, reports.unhandled) == ([{1: Progress(0.5, "half")}], [])
