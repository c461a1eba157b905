"""Attempts that an entry has of its own: what was asked for is tried again as the same entry."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from headway import DoNotRetry, Group, RetryAfter, RetryPolicy, Run, every
from headway.definition.runtime import Runtime
from headway.domain.attempts import wait_after
from headway.domain.execution import Execution, ExecutionState, Failure, FailureCode
from headway.domain.work_queue import Source
from headway.errors import DefinitionError, NoParentRunError
from headway.store import outcomes
from tests.builders import OWNER, Scene, reasons
from tests.runtime_verbs import runtime_of

A_MINUTE = RetryPolicy(delay=timedelta(minutes=1), multiplier=2)
FAILED, COMPLETED = ExecutionState.FAILED, ExecutionState.COMPLETED


class Job:
    """A manifest ``job`` whose runs end as they are told, and what they saw of themselves."""

    def __init__(self, scene: Scene, **options: Any) -> None:
        self.scene = scene
        self.errors: list[BaseException | None] = []
        self.keys: list[str] = []
        scene.app.workflow("job")(self._run)
        scene.app.schedule("job", "job", None, retry=A_MINUTE, **options)
        scene.apply()
        self.runtime: Runtime = runtime_of(scene)

    def _run(self, run: Run) -> None:
        self.keys.append(run.idempotency_key)
        error = self.errors.pop(0) if self.errors else ValueError("no rows")
        if error is not None:
            raise error

    def trigger(self, max_attempts: int = 3, *errors: BaseException | None) -> None:
        self.errors = list(errors)
        self.runtime.trigger("job", max_attempts=max_attempts)

    def attempt(self) -> Execution:
        """Dispatch and run what is due now; returns how that ended."""
        assert len(self.scene.dispatch().dispatched) == 1
        self.scene.run()
        return self.scene.history.executions.all()[-1]

    def waits(self, **span: float) -> None:
        """Nothing is dispatched a second before, and *span* has passed afterwards."""
        self.scene.clock.advance(**span)
        self.scene.clock.advance(seconds=-1)
        assert self.scene.dispatch().dispatched == ()
        self.scene.clock.advance(seconds=1)


def test_a_failed_trigger_is_tried_again_as_the_same_entry_until_its_last_attempt(
    scene: Scene,
) -> None:
    job = Job(scene, max_retries=10)
    job.trigger(3)
    first = job.attempt()
    [entry] = scene.history.queue.all()
    assert (entry.id, entry.source, entry.attempts, entry.max_attempts) == (
        first.entry_id,
        Source.TRIGGER,
        1,
        3,
    )
    assert entry.scheduled_at == scene.clock.now + timedelta(minutes=1)
    job.waits(minutes=1)
    job.attempt()
    job.waits(minutes=2)
    last = job.attempt()
    assert (last.state, last.attempt, last.max_attempts) == (FAILED, 3, 3)
    assert scene.history.queue.all() == []
    runs = scene.history.executions.all("job")
    assert [(one.entry_id, one.attempt) for one in runs] == [
        (first.entry_id, number) for number in (1, 2, 3)
    ]
    assert len(set(job.keys)) == 1, "all of them stand for one piece of work"


def test_a_success_ends_it(scene: Scene) -> None:
    job = Job(scene)
    job.trigger(3, ValueError("no rows"), None)
    job.attempt()
    job.waits(minutes=1)
    assert job.attempt().state is COMPLETED
    assert scene.history.queue.all() == []


def test_one_attempt_is_the_default_for_whatever_is_asked_for(scene: Scene) -> None:
    job = Job(scene, max_retries=10)
    job.runtime.trigger("job")
    first = job.attempt()
    job.runtime.rerun(first.id)
    job.attempt()
    job.runtime.enqueue("job")
    assert job.attempt().state is FAILED
    assert scene.history.queue.all() == []


@pytest.mark.parametrize("kind", ["rerun", "ad hoc"])
def test_reruns_and_runs_without_a_manifest_have_attempts_as_well(scene: Scene, kind: str) -> None:
    job = Job(scene, max_retries=10)
    job.trigger(1)
    first = job.attempt()
    if kind == "rerun":
        entry = job.runtime.rerun(first.id, max_attempts=2)
    else:
        entry = job.runtime.enqueue("job", max_attempts=2)
    job.attempt()
    [waiting] = scene.history.queue.all()
    assert waiting.id == entry
    job.waits(minutes=1 if kind == "rerun" else 5)  # by its manifest, or by the settings
    assert (job.attempt().attempt, scene.history.queue.all()) == (2, [])


def test_do_not_retry_ends_it_at_once(scene: Scene) -> None:
    job = Job(scene)
    job.trigger(3, DoNotRetry("the table is gone"))
    job.attempt()
    assert scene.history.queue.all() == []


def test_retry_after_says_when(scene: Scene) -> None:
    job = Job(scene)
    job.trigger(3, RetryAfter(timedelta(minutes=7)))
    job.attempt()
    job.waits(minutes=7)
    assert job.attempt().attempt == 2


def test_at_once_means_at_once(scene: Scene) -> None:
    job = Job(scene)
    job.trigger(2, RetryAfter(timedelta(0)))
    job.attempt()
    assert job.attempt().attempt == 2


def test_jitter_is_drawn_for_each_entry(scene: Scene) -> None:
    policy = RetryPolicy(delay=timedelta(hours=1), jitter=0.5)
    job = Job(scene)
    job.runtime.schedule("job", "shaky", None, every(days=9), retry=policy, enabled=False)
    job.runtime.trigger("shaky", max_attempts=2)
    job.attempt()
    [entry] = scene.history.queue.all()
    wait = wait_after(Failure("job", "ValueError", "no rows"), 1, policy, entry.id)
    assert entry.scheduled_at == scene.clock.now + wait
    assert wait != timedelta(hours=1)


def test_a_failing_trigger_counts_as_failures_and_runs_on_beside_the_dead_letter(
    scene: Scene,
) -> None:
    job = Job(scene, max_retries=2)
    job.trigger(3, ValueError(), ValueError(), None)
    job.attempt()
    job.waits(minutes=1)
    job.attempt()
    scene.manage()
    [letter] = scene.history.dead_letters.awaiting()
    assert letter.failures == 2
    job.waits(minutes=2)
    assert job.attempt().state is COMPLETED, "a dead letter holds back nothing that was asked for"


@pytest.mark.parametrize("resolved", ["requeue", "acknowledge"])
def test_who_resolves_its_dead_letter_decides_about_the_attempts_left(
    scene: Scene, resolved: str
) -> None:
    job = Job(scene, max_retries=1)
    job.trigger(3)
    failed = job.attempt()
    scene.manage()
    [letter] = scene.history.dead_letters.awaiting()
    assert getattr(job.runtime.dead_letters, resolved)(letter.id).success
    left = scene.history.queue.all()
    assert [one.source for one in left] == ([Source.REQUEUE] if resolved == "requeue" else [])
    assert failed.entry_id not in {one.id for one in left}


def test_what_waits_for_its_next_attempt_does_not_hold_back_the_schedule(scene: Scene) -> None:
    job = Job(scene)
    job.runtime.schedule("job", "hourly", None, every(hours=1), retry=A_MINUTE, max_retries=10)
    job.errors = [None]
    scene.cycle()
    job.errors = [RetryAfter(timedelta(hours=5))]
    job.runtime.trigger("hourly", max_attempts=2)
    scene.dispatch()
    scene.run()
    scene.clock.advance(hours=1)
    assert reasons(scene.manage())["hourly"] == "retry 1 after 5:00:00", "and not already queued"


@pytest.mark.parametrize("by", ["entry", "manifest", "group"])
def test_what_waits_for_its_next_attempt_can_be_cancelled(scene: Scene, by: str) -> None:
    job = Job(scene)
    job.trigger(3)
    entry = job.attempt().entry_id
    chosen = {
        "entry": (None, None, None, entry),
        "manifest": ("job", None, None, None),
        "group": (None, "job", None, None),
    }[by]
    assert job.runtime.cancelling.cancel(*chosen, reason="wrong day").cancelled == 1
    scene.clock.advance(days=1)
    assert scene.dispatch().dispatched == ()


def test_a_run_that_was_to_be_stopped_and_fails_is_not_tried_again(scene: Scene) -> None:
    job = Job(scene)

    def cancel_and_fail() -> None:
        job.runtime.cancelling.cancel("job", None, None, None, None)
        raise ValueError("no rows")

    scene.app.workflow("cancelled")(cancel_and_fail)
    job.runtime.schedule("cancelled", "job", None, every(days=1), enabled=False)
    job.trigger(3)
    assert job.attempt().state is ExecutionState.CANCELLED
    assert scene.history.queue.all() == []


def test_handing_back_costs_no_attempt(scene: Scene) -> None:
    job = Job(scene)
    job.trigger(2)
    for _ in range(3):
        scene.dispatch()
        [claimed] = scene.claim()
        assert claimed.attempt == 1
        with scene.store.writing() as tx:
            outcomes.hand_back(tx, OWNER, [claimed.id])
    assert job.attempt().attempt == 1
    job.waits(minutes=1)
    assert job.attempt().attempt == 2


def test_a_lost_worker_costs_a_crash_and_no_attempt(scene: Scene) -> None:
    job = Job(scene)
    job.trigger(2)
    job.attempt()
    job.waits(minutes=1)
    scene.dispatch()
    scene.claim()
    with scene.store.writing() as tx:
        [lost], _ = outcomes.end_orphans(tx, 3)
    assert (lost.attempt, lost.failure and lost.failure.type) == (2, FailureCode.WORKER_LOST)
    again = job.attempt()
    assert (again.attempt, again.crashes, scene.history.queue.all()) == (2, 1, [])


def test_a_job_that_killed_its_worker_too_often_has_no_attempts_left(scene: Scene) -> None:
    job = Job(scene)
    job.trigger(3)
    scene.dispatch()
    scene.claim()
    with scene.store.writing() as tx:
        outcomes.end_orphans(tx, 1)
    assert scene.history.queue.all() == []
    assert len(scene.history.dead_letters.awaiting()) == 1


def test_what_the_manager_gives_up_counts_as_an_attempt(scene: Scene) -> None:
    job = Job(scene, max_retries=10, timeout=timedelta(minutes=1))
    job.trigger(3)
    scene.dispatch()
    scene.clock.advance(minutes=21)
    scene.manage()
    job.waits(minutes=1)
    scene.dispatch()
    [running] = scene.claim()
    assert running.attempt == 2
    scene.clock.advance(minutes=61)
    scene.manage()
    job.waits(minutes=2)
    job.attempt()
    codes = [one.failure.type for one in scene.ended(FAILED) if one.failure]
    assert codes == [FailureCode.STALE_PENDING, FailureCode.STALE_IN_PROGRESS, "ValueError"]
    assert scene.history.queue.all() == []


def test_a_timeout_counts_although_its_worker_is_gone(scene: Scene) -> None:
    job = Job(scene, timeout=timedelta(minutes=1))
    job.trigger(2)
    scene.dispatch()
    scene.claim()
    scene.clock.advance(minutes=2)
    scene.manage()
    with scene.store.writing() as tx:
        outcomes.end_orphans(tx, 3)
    job.waits(minutes=1)
    assert job.attempt().attempt == 2


def test_every_attempt_may_be_refused_as_often_as_the_first(scene: Scene) -> None:
    job = Job(scene)
    job.trigger(2)
    for last, wait in ((False, 5), (True, 60), (False, 5), (True, None)):
        [pending] = scene.dispatch().dispatched
        with scene.store.writing() as tx:
            [taken] = outcomes.take_back(tx, [pending], 2, "away")
        assert taken.state is (FAILED if last else ExecutionState.HANDED_BACK)
        if wait is not None:
            job.waits(seconds=wait)
    assert scene.history.queue.all() == []


def test_what_has_been_removed_meanwhile_is_not_tried_again(scene: Scene) -> None:
    job = Job(scene)
    job.trigger(3)
    scene.dispatch()
    [one] = scene.claim()
    scene.remove("job")
    with scene.store.writing() as tx:
        outcomes.fail_stale_in_progress(tx, [one.id])
    assert scene.history.queue.all() == []


CALLS = {
    "trigger": lambda runtime: runtime.trigger("job", max_attempts=0),
    "enqueue": lambda runtime: runtime.enqueue("job", max_attempts=1001),
    "rerun": lambda runtime: runtime.rerun(1, max_attempts=True),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_every_call_checks_the_number(scene: Scene, call: Any) -> None:
    job = Job(scene)
    with pytest.raises(DefinitionError, match=r"max_attempts = .* from 1 to 1000; for example"):
        call(job.runtime)
    assert scene.history.queue.all() == []


class Family:
    """A parent that activates its child, with two attempts if nothing else is said, and a child
    that fails as told."""

    def __init__(
        self,
        scene: Scene,
        when_busy: str = "keep",
        max_retries: int = 10,
        priority: int = 0,
    ) -> None:
        self.scene = scene
        self.errors: list[BaseException | None] = []
        self.given: list[int] = []
        self.activating = [1]
        self.attempts: dict[int, int] = {}

        def parent(run: Run) -> None:
            for number in self.activating:
                run.activate("child", number, max_attempts=self.attempts.get(number, 2))

        def child(number: int) -> None:
            self.given.append(number)
            if error := self.errors.pop(0) if self.errors else None:
                raise error

        scene.app.workflow(parent)
        scene.app.workflow(child)
        group = Group("parents", priority=priority)
        chain = scene.app.schedule(parent, "parent", None, every(days=1), group=group)
        limits: Any = {"retry": A_MINUTE, "max_retries": max_retries}
        chain.include(child, "child", 0, dormant=True, when_busy=when_busy, **limits)
        scene.apply()
        self.runtime = runtime_of(scene)

    def run(self, rounds: int = 1) -> None:
        for _ in range(rounds):
            self.scene.cycle()


def test_an_activation_is_tried_again_with_its_own_input(scene: Scene) -> None:
    family = Family(scene)
    family.errors = [ValueError("no rows")]
    family.run(2)
    scene.clock.advance(minutes=1)
    family.run()
    assert family.given == [1, 1]
    assert [one.state for one in scene.history.executions.all("child")] == [FAILED, COMPLETED]


def test_what_is_held_waits_for_the_last_attempt(scene: Scene) -> None:
    family = Family(scene)
    family.activating = [1, 2]
    family.errors = [ValueError("no rows"), ValueError("no rows")]
    family.run(3)
    assert family.given == [1], "the second one is held while the first waits for its next attempt"
    scene.clock.advance(minutes=1)
    family.run(2)
    assert family.given == [1, 1, 2]
    assert scene.history.queue.all() == []


def test_a_replaced_activation_has_the_attempts_of_the_one_that_replaced_it(scene: Scene) -> None:
    family = Family(scene, "replace")
    family.activating, family.attempts = [1, 2, 3], {1: 4, 2: 5, 3: 6}
    family.run(3)
    assert family.given == [1, 3]
    assert [one.max_attempts for one in scene.history.executions.all("child")] == [4, 6]


def test_a_triggered_run_that_ends_releases_nothing_before_a_waiting_activation(
    scene: Scene,
) -> None:
    family = Family(scene)
    family.activating = [1, 2]
    family.errors = [ValueError("no rows")]
    family.run(2)
    family.runtime.trigger("child", 7)
    family.run()
    assert family.given == [1, 7]
    scene.clock.advance(minutes=1)
    family.run(2)
    assert family.given == [1, 7, 1, 2]


@pytest.mark.parametrize("parent_first", [True, False])
def test_a_trigger_that_waits_for_its_next_attempt_keeps_no_activation_waiting(
    scene: Scene, parent_first: bool
) -> None:
    family = Family(scene, priority=31 if parent_first else 0)
    family.errors = [RetryAfter(timedelta(hours=9))]
    family.runtime.trigger("child", 7, max_attempts=2)
    family.run()  # the parent activates while the triggered run goes on, or after it has failed
    assert family.given == [7]
    family.run()
    assert family.given == [7, 1]


def test_an_activation_that_waits_is_held_back_by_a_dead_letter_and_ends_with_it(
    scene: Scene,
) -> None:
    family = Family(scene, max_retries=1)
    family.errors = [ValueError("no rows")]
    family.run(2)
    scene.manage()
    scene.clock.advance(hours=1)
    family.run()
    assert family.given == [1]
    [letter] = scene.history.dead_letters.awaiting()
    family.runtime.dead_letters.requeue(letter.id)
    family.run(2)
    assert family.given == [1, 1], "what failed runs once more, and not twice"


@pytest.mark.parametrize("verb", ["requeue", "acknowledge"])
def test_what_is_held_behind_a_dead_letter_is_queued_when_that_is_resolved(
    scene: Scene, verb: str
) -> None:
    family = Family(scene, max_retries=1)
    family.activating = [1, 2]
    family.errors = [ValueError("no rows")]
    family.run(2)
    scene.manage()
    [letter] = scene.history.dead_letters.awaiting()
    getattr(family.runtime.dead_letters, verb)(letter.id)
    family.run(3)
    assert sorted(family.given) == ([1, 1, 2] if verb == "requeue" else [1, 2])
    assert scene.history.queue.all() == []


def test_a_run_made_by_hand_has_nothing_to_activate() -> None:
    run = Run(execution_id=7, workflow="load")
    with pytest.raises(NoParentRunError):
        run.activate_many([("child", 1)], max_attempts=3)
