"""Cancelling what is queued, pending and running; the caller learns what really happened."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headway import Run, every
from headway.definition.cancelling import Cancelled
from headway.definition.runtime import Runtime
from headway.domain.execution import ExecutionState, Failure, Outcome
from headway.errors import HeadwayError
from headway.store import executions, outcomes
from tests.builders import OWNER, Scene, names, reasons
from tests.databases import database_url, postgres_url, sqlite_url

__all__ = ["database_url", "postgres_url", "sqlite_url"]

CANCELLED, COMPLETED = ExecutionState.CANCELLED, ExecutionState.COMPLETED
FAILED, HANDED_BACK = ExecutionState.FAILED, ExecutionState.HANDED_BACK


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url) as scene:
        yield scene


@pytest.fixture
def runtime(scene: Scene) -> Runtime:
    return Runtime("tests", scene.app.registry, scene.store)


def cancel(
    runtime: Runtime,
    external_id: str | None = None,
    *,
    group: str | None = None,
    execution: Any = None,
    entry: Any = None,
    reason: Any = None,
) -> Cancelled:
    return runtime.cancelling.cancel(external_id, group, execution, entry, reason)


def declare(scene: Scene, *external_ids: str, group: str = "loads") -> None:
    for external_id in external_ids:
        scene.app.schedule("work", external_id, None, every(hours=1), group=group)
    scene.apply()


def finish(scene: Scene, execution_id: int, outcome: Outcome) -> None:
    with scene.store.writing() as tx:
        outcomes.finish(tx, OWNER, {execution_id: outcome})


def test_a_queued_run_never_starts_and_its_occurrence_is_over(
    scene: Scene, runtime: Runtime
) -> None:
    declare(scene, "load")
    scene.manage()
    assert cancel(runtime, "load", reason="wrong day") == Cancelled(cancelled=1)

    assert scene.dispatch().dispatched == ()
    scene.manage()
    assert scene.history.queue.all() == [], "the same occurrence is not queued again"
    scene.clock.advance(hours=1)
    scene.manage()
    assert names(scene.history.queue.all()) == ["load"], "the next one is"


def test_a_pending_run_never_starts(scene: Scene, runtime: Runtime) -> None:
    declare(scene, "load")
    scene.manage()
    [execution_id] = scene.dispatch().dispatched
    assert cancel(runtime, "load", reason="wrong day") == Cancelled(cancelled=1)

    assert scene.claim() == []
    ended = scene.execution(execution_id)
    assert ended.state is CANCELLED and ended.failure is not None
    assert ended.failure.message == "cancelled before it started: wrong day"


def test_without_a_reason_a_run_was_asked_to_stop(scene: Scene, runtime: Runtime) -> None:
    key = scene.pending("work")
    cancel(runtime, execution=key)
    ended = scene.execution(key)
    assert ended.failure is not None
    assert ended.failure.message == "cancelled before it started: asked for"


@pytest.mark.parametrize("length", [500, 501])
def test_a_reason_is_kept_up_to_five_hundred_characters(
    scene: Scene, runtime: Runtime, length: int
) -> None:
    scene.pending("work")
    [running] = scene.claim()
    cancel(runtime, execution=running.id, reason="  " + "x" * length)
    with scene.store.reading() as tx:
        [stop] = [one.stop for one in executions.owned_by_any(tx, [OWNER])]
    assert stop is not None and len(stop) <= 500
    assert ("characters cut" in stop) is (length + 2 > 500) and stop == stop.strip()


def test_a_running_one_is_asked_and_ends_as_cancelled(scene: Scene, runtime: Runtime) -> None:
    declare(scene, "load")
    scene.manage()
    scene.dispatch()
    [running] = scene.claim()
    assert cancel(runtime, "load") == Cancelled(requested=1)
    assert cancel(runtime, "load") == Cancelled(requested=1), "once more changes nothing"
    assert scene.execution(running.id).cancel_requested


@pytest.mark.parametrize("later", ["a timeout", "another cancellation"])
def test_the_first_reason_to_stop_is_the_one_that_stays(
    scene: Scene, runtime: Runtime, later: str
) -> None:
    declare(scene, "load")
    scene.manage()
    scene.dispatch()
    [running] = scene.claim()
    cancel(runtime, "load", reason="wrong day")

    if later == "a timeout":
        scene.clock.advance(minutes=21)
        assert scene.manage().cancelled == 0
    else:
        cancel(runtime, "load", reason="wrong place")

    with scene.store.reading() as tx:
        assert [one.stop for one in executions.owned_by_any(tx, [OWNER])] == ["wrong day"]
    assert scene.execution(running.id).cancel_requested


@pytest.mark.parametrize("left_by", [FAILED, HANDED_BACK])
def test_what_was_to_stop_is_neither_repeated_nor_a_failure(
    scene: Scene, runtime: Runtime, left_by: ExecutionState
) -> None:
    declare(scene, "load")
    scene.manage()
    scene.dispatch()
    [running] = scene.claim()
    cancel(runtime, "load")
    failure = Failure("work", "ValueError", "interrupted") if left_by is FAILED else None
    finish(scene, running.id, Outcome(left_by, failure))

    assert scene.execution(running.id).state is CANCELLED
    scene.manage()
    assert scene.history.queue.all() == []
    assert scene.history.dead_letters.awaiting() == []


def test_what_completes_first_is_completed(scene: Scene, runtime: Runtime) -> None:
    declare(scene, "load")
    scene.manage()
    scene.dispatch()
    [running] = scene.claim()
    assert cancel(runtime, execution=running.id) == Cancelled(requested=1)
    finish(scene, running.id, Outcome(COMPLETED))
    assert cancel(runtime, execution=running.id) == Cancelled(finished=COMPLETED)
    assert scene.execution(running.id).state is COMPLETED


def test_a_group_is_cancelled_in_every_phase_and_no_other(scene: Scene, runtime: Runtime) -> None:
    scene.configure(max_active_jobs=3)
    declare(scene, "other", group="others")
    scene.manage()
    scene.dispatch()
    declare(scene, "a", "b", "c", group="loads")
    scene.manage()
    scene.dispatch()
    [running] = [one for one in scene.claim(2) if one.external_id != "other"]
    assert cancel(runtime, group="loads") == Cancelled(cancelled=2, requested=1)

    kept = {one.external_id: one.state for one in scene.history.executions.all()}
    assert kept["other"] is ExecutionState.IN_PROGRESS
    assert scene.execution(running.id).cancel_requested
    assert scene.dispatch().dispatched == ()


def test_an_entry_is_followed_to_wherever_it_is(scene: Scene, runtime: Runtime) -> None:
    first, second, third = (runtime.enqueue("work") for _ in range(3))
    scene.configure(max_active_jobs=2)
    scene.dispatch()
    [running] = scene.claim(1)
    assert cancel(runtime, entry=first) == Cancelled(requested=1)
    assert cancel(runtime, entry=second) == Cancelled(cancelled=1)
    assert cancel(runtime, entry=third) == Cancelled(cancelled=1)
    assert cancel(runtime, entry=second) == Cancelled(finished=CANCELLED)
    assert cancel(runtime, entry=third) == Cancelled(finished=CANCELLED)
    finish(scene, running.id, Outcome(COMPLETED))
    assert cancel(runtime, entry=first) == Cancelled(finished=COMPLETED)


def test_a_cancelled_dependent_has_consumed_the_success_of_its_parent(
    scene: Scene, runtime: Runtime
) -> None:
    chain = scene.app.schedule("work", "extract", None, every(hours=1))
    chain.include("work", "load", None)
    scene.apply()
    scene.cycle()
    scene.manage()
    assert names(scene.history.queue.all()) == ["load"]
    assert cancel(runtime, "load") == Cancelled(cancelled=1)
    scene.manage()
    assert scene.history.queue.all() == []
    scene.clock.advance(hours=1)
    scene.cycle()
    scene.manage()
    assert names(scene.history.queue.all()) == ["load"], "the next success is another"


def test_a_kept_activation_is_cancelled_too(scene: Scene, runtime: Runtime) -> None:
    def activate(run: Run) -> None:
        run.activate("later")

    scene.app.workflow("activate")(activate)
    chain = scene.app.schedule("activate", "parent", None, every(hours=1))
    chain.include("work", "later", None, dormant=True, when_busy="keep")
    scene.apply()
    scene.cycle()
    scene.clock.advance(hours=1)
    scene.cycle()
    assert cancel(runtime, "later").cancelled >= 1
    assert scene.dispatch().dispatched == ()


def test_a_person_who_says_timeout_is_not_taken_for_one(scene: Scene, runtime: Runtime) -> None:
    declare(scene, "load")
    scene.manage()
    scene.dispatch()
    [running] = scene.claim()
    cancel(runtime, "load", reason="timeout")
    finish(scene, running.id, Outcome(FAILED, Failure("work", "ValueError", "x")))
    assert scene.execution(running.id).state is CANCELLED


def test_nothing_to_cancel_is_said_so(scene: Scene, runtime: Runtime) -> None:
    declare(scene, "load")
    nothing = cancel(runtime, "load")
    assert nothing == Cancelled() and str(nothing) == "nothing to cancel"
    assert str(Cancelled(2, 1)) == "2 cancelled, 1 asked to stop"
    assert "load" in reasons(scene.manage())


WRONG: dict[str, tuple[Callable[[Runtime], Any], str]] = {
    "nothing": (lambda runtime: cancel(runtime), "takes one thing to cancel, not 0"),
    "two things": (
        lambda runtime: cancel(runtime, "load", group="loads"),
        "takes one thing to cancel, not 2",
    ),
    "no such manifest": (lambda runtime: cancel(runtime, "nobody"), "'nobody'"),
    "no such group": (lambda runtime: cancel(runtime, group="nobody"), "'nobody'"),
    "no such execution": (lambda runtime: cancel(runtime, execution=99), "execution = 99"),
    "no such entry": (lambda runtime: cancel(runtime, entry=99), "entry = 99"),
    "text for an id": (lambda runtime: cancel(runtime, execution="7"), "execution = '7': must be"),
    "a negative id": (lambda runtime: cancel(runtime, entry=-1), "entry = -1: must be"),
    "a reason that is none": (
        lambda runtime: cancel(runtime, "load", reason=5),
        "reason = 5: must be text",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_cancelled_is_said_in_one_line(runtime: Runtime, case: str) -> None:
    call, told = WRONG[case]
    with pytest.raises(HeadwayError) as refused:
        call(runtime)
    assert told in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.story(34)
@pytest.mark.long
def test_a_thousand_races_of_cancel_against_finish_have_one_outcome_each(
    scene: Scene, runtime: Runtime
) -> None:
    """Story 34: whoever comes second is told what the first one did."""
    races = 1000 if scene.store.on_postgresql else 300
    told: dict[int, Cancelled] = {}
    recorded: dict[int, bool] = {}
    ids = [scene.pending("work") for _ in range(races)]
    started = {one.id for one in scene.claim(races)}
    assert started == set(ids)
    together = threading.Barrier(2)

    def cancel_each() -> None:
        for key in ids:
            together.wait()
            told[key] = cancel(runtime, execution=key)

    def finish_each() -> None:
        for key in ids:
            together.wait()
            with scene.store.writing() as tx:
                recorded[key] = bool(outcomes.finish(tx, OWNER, {key: Outcome(COMPLETED)}))

    threads = [threading.Thread(target=one) for one in (cancel_each, finish_each)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(recorded.values())
    answers = {str(answer) for answer in told.values()}
    assert answers <= {"1 asked to stop", "already finished: completed"}
    states = {one.id: one for one in scene.ended(COMPLETED)}
    for key, answer in told.items():
        assert states[key].cancel_requested is (answer.requested == 1), "as the caller was told"
