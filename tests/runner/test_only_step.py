"""The short way of a workflow of one async step ends just like the long one."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headway import DoNotRetry, JobCancelled, Run
from headway.config import Settings
from headway.definition.registry import RegisteredWorkflow, Registry
from headway.domain.execution import Execution, ExecutionState, Outcome
from headway.errors import StepFailed
from headway.observe import Observer
from headway.runner.cancellation import CancellationRegistry, StopReason
from headway.runner.only_step import only_step
from headway.runner.state import RunnerEnv, RunnerState
from headway.runner.workflow import run_workflow
from headway.store.execution_rows import just_started

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)

Body = Callable[[int], Coroutine[Any, Any, Any]]


def started(step: str, **changes: Any) -> Execution:
    row = (7, 7, None, None, None, "me", None, None, step, "5", "ad_hoc", 0, 1, 1, NOON)
    return just_started((*row, None, None, step), NOON)._replace(**changes)


def register(function: Any, **options: Any) -> RegisteredWorkflow:
    return Registry().register(None, (function,), context_type=Run, **options)


class Runner:
    """Runs one execution in a loop of its own; *closely* if somebody watches each step."""

    def __init__(self, *, closely: bool) -> None:
        self.cancellations = CancellationRegistry()
        self.looked = 0
        self._observer = Observer()
        if closely:
            self._observer.subscribe(lambda event: None)

    def run(self, registered: RegisteredWorkflow, execution: Execution) -> Outcome:
        state = RunnerState(execution.id, execution, registered, 5)

        async def main() -> RunnerState:
            return await run_workflow(state, self._env(asyncio.get_running_loop()))

        outcome = asyncio.run(main()).outcome
        assert outcome is not None
        return outcome

    def _env(self, loop: asyncio.AbstractEventLoop) -> RunnerEnv:
        nothing: Any = None

        async def look(*arguments: Any) -> str:
            self.looked += 1
            return ""

        return RunnerEnv(
            store=nothing,
            registry=nothing,
            owner="me",
            cancellations=self.cancellations,
            call_store=look,
            call_sync=look,
            record=nothing,
            report=nothing,
            observer=self._observer,
            settings=Settings(),
            on_queued=lambda: None,
            loop=loop,
        )


async def returns(number: int) -> None:
    await asyncio.sleep(0)


async def fails(number: int) -> None:
    raise ValueError(f"no rows in {number}")


async def must_not_be_repeated(number: int) -> None:
    raise DoNotRetry("the table is gone")


async def leaves_the_interpreter(number: int) -> None:
    sys.exit(3)


async def is_interrupted(number: int) -> None:
    raise KeyboardInterrupt


async def gives_up(number: int) -> None:
    raise JobCancelled("enough")


async def cancels_something_inside(number: int) -> None:
    inner = asyncio.ensure_future(asyncio.sleep(60))
    inner.cancel()
    await inner


async def has_a_workflow_of_its_own(number: int) -> None:
    raise StepFailed("another step")


BODIES = [
    returns,
    fails,
    must_not_be_repeated,
    leaves_the_interpreter,
    is_interrupted,
    gives_up,
    cancels_something_inside,
    has_a_workflow_of_its_own,
]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_both_ways_end_alike(body: Body) -> None:
    registered, execution = register(body), started(body.__name__)
    assert only_step(registered.workflow, execution) is not None

    short = Runner(closely=False).run(registered, execution)
    long = Runner(closely=True).run(registered, execution)

    assert _comparable(short) == _comparable(long)
    assert short.steps is not None
    assert [one.name for one in short.steps] == [body.__name__]


def _comparable(outcome: Outcome) -> tuple[Any, ...]:
    """All but the frames of headway itself, which are two different ways."""
    steps = [(one.name, (one.seconds or 0) < 30) for one in outcome.steps or ()]
    failure = outcome.failure
    if failure is not None:
        _, _, own_frames = failure.traceback.partition(__file__)
        assert own_frames or not failure.traceback
        failure = replace(failure, traceback=own_frames)
    return (outcome.state, failure, *outcome[2:4], steps)


@pytest.mark.parametrize("closely", [False, True])
@pytest.mark.parametrize(
    ("reason", "state"),
    [
        (StopReason.REQUESTED, ExecutionState.CANCELLED),
        (StopReason.TIMEOUT, ExecutionState.FAILED),
        (StopReason.SHUTDOWN, ExecutionState.HANDED_BACK),
    ],
)
def test_who_is_asked_to_stop_is_interrupted_where_it_waits(
    closely: bool, reason: StopReason, state: ExecutionState
) -> None:
    runner = Runner(closely=closely)

    async def waits(number: int) -> None:
        assert runner.cancellations.try_cancel(7, reason)
        await asyncio.sleep(60)

    assert runner.run(register(waits), started("waits")).state is state
    assert runner.cancellations.ids() == []


@pytest.mark.parametrize("closely", [False, True])
@pytest.mark.parametrize("stops", [False, True])
def test_only_what_must_not_go_on_unwatched_is_cut_off(closely: bool, stops: bool) -> None:
    runner = Runner(closely=closely)
    cut_off: list[int] = []

    async def waits(number: int) -> None:
        cut_off.extend(runner.cancellations.cut_off())
        await asyncio.sleep(0)

    outcome = runner.run(register(waits, stop_when_cut_off=stops), started("waits"))
    assert cut_off == ([7] if stops else [])
    expected = ExecutionState.HANDED_BACK if stops else ExecutionState.COMPLETED
    assert outcome.state is expected


def test_who_is_asked_to_stop_before_it_begins_does_not_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner = Runner(closely=False)
    register_run = runner.cancellations.register
    ran: list[int] = []

    async def never_runs(number: int) -> None:
        ran.append(number)

    def register_and_stop(execution_id: int, *, stop_when_cut_off: bool = False) -> Any:
        handle = register_run(execution_id, stop_when_cut_off=stop_when_cut_off)
        handle.request(StopReason.REQUESTED)
        return handle

    monkeypatch.setattr(runner.cancellations, "register", register_and_stop)

    outcome = runner.run(register(never_runs), started("never_runs"))

    assert (outcome.state, ran) == (ExecutionState.CANCELLED, [])
    assert outcome.failure is not None and "before step 'never_runs'" in outcome.failure.message


@pytest.mark.parametrize("closely", [False, True])
def test_its_step_begins_no_earlier_than_its_run_was_claimed(closely: bool) -> None:
    execution = started("returns", dispatched_at=NOON - timedelta(minutes=1))
    outcome = Runner(closely=closely).run(register(returns), execution)
    assert outcome.steps is not None
    assert outcome.steps[0].started_at >= NOON


async def takes_the_run(number: int, run: Run) -> None: ...


def is_not_async(number: int) -> None: ...


@pytest.mark.parametrize(
    ("function", "changes"),
    [
        (takes_the_run, {}),
        (is_not_async, {}),
        (returns, {"running_step": None}),
        (returns, {"cancel_requested": True}),
    ],
)
def test_whatever_needs_more_takes_the_long_way(function: Any, changes: dict[str, Any]) -> None:
    execution = started(function.__name__, **changes)

    assert only_step(register(function).workflow, execution) is None


def test_a_run_that_was_not_claimed_with_its_step_looks_into_the_store_first() -> None:
    runner = Runner(closely=False)

    runner.run(register(returns), started("returns", running_step=None))

    assert runner.looked == 1
