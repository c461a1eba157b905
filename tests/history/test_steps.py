"""Which steps a run went through, and how long each took, is on record with it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from headway import every
from headway.domain.execution import ExecutionState, StepRun
from headway.history import ExecutionDetail
from headway.store import executions, outcomes
from tests.builders import OWNER, Scene, eventually
from tests.runner import isolated_jobs as jobs
from tests.runner.conftest import Gate, starting_pools
from tests.runner.isolated_jobs import Place
from tests.statements import sent_statements


def newest(scene: Scene) -> ExecutionDetail:
    return scene.history.executions.detail(scene.history.executions.page(limit=1).items[0].id)


def run_steps(scene: Scene, *steps: Callable[..., object]) -> ExecutionDetail:
    work = scene.app.workflow("chain", steps=steps)
    scene.app.schedule(work, "job", None, every(hours=1))
    scene.apply()
    scene.cycle()
    return newest(scene)


def test_each_step_is_recorded_with_its_start_and_duration(scene: Scene) -> None:
    waited = threading.Event()

    def first() -> int:
        waited.wait(0.05)
        return 1

    async def second(value: int) -> None: ...

    found = run_steps(scene, first, second)
    one, two = found.steps
    assert [step.name for step in found.steps] == ["first", "second"]
    assert one.seconds is not None and two.seconds is not None
    assert one.seconds >= 0.05 and two.seconds >= 0
    started = found.execution.started_at
    assert started is not None and started <= one.started_at < two.started_at


def test_a_failed_step_has_a_duration_and_those_after_it_did_not_run(scene: Scene) -> None:
    def fine() -> None: ...

    def broken() -> None:
        raise RuntimeError("no")

    def never() -> None: ...

    found = run_steps(scene, fine, broken, never)
    assert found.execution.state is ExecutionState.FAILED
    assert [step.name for step in found.steps] == ["fine", "broken"]
    assert found.steps[-1].seconds is not None


def test_input_that_is_refused_runs_no_step(scene: Scene) -> None:
    @scene.app.workflow
    def load(table: str) -> None: ...

    scene.pending("load", input="[1]")
    scene.run()
    assert newest(scene).execution.state is ExecutionState.FAILED
    assert newest(scene).steps == ()


def test_a_run_that_goes_on_shows_what_has_ended_and_where_it_is(scene: Scene) -> None:
    gate = Gate()

    def first() -> None: ...

    def second() -> None:
        gate.wait()

    work = scene.app.workflow("chain", steps=(first, second))
    scene.app.schedule(work, "job", None, every(hours=1))
    scene.apply()
    scene.manage()
    scene.dispatch()
    with starting_pools(scene) as start:
        start()
        gate.arrived()
        done, going_on = newest(scene).steps
        gate.open()
        eventually(lambda: newest(scene).execution.state.terminal)
    assert (done.name, done.seconds is None) == ("first", False)
    assert (going_on.name, going_on.seconds) == ("second", None)
    assert [step.seconds is None for step in newest(scene).steps] == [False, False]


def test_what_others_end_keeps_the_steps_that_were_noted(scene: Scene) -> None:
    def one() -> None: ...

    def two() -> None: ...

    scene.app.workflow("chain", steps=(one, two))
    scene.pending("chain")
    [claimed] = scene.claim()
    assert [step.name for step in newest(scene).steps] == ["one"]
    ended = StepRun("one", scene.clock(), 1.5)
    with scene.store.writing() as tx:
        executions.note_step(tx, OWNER, claimed.id, "two", [ended])
        outcomes.end_orphans(tx, max_crashes=3)
    assert newest(scene).execution.lost
    assert newest(scene).steps == (ended, StepRun("two", scene.clock()))


def test_an_isolated_run_has_its_steps_too(scene: Scene, tmp_path: Path) -> None:
    chain = (jobs.note_pid, jobs.leave_everything)
    work = scene.app.workflow("isolated", steps=chain, isolated=True)
    scene.app.schedule(work, "job", Place(folder=str(tmp_path)), every(hours=1))
    scene.apply()
    scene.manage()
    scene.dispatch()
    with starting_pools(scene) as start:
        start()
        eventually(lambda: newest(scene).execution.state.terminal)
    assert [step.name for step in newest(scene).steps] == ["note_pid", "leave_everything"]
    assert all(step.seconds is not None for step in newest(scene).steps)


def test_a_job_of_one_step_needs_no_statement_more_for_it(scene: Scene) -> None:
    """The step is on record with the claim, and its duration with the outcome."""
    scene.pending("work")
    with sent_statements() as sent:
        scene.run()
    touching = [text for _, text in sent if "UPDATE headway_execution " in text]
    assert len(touching) == 1, "the claim"
    assert [step.name for step in newest(scene).steps] == ["_work"]
