"""The JobRunner: four steps, one execution after another, and losers that do nothing."""

from datetime import timedelta
from operator import methodcaller
from typing import Any

import psycopg
import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from headway import Run, every
from headway.config import Settings
from headway.domain.execution import ExecutionState, Outcome
from headway.errors import StepFailed
from headway.runner import job_runner
from headway.runner.job_runner import JobRunner
from headway.runner.workflow import JOB_RUNNER
from headway.store import executions, outcomes
from headway.store.engine import Store
from headway.store.tables import execution_history
from tests.builders import OWNER, START, Scene


def test_the_four_steps_in_order() -> None:
    assert [step.name for step in JOB_RUNNER.steps] == [
        "load_execution",
        "validate_state",
        "run_workflow",
        "record_outcome",
    ]


def test_run_once_runs_what_is_pending_and_counts_how_it_ended(scene: Scene) -> None:
    @scene.app.workflow
    def fail() -> None:
        raise LookupError("nothing there")

    for workflow in ("work", "work", "fail"):
        scene.pending(workflow)

    result = scene.run()

    assert result.claimed == 3
    assert result.ended == {ExecutionState.COMPLETED: 2, ExecutionState.FAILED: 1}
    assert result.failures == ("fail: fail: LookupError: nothing there",)
    assert scene.run().claimed == 0


def test_run_once_claims_no_more_than_it_is_told(scene: Scene) -> None:
    for _ in range(5):
        scene.pending("work")

    assert scene.with_runner(lambda runner: runner.run_once(limit=2)).claimed == 2
    assert scene.run().claimed == 3


def test_run_once_takes_the_highest_priority_first(scene: Scene) -> None:
    ran: list[int] = []

    @scene.app.workflow
    def note(run: Run) -> None:
        ran.append(run.execution_id)

    low, high, other = (scene.pending("note", priority=priority) for priority in (1, 9, 1))
    scene.run()

    assert ran == [high, low, other]


def test_run_one_runs_this_execution_and_no_other(scene: Scene) -> None:
    other, chosen = scene.pending("work"), scene.pending("work")

    assert scene.with_runner(lambda runner: runner.run_one(chosen)) is ExecutionState.COMPLETED
    assert scene.execution(other).state is ExecutionState.PENDING


def test_run_one_does_nothing_with_what_is_not_pending(scene: Scene) -> None:
    ran: list[int] = []

    @scene.app.workflow
    def note(run: Run) -> None:
        ran.append(run.execution_id)

    running, finished = scene.pending("note"), scene.pending("note")
    scene.with_runner(lambda runner: runner.run_one(finished))
    with scene.store.writing() as tx:
        executions.claim_one(tx, "somebody else", running, {})
    before = scene.history.executions.all()

    for execution_id in (running, finished, 999_999):
        assert scene.with_runner(methodcaller("run_one", execution_id)) is None

    assert ran == [finished]
    assert scene.history.executions.all() == before


def test_the_loser_of_a_claim_does_nothing(postgres_url: str) -> None:
    with Scene(postgres_url) as scene:
        execution_id = scene.pending("work")
        other = Store(postgres_url, clock=scene.clock)
        with other.writing() as tx:
            assert executions.claim_one(tx, "other", execution_id, {}) is not None
            # Not committed yet: skipped, not waited for.
            assert scene.run().claimed == 0
            assert scene.with_runner(lambda runner: runner.run_one(execution_id)) is None
        assert scene.execution(execution_id).owner == "other"
        other.close()


