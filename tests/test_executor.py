"""Executor: what a task server delivers runs once, under a lease, whoever delivers it how often."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.exc import OperationalError

from headway import Headway, HeadwayError, Run
from headway.domain.execution import ExecutionState, FailureCode
from headway.domain.lease_time import LeaseTime
from headway.domain.work_queue import NewEntry, Source
from headway.executor import Executor
from headway.store import leases, work_queue
from headway.store.servers import EXECUTOR
from headway.store.tables import execution, server
from tests.builders import PATIENCE, Scene, eventually
from tests.store.factories import rows_of

COMPLETED, HANDED_BACK = ExecutionState.COMPLETED, ExecutionState.HANDED_BACK


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url, virtual_time=False, server_lease="10s", shutdown_timeout="0s") as one:
        yield one


def delivered(scene: Scene, workflow: str = "work", server: str = "gpu") -> int:
    """A pending execution that was sent to another task server."""
    [entry] = scene.enqueue(NewEntry(workflow, Source.AD_HOC, "null"))
    return dispatched(scene, entry, server)


def dispatched(scene: Scene, entry: int, server: str = "gpu") -> int:
    with scene.store.writing() as tx:
        return work_queue.dispatch(tx, [entry], {entry: server})[entry]


def test_a_delivered_execution_runs_and_is_recorded_under_a_lease(scene: Scene) -> None:
    owners: list[str] = []

    @scene.app.workflow
    def load() -> None:
        owners.extend(row["id"] for row in rows_of(scene.store, server))

    execution_id = delivered(scene, "load")

    with Executor(scene.app) as executor:
        assert executor.run(execution_id) is COMPLETED

    done = scene.execution(execution_id)
    assert (done.state, done.task_server, [done.owner]) == (COMPLETED, "gpu", owners)
    assert rows_of(scene.store, server) == [], "it has left"
    [step] = scene.history.executions.detail(execution_id).steps
    assert (step.name, step.seconds is None) == ("load", False)


def test_async_steps_run_as_well_and_may_wait_for_each_other(scene: Scene) -> None:
    both = asyncio.Barrier(2)

    @scene.app.workflow
    async def meet() -> None:
        await both.wait()

    ids = [delivered(scene, "meet"), delivered(scene, "meet")]

    with Executor(scene.app) as executor, ThreadPoolExecutor(2) as threads:
        assert list(threads.map(executor.run, ids, timeout=PATIENCE)) == [COMPLETED] * 2


@pytest.mark.story(30)
def test_delivered_twenty_times_it_runs_once(scene: Scene) -> None:
    ran: list[int] = []

    @scene.app.workflow
    def load(run: Run) -> None:
        ran.append(run.execution_id)

    execution_id = delivered(scene, "load")

    with Executor(scene.app) as one, Executor(scene.app) as other, ThreadPoolExecutor(8) as threads:
        turns = [one, other] * 10
        ends = list(threads.map(lambda executor: executor.run(execution_id), turns))

    assert ran == [execution_id]
    assert sorted(ends, key=str) == [None] * 19 + [COMPLETED]


def test_what_was_not_sent_elsewhere_is_not_touched(scene: Scene) -> None:
    local = scene.pending("work")

    with Executor(scene.app) as executor:
        assert executor.run(local) is None
        assert executor.run(999_999) is None

    assert scene.execution(local).state is ExecutionState.PENDING


def crashed(scene: Scene, times: int, workflow: str) -> int:
    """One that was delivered and has taken so many workers along."""
    execution_id = delivered(scene, workflow)
    with scene.store.writing() as tx:
        chosen = update(execution).where(execution.c.id == execution_id)
        tx.connection.execute(chosen.values(crashes=times))
    return execution_id


@pytest.fixture
def held() -> Iterator[threading.Event]:
    let_go = threading.Event()
    yield let_go
    let_go.set()


class Suspects:
    """A run that has crashed and goes on until it is let go, and what ran in which order."""

    def __init__(self, scene: Scene, held: threading.Event) -> None:
        self.ran: list[str] = []
        self.started = threading.Event()

        def hold() -> None:
            self.started.set()
            assert held.wait(PATIENCE)
            self.ran.append("held")

        def note(run: Run) -> None:
            self.ran.append(run.workflow)

        scene.app.workflow("hold")(hold)
        scene.app.workflow("other")(note)
        scene.app.workflow("innocent")(note)


def waits_for_room(executor: Executor) -> bool:
    assert executor._deliveries is not None
    return executor._deliveries._suspects.locked()


@pytest.mark.parametrize(("crashes", "beside"), [(2, 1), (1, 2), (2, 2)])
def test_a_run_on_its_last_chance_shares_its_process_with_no_other_suspect(
    scene: Scene, held: threading.Event, crashes: int, beside: int
) -> None:
    suspects = Suspects(scene, held)
    first, second = crashed(scene, crashes, "hold"), crashed(scene, beside, "other")
    innocent = delivered(scene, "innocent")
    with Executor(scene.app) as executor, ThreadPoolExecutor(2) as threads:
        ends = [threads.submit(executor.run, first)]
        assert suspects.started.wait(PATIENCE)
        ends.append(threads.submit(executor.run, second))
        eventually(lambda: waits_for_room(executor))
        assert executor.run(innocent) is COMPLETED, "who never crashed waits for nobody"
        assert scene.execution(second).state is ExecutionState.PENDING
        held.set()
        assert [end.result(PATIENCE) for end in ends] == [COMPLETED] * 2
    assert suspects.ran == ["innocent", "held", "other"]


def test_suspects_that_have_a_chance_left_run_side_by_side(
    scene: Scene, held: threading.Event
) -> None:
    suspects = Suspects(scene, held)
    first, second = crashed(scene, 1, "hold"), crashed(scene, 1, "other")
    with Executor(scene.app) as executor, ThreadPoolExecutor(1) as threads:
        end = threads.submit(executor.run, first)
        assert suspects.started.wait(PATIENCE)
        assert executor.run(second) is COMPLETED
        held.set()
        assert end.result(PATIENCE) is COMPLETED


def test_who_closes_while_a_suspect_waits_leaves_it_to_others(
    scene: Scene, held: threading.Event
) -> None:
    suspects = Suspects(scene, held)
    first, second = crashed(scene, 1, "hold"), crashed(scene, 2, "other")
    with ThreadPoolExecutor(2) as threads:
        with Executor(scene.app) as executor:
            threads.submit(executor.run, first)
            assert suspects.started.wait(PATIENCE)
            waiting = threads.submit(executor.run, second)
            eventually(lambda: waits_for_room(executor))
        with pytest.raises(HeadwayError, match="closed"):
            waiting.result(PATIENCE)
        held.set()
    assert scene.execution(second).state is ExecutionState.PENDING


def test_a_failure_is_recorded_like_any_other(scene: Scene) -> None:
    scene.failing.add(None)
    execution_id = delivered(scene)

    with Executor(scene.app) as executor:
        assert executor.run(execution_id) is ExecutionState.FAILED

    failure = scene.execution(execution_id).failure
    assert failure is not None and failure.message == "told to fail"


def test_who_does_not_know_the_workflow_sends_it_back_uncharged(scene: Scene) -> None:
    execution_id = delivered(scene, "of-the-next-version")

    with Executor(scene.app) as executor:
        assert executor.run(execution_id) is HANDED_BACK

    [entry] = scene.history.queue.all()
    assert entry.workflow == "of-the-next-version"
    assert scene.execution(execution_id).state is HANDED_BACK


def test_who_never_knows_it_fails_it_with_the_reason_in_the_end(scene: Scene) -> None:
    scene.configure(max_dispatch_attempts=1, unknown_workflow_timeout="15s", server_lease="10s")
    execution_id = delivered(scene, "unheard-of")

    with Executor(scene.app) as executor:
        for seconds in (5, 10):
            assert executor.run(execution_id) is HANDED_BACK
            [entry] = scene.history.queue.all()
            refused_at = scene.execution(execution_id).finished_at
            assert refused_at and entry.scheduled_at == refused_at + timedelta(seconds=seconds)
            execution_id = dispatched(scene, entry.id)
        assert executor.run(execution_id) is ExecutionState.FAILED

    failure = scene.execution(execution_id).failure
    assert failure is not None and failure.type == FailureCode.REFUSED
    assert "does not know the workflow 'unheard-of'" in failure.message


def test_who_runs_all_but_some_sends_those_back(scene: Scene) -> None:
    scene.app.workflow("load")(lambda: None)
    execution_id = delivered(scene)
    with Executor(scene.app, but=["work"]) as executor:
        [row] = scene.history.servers.all()
        assert executor.run(execution_id) is HANDED_BACK
        assert executor.run(delivered(scene, "load")) is COMPLETED

    assert (row.roles, row.slots) == ((EXECUTOR,), 0)
    assert "load" in row.workflows and "work" not in row.workflows
    returned = scene.execution(execution_id)
    assert returned.failure is not None
    assert returned.failure.message == f"{row.id} does not run the workflow 'work'"
    [told] = scene.events.named("execution.handed_back")
    assert told.fields == returned.told()


def test_what_has_no_retry_policy_of_its_own_is_tried_again_by_the_settings(scene: Scene) -> None:
    scene.configure(server_lease="10s", default_retry_delay="3h", max_retry_delay="9h")
    scene.failing.add(None)
    [entry] = scene.enqueue(NewEntry("work", Source.AD_HOC, "null", max_attempts=2))
    execution_id = dispatched(scene, entry)
    with Executor(scene.app) as executor:
        assert executor.run(execution_id) is ExecutionState.FAILED
    [waiting] = scene.history.queue.all()
    ended_at = scene.execution(execution_id).finished_at
    assert ended_at is not None and waiting.scheduled_at == ended_at + timedelta(hours=3)


def test_what_was_refused_too_often_is_tried_again_by_the_settings(scene: Scene) -> None:
    scene.configure(
        server_lease="10s",
        max_dispatch_attempts=1,
        unknown_workflow_timeout=0.01,
        default_retry_delay="3h",
        max_retry_delay="9h",
    )
    [entry] = scene.enqueue(NewEntry("unheard-of", Source.AD_HOC, "null", max_attempts=2))
    ends: list[ExecutionState | None] = []
    with Executor(scene.app) as executor:
        while ends[-1:] != [ExecutionState.FAILED] and len(ends) < 9:
            execution_id = dispatched(scene, entry)
            ends.append(executor.run(execution_id))
    assert set(ends[:-1]) <= {HANDED_BACK}
    [waiting] = scene.history.queue.all()
    ended_at = scene.execution(execution_id).finished_at
    assert ended_at is not None and waiting.scheduled_at == ended_at + timedelta(hours=3)


def test_one_that_was_taken_for_dead_says_what_it_was_running(
    scene: Scene,
) -> None:
    """And gives it up: somebody else starts it again."""
    scene.configure(server_lease="1s", shutdown_timeout="0s")
    started = threading.Event()

    @scene.app.workflow
    async def wait() -> None:
        started.set()
        await asyncio.Event().wait()

    execution_id = delivered(scene, "wait")
    with Executor(scene.app) as executor, ThreadPoolExecutor(1) as threads:
        ending = threads.submit(executor.run, execution_id)
        assert started.wait(PATIENCE)
        [before] = rows_of(scene.store, server)
        with scene.store.writing() as tx:
            leases.leave(tx, before["id"])
        [dead] = scene.events.wait_for("server.dead")
        assert (dead.fields["owner"], dead.fields["jobs"]) == (before["id"], ["wait"])
        assert ending.result(PATIENCE) is HANDED_BACK


def test_what_must_not_go_on_unwatched_is_stopped_once_the_lease_is_nearly_over(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.configure(server_lease="1s", shutdown_timeout="0s")
    started = threading.Event()

    @scene.app.workflow("wait", stop_when_cut_off=True)
    async def wait() -> None:
        started.set()
        await asyncio.Event().wait()

    def away(*arguments: object) -> bool:
        raise OperationalError("UPDATE", {}, Exception("gone"))

    execution_id = delivered(scene, "wait")
    with Executor(scene.app) as executor, ThreadPoolExecutor(1) as threads:
        ending = threads.submit(executor.run, execution_id)
        assert started.wait(PATIENCE)
        monkeypatch.setattr(leases, "renew", away)
        [told] = scene.events.wait_for("server.cut_off")
        assert told.fields["executions"] == [execution_id]
        assert ending.result(PATIENCE) is HANDED_BACK


def test_no_run_begins_once_the_lease_may_be_over(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution_id = delivered(scene)
    with Executor(scene.app) as executor:
        own = executor._lease_time
        assert not own.lasts("another"), "the keeper of the lease tells it"
        monkeypatch.setattr(LeaseTime, "lasts", lambda lease, owner: lease is not own)
        assert executor.run(execution_id) is HANDED_BACK


def test_closing_hands_back_what_runs(scene: Scene) -> None:
    started = threading.Event()

    @scene.app.workflow
    async def wait() -> None:
        started.set()
        await asyncio.Event().wait()

    execution_id = delivered(scene, "wait")

    with ThreadPoolExecutor(1) as threads:
        with Executor(scene.app) as executor:
            ending = threads.submit(executor.run, execution_id)
            assert started.wait(PATIENCE)
        assert ending.result(PATIENCE) is HANDED_BACK

    assert [one.workflow for one in scene.history.queue.all()] == ["wait"]
    with pytest.raises(HeadwayError, match="inside its with only"):
        executor.run(execution_id)


def test_one_that_was_taken_for_dead_goes_on_under_a_new_name(scene: Scene) -> None:
    execution_id = delivered(scene)

    with Executor(scene.app) as executor:
        [before] = rows_of(scene.store, server)
        with scene.store.writing() as tx:
            leases.leave(tx, before["id"])
        assert executor.run(execution_id) is COMPLETED

    again = scene.execution(execution_id).owner
    assert again is not None and again != before["id"]


@pytest.mark.parametrize("wrong", ["7", 7.0, None, True])
def test_what_is_no_id_is_refused(scene: Scene, wrong: Any) -> None:
    with Executor(scene.app) as executor, pytest.raises(HeadwayError) as refused:
        executor.run(wrong)
    assert str(refused.value).startswith(f"execution_id = {wrong!r}: must be a whole number")


def test_what_is_no_application_is_refused() -> None:
    with pytest.raises(HeadwayError, match=r"takes your Headway, as in Executor\(hw\)"):
        Executor("shop")  # type: ignore[arg-type]
    with pytest.raises(HeadwayError, match="inside its with only"):
        Executor(Headway()).run(7)
