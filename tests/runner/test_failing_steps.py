"""What is recorded of a run that fails: its step, the exception, the message, the traceback."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from headway import Headway, Run, every
from headway.domain.execution import Execution, ExecutionState, Failure
from headway.errors import InputError
from tests.builders import Scene
from tests.runner.conftest import Gate, StartPool


class Table(BaseModel):
    name: str
    partition: int = 0


class NoRows(Exception):
    pass


def steps_failing_in(broken: str) -> tuple[Callable[..., Any], ...]:
    """Extract, transform (async) and load, one of which raises."""

    def extract(table: Table) -> list[str]:
        fail_if("extract")
        return [table.name]

    async def transform(rows: list[str], run: Run) -> int:
        await asyncio.sleep(0)
        fail_if("transform")
        return len(rows)

    def load(count: int) -> None:
        fail_if("load")

    def fail_if(step: str) -> None:
        if step == broken:
            try:
                raise KeyError("users")
            except KeyError as error:
                raise NoRows(f"nothing to do in {step}") from error

    return extract, transform, load


def ended(scene: Scene) -> Execution:
    [execution] = scene.history.executions.all()
    return execution


def failure_of(execution: Execution) -> Failure:
    assert execution.state is ExecutionState.FAILED
    assert execution.failure is not None
    return execution.failure


@pytest.mark.parametrize("broken", ["extract", "transform", "load"])
@pytest.mark.parametrize("by_pool", [False, True], ids=["inline", "pool"])
def test_a_workflow_of_three_steps_one_async_records_its_failing_step(
    scene: Scene, start_pool: StartPool, broken: str, by_pool: bool
) -> None:
    delta = scene.app.workflow("delta-import", steps=steps_failing_in(broken))
    scene.app.schedule(delta, "delta-users", Table(name="users"), every(hours=1))
    scene.apply()
    scene.manage()
    scene.dispatch()

    if by_pool:
        start_pool()
        scene.events.wait_for("execution.failed")
    else:
        assert scene.run().ended == {ExecutionState.FAILED: 1}

    failure = failure_of(ended(scene))
    assert failure.step == broken
    assert failure.type == f"{__name__}.NoRows"
    assert failure.message == f"nothing to do in {broken}"
    assert f"in {broken}\n" in failure.traceback
    assert "KeyError: 'users'" in failure.traceback, "the cause is part of it"
    assert "headway/workflow.py" not in failure.traceback, "the engine is not"
    [event] = scene.events.named("execution.failed")
    assert event.fields["failure"] == f"{broken}: {failure.type}: {failure.message}"


def test_without_a_failure_the_values_pass_from_step_to_step(scene: Scene) -> None:
    scene.app.workflow("delta-import", steps=steps_failing_in("none of them"))
    scene.pending("delta-import", '{"name": "users"}')

    assert scene.run().ended == {ExecutionState.COMPLETED: 1}
    assert ended(scene).failure is None


def test_steps_after_the_failing_one_do_not_run(scene: Scene) -> None:
    ran: list[str] = []

    def first() -> None:
        raise NoRows

    def second() -> None:
        ran.append("second")

    scene.app.workflow("two", steps=(first, second))
    scene.pending("two")
    scene.run()

    assert ran == []


def test_bad_input_is_refused_when_scheduling_with_an_error_naming_the_field() -> None:
    hw = Headway()

    @hw.workflow
    def extract(table: Table) -> None: ...

    with pytest.raises(InputError) as refused:
        hw.schedule(extract, "extract-users", {"name": "users", "partition": "first"})

    message = str(refused.value)
    assert "extract-users" in message and "'partition'" in message and "'first'" in message
    assert "\n" not in message
    assert hw.declaration().manifests == ()


@pytest.mark.parametrize(
    ("stored", "named"),
    [
        ('{"name": "users", "partition": "first"}', "'partition'"),
        ("{}", "'name'"),
        ('{"name": "users', "cannot be read"),
        ("null", "input"),
    ],
)
def test_input_edited_by_hand_fails_the_run_before_any_step(
    scene: Scene, stored: str, named: str
) -> None:
    ran: list[Table] = []

    @scene.app.workflow
    def extract(table: Table) -> None:
        ran.append(table)

    scene.pending("extract", stored)

    assert scene.run().ended == {ExecutionState.FAILED: 1}
    failure = failure_of(ended(scene))
    assert failure.step == "ValidateState"
    assert failure.type == "headway.errors.InputError"
    assert named in failure.message
    assert ran == []


def test_a_validator_that_breaks_down_fails_only_its_run(scene: Scene) -> None:
    class Broken(BaseModel):
        name: str

        def model_post_init(self, context: Any) -> None:
            raise SystemExit("leaving")

    @scene.app.workflow
    def extract(table: Broken) -> None: ...

    scene.pending("extract", '{"name": "users"}')
    scene.pending("work")

    assert scene.run().ended == {ExecutionState.FAILED: 1, ExecutionState.COMPLETED: 1}


def test_an_unknown_workflow_is_a_failure_that_says_so(scene: Scene) -> None:
    execution_id = scene.pending("forgotten")

    assert scene.run().claimed == 0, "workers leave what they do not know to others"
    assert scene.with_runner(lambda runner: runner.run_one(execution_id)) == "failed"
    failure = failure_of(ended(scene))
    assert failure.step == "ValidateState"
    assert failure.type == "headway.errors.UnknownWorkflow"
    assert "'forgotten'" in failure.message


class Doom(BaseException):
    pass


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


NASTY: dict[str, tuple[BaseException, str]] = {
    "SystemExit": (SystemExit(3), "3"),
    "KeyboardInterrupt": (KeyboardInterrupt("stop"), "stop"),
    "BaseException": (Doom("all of it"), "all of it"),
    "GeneratorExit": (GeneratorExit("closed"), ""),
    "StopIteration": (StopIteration("no more"), ""),
    "CancelledError": (asyncio.CancelledError("an inner task"), "an inner task"),
    "str raises": (Unspeakable(), "<unprintable Unspeakable>"),
    "10 MB message": (ValueError("x" * 10_000_000), "characters cut"),
    "NUL and surrogate": (ValueError("a\x00b\ud800"), "a\\x00b\\ud800"),
}


@pytest.mark.parametrize(("error", "message"), NASTY.values(), ids=NASTY)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_whatever_user_code_raises_fails_its_run_and_nobody_elses(
    scene: Scene,
    start_pool: StartPool,
    gate: Gate,
    error: BaseException,
    message: str,
    is_async: bool,
) -> None:
    def explode() -> None:
        raise error

    async def explode_later() -> None:
        await asyncio.sleep(0)
        raise error

    def neighbour() -> None:
        gate.wait()

    scene.app.workflow(neighbour)
    scene.app.workflow("nasty")(explode_later if is_async else explode)
    scene.pending("neighbour")
    pool = start_pool()
    gate.arrived()
    nasty = scene.pending("nasty")
    pool.wake()

    scene.events.wait_for("execution.failed", execution_id=nasty)
    gate.open()
    scene.events.wait_for("execution.completed", workflow="neighbour")
    scene.pending("work")
    pool.wake()
    scene.events.wait_for("execution.completed", workflow="work")

    failure = failure_of(scene.execution(nasty))
    assert failure.step == ("explode_later" if is_async else "explode")
    assert message in failure.message
    assert len(failure.message) < 10_000