@pytest.mark.postgresql
def test_a_session_that_is_ended_costs_no_outcome(postgres_url: str) -> None:
    ended: list[int] = []

    def end_the_first(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if execution_history.name in statement and not ended:
            ended.append(cursor.connection.info.backend_pid)
            with psycopg.connect(postgres_url.replace("+psycopg", "")) as other:
                other.execute("SELECT pg_terminate_backend(%s, 5000)", ended)

    with Scene(postgres_url) as scene:
        event.listen(scene.store._writer, "before_cursor_execute", end_the_first)
        key = scene.pending("work")
        state = scene.with_runner(lambda runner: runner.run_one(key))
        assert len(ended) == 1
        assert scene.execution(key).state is state is ExecutionState.COMPLETED


def test_an_outcome_that_comes_too_late_changes_nothing(scene: Scene) -> None:
    @scene.app.workflow
    def load(run: Run) -> None:
        with scene.store.writing() as tx:
            failed = Outcome(ExecutionState.CANCELLED)
            outcomes.finish(tx, OWNER, {run.execution_id: failed})

    execution_id = scene.pending("load")
    scene.run()

    assert scene.execution(execution_id).state is ExecutionState.CANCELLED
    assert scene.events.named("execution.completed") == []


def test_what_a_watcher_is_told_of_a_run(scene: Scene) -> None:
    scene.app.schedule("work", "load-users", None, every(hours=1), group="loads")
    scene.failing.add("load-users")
    scene.apply()
    scene.manage()
    scene.clock.advance(seconds=5)
    [execution_id] = scene.dispatch().dispatched
    scene.clock.advance(seconds=5)
    scene.run()

    run = scene.execution(execution_id)
    [started] = scene.events.named("execution.started")
    assert started.fields == {
        "execution_id": execution_id,
        "external_id": "load-users",
        "group": "loads",
        "workflow": "work",
        "seconds": None,
        "failure": None,
        "entry_id": run.entry_id,
        "source": "schedule",
        "attempt": 1,
        "queued_at": START,
        "dispatched_at": START + timedelta(seconds=5),
        "started_at": START + timedelta(seconds=10),
    }
    [step] = scene.events.named("execution.step")
    assert step.fields == {"execution_id": execution_id, "step": "_work"}
    [ran] = scene.events.named("execution.ran")
    summary = "_work: RuntimeError: told to fail"
    assert ran.fields == {
        "execution_id": execution_id,
        "state": ExecutionState.FAILED,
        "failure": summary,
    }
    [failed] = scene.events.named("execution.failed")
    assert failed.fields == run.told() and failed.fields["failure"] == summary
    assert [one.name for one in scene.events.events if "execution_id" in one.fields] == [
        "execution.dispatched",
        "execution.started",
        "execution.step",
        "execution.ran",
        "execution.failed",
    ]


def test_a_failure_is_named_by_its_manifest(scene: Scene) -> None:
    scene.app.schedule("work", "load-users", None, every(hours=1))
    scene.failing.add("load-users")
    scene.apply()
    scene.manage()
    scene.dispatch()
    assert scene.run().failures == ("load-users: _work: RuntimeError: told to fail",)


def new_runner(scene: Scene, settings: Settings) -> JobRunner:
    return JobRunner(scene.store, scene.app.registry, scene.app.observer, OWNER, settings)


def test_what_has_no_retry_policy_of_its_own_is_tried_again_by_the_settings(scene: Scene) -> None:
    scene.failing.add(None)
    scene.pending("work", max_attempts=2)
    runner = new_runner(scene, Settings(default_retry_delay="3h", max_retry_delay="9h"))
    runner.run_once()
    runner.close()
    [entry] = scene.history.queue.all()
    assert entry.scheduled_at == START + timedelta(hours=3)


class Outage:
    """The database is away when an end is written, so many times."""

    def __init__(self, scene: Scene, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
        self.tried = 0
        self._times = times
        self._finish = outcomes.finish
        monkeypatch.setattr(job_runner, "PAUSES", (0.0, 0.0, 0.0))
        monkeypatch.setattr(outcomes, "finish", self._finish_at_last)

    def _finish_at_last(self, *arguments: Any, **options: Any) -> Any:
        self.tried += 1
        if self.tried <= self._times:
            raise OperationalError("UPDATE", {}, Exception("gone"))
        return self._finish(*arguments, **options)


def test_an_end_that_could_not_be_written_is_written_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = scene.pending("work")
    outage = Outage(scene, monkeypatch, times=3)
    assert scene.run().ended == {ExecutionState.COMPLETED: 1}
    assert scene.execution(key).state is ExecutionState.COMPLETED
    assert outage.tried == 4
    failures = scene.events.named("loop.failed", loop="completions")
    assert [one.fields["error"] for one in failures] == ["OperationalError: gone"] * 3


def test_a_database_that_stays_away_is_an_error(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.pending("work")
    Outage(scene, monkeypatch, times=4)
    with pytest.raises(StepFailed) as raised:
        scene.run()
    assert isinstance(raised.value.__cause__, OperationalError)
