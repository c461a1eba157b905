"""Jobs on Celery workers: every pool, both brokers, sync and async, stopped, lost and killed."""

from __future__ import annotations

import signal
import time
from collections import Counter

import pytest

from headway.domain.azolla.filters import PauseStateFilter
from headway.domain.execution import ExecutionState, FailureCode
from headway.store import substrate
from headway.store.tables import outbox
from tests.servers.celery.site import Site
from tests.store.factories import rows_of

CANCELLED, COMPLETED = ExecutionState.CANCELLED, ExecutionState.COMPLETED
FAILED = ExecutionState.FAILED


def run_some_of_each_kind(site: Site) -> None:
    site.enqueue("quick", *range(10))
    site.enqueue("quick_async", *range(10, 20))
    site.await_completed(20)


def assert_each_ran_once(site: Site) -> None:
    assert site.states() == Counter({COMPLETED: 20})
    assert sorted(body.job for body in site.bodies()) == list(range(20))
    assert {one.task_server for one in site.executions()} == {"celery"}


@pytest.mark.gate
def test_each_child_of_a_prefork_pool_runs_jobs_under_a_lease_of_its_own(either_site: Site) -> None:
    site = either_site
    site.headway()
    worker = site.worker(concurrency=2)
    owners = site.await_owners(2)

    run_some_of_each_kind(site)

    assert_each_ran_once(site)
    assert set(owners) == set(site.children(worker)), "its children, and not the worker itself"
    assert {one.owner for one in site.executions()} == set(owners.values())
    site.ended(worker)
    assert site.owners() == {}, "they have left"


@pytest.mark.parametrize("pool", ["threads", "gevent", "solo"])
def test_other_pools_run_jobs_under_one_lease(site: Site, pool: str) -> None:
    site.headway()
    worker = site.worker(pool=pool, concurrency=4)
    owners = site.await_owners(1)

    run_some_of_each_kind(site)

    assert_each_ran_once(site)
    assert set(owners) == {worker.pid}
    assert {one.owner for one in site.executions()} == set(owners.values())
    site.ended(worker)
    assert site.owners() == {}


def test_a_run_on_celery_hands_over_too(site: Site) -> None:
    site.headway()
    site.worker(concurrency=1)
    site.enqueue("hands_over", 7)
    site.await_completed(1)
    with site.store.reading() as tx:
        [pause] = substrate.pause_states(tx, PauseStateFilter())
    assert pause.prioritized_actions == ("ad-hoc hands_over: look at number 7",)


@pytest.mark.parametrize("pool", ["threads", "gevent"])
def test_their_jobs_run_at_the_same_time(site: Site, pool: str) -> None:
    site.headway()
    site.worker(pool=pool, concurrency=4)
    site.enqueue("in_thread", 0, 1)
    site.enqueue("in_loop", 2, 3)

    site.await_bodies(4)
    site.release()

    site.await_completed(4)


def test_a_queue_and_a_priority_of_its_own(site: Site) -> None:
    site.headway()
    ordinary = site.worker()
    site.await_owners(2)
    site.enqueue("on_the_side", 7)
    site.enqueue("quick", 8)
    site.await_completed(1)
    assert [body.job for body in site.bodies()] == [8], "nobody listens on the other queue yet"

    side = site.worker("-Q", f"{site.settings['SCENARIO_QUEUE']}-side")
    site.await_completed(2)

    [aside] = [one for one in site.executions() if one.task_server == "side"]
    assert aside.owner in {site.owners().get(pid) for pid in site.children(side)}
    assert ordinary.poll() is None


@pytest.mark.story(30)
def test_a_message_that_comes_twenty_times_starts_one_execution(either_site: Site) -> None:
    site = either_site
    site.headway()
    site.enqueue("in_thread", 1)
    site.wait(lambda: len(site.executions()) == 1)
    [waiting] = site.executions()
    site.deliver(waiting.id, times=20)

    site.worker(concurrency=2)
    site.await_bodies(1)
    site.wait(lambda: site.log().count("delivery.ignored") >= 15)
    site.release()
    site.await_completed(1)
    site.deliver(waiting.id, times=5)
    site.wait(lambda: site.log().count("delivery.ignored") >= 25)

    assert len(site.bodies()) == 1
    assert site.states() == Counter({COMPLETED: 1})


def test_forged_and_pickled_messages_are_refused_and_logged(either_site: Site) -> None:
    site = either_site
    site.headway()
    worker = site.worker(concurrency=1)
    site.await_owners(1)
    evidence = site.folder / "unpickled"

    site.deliver(Touch(str(evidence)), serializer="pickle")
    site.wait(lambda: "ContentDisallowed" in site.log())
    for forged in ["1 OR 1=1", -1, 2**70, 1.5, None, True, [7], {"execution_id": 7}]:
        site.deliver(forged)
    site.deliver()
    site.deliver(1, 2)
    site.wait(lambda: site.log().count("delivery.refused") == 10)
    site.deliver(999_999)
    site.wait(lambda: "delivery.ignored execution_id=999999" in site.log())
    site.enqueue("quick", 1)
    site.await_completed(1)

    assert not evidence.exists()
    assert len(site.bodies()) == 1
    assert worker.poll() is None


class Touch:
    """Whoever unpickles it leaves a file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (self.path, "w")


def test_a_worker_that_would_accept_pickles_does_not_start(site: Site) -> None:
    worker = site.worker(SCENARIO_ACCEPT="json,pickle", C_FORCE_ROOT="1")

    assert worker.wait(60) != 0
    assert "accept_content = ['json', 'pickle']: must be ['json']" in site.log()


@pytest.mark.story(31)
def test_a_killed_child_costs_its_job_one_start(either_site: Site) -> None:
    site = either_site
    site.headway()
    worker = site.worker(concurrency=1)
    site.await_owners(1)
    site.enqueue("in_thread", 1)
    site.await_bodies(1)

    [child] = site.children(worker)
    site.kill(child)
    site.await_bodies(2)
    site.release()
    site.await_completed(1)

    first, second = sorted(site.executions(), key=lambda one: one.id)
    assert first.failure is not None and first.failure.type == FailureCode.WORKER_LOST
    assert (first.entry_id, second.state) == (second.entry_id, COMPLETED)
    assert len(site.bodies()) == 2


@pytest.mark.story(31)
def test_a_killed_parent_takes_its_children_along_and_its_jobs_end_elsewhere(
    either_site: Site,
) -> None:
    site = either_site
    site.headway()
    doomed = site.worker(concurrency=2)
    children = set(site.await_owners(2))
    site.enqueue("in_loop", 1, 2)
    site.await_bodies(2)

    site.kill(doomed.pid)
    other = site.worker(concurrency=2)
    site.wait(lambda: not children & set(site.owners()))
    site.release()
    site.wait(lambda: {one.job for one in site.bodies() if one.ended < 2**63} == {1, 2})
    site.wait(lambda: site.completed() == 2)

    assert other.poll() is None
    ended = Counter(one.input for one in site.executions() if one.state is COMPLETED)
    assert ended == Counter({"1": 1, "2": 1})


@pytest.mark.story(23)
def test_a_job_that_kills_its_child_becomes_a_dead_letter(site: Site) -> None:
    site.settings |= {"HEADWAY_MAX_CRASHES": "2"}
    site.headway()
    worker = site.worker(concurrency=1)
    site.await_owners(1)
    site.trigger("poison-0")

    site.wait(lambda: len(site.history.dead_letters.awaiting()) == 1)
    site.enqueue("quick", 1)
    site.await_completed(1)

    assert len([body for body in site.bodies() if body.job == 0]) == 2
    assert worker.poll() is None


@pytest.mark.parametrize(
    ("pool", "workflow"),
    [
        ("prefork", "in_thread"),
        ("prefork", "in_loop"),
        ("threads", "in_loop"),
        ("gevent", "in_thread"),
    ],
)
def test_what_runs_is_cancelled_through_headway(site: Site, pool: str, workflow: str) -> None:
    site.headway()
    site.worker(pool=pool)
    site.enqueue(workflow, 1)
    [body] = site.await_bodies(1)

    site.runtime.cancelling.cancel(None, None, body.execution_id, None, "enough")
    site.wait(lambda: site.states() == Counter({CANCELLED: 1}))


@pytest.mark.story(33)
def test_what_is_cancelled_before_it_starts_never_does(site: Site) -> None:
    service = site.headway()
    site.enqueue("quick", 1)
    site.wait(lambda: len(site.executions()) == 1)
    [waiting] = site.executions()
    site.wait(lambda: rows_of(site.store, outbox)[0]["published"] > 0)
    site.runtime.cancelling.cancel(None, None, waiting.id, None, "wrong day")
    site.ended(service)

    site.headway()
    site.worker()
    site.enqueue("quick", 2)
    site.await_completed(1)
    site.wait(lambda: f"delivery.ignored execution_id={waiting.id}" in site.log())

    assert [body.job for body in site.bodies()] == [2]
    assert site.states() == Counter({COMPLETED: 1, CANCELLED: 1})


@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_an_isolated_job_that_does_not_listen_is_killed_at_its_timeout(
    site: Site, pool: str
) -> None:
    site.settings |= {"HEADWAY_CANCEL_GRACE": "1s", "HEADWAY_DEFAULT_MAX_RETRIES": "0"}
    site.headway()
    worker = site.worker(pool=pool, concurrency=1)
    site.trigger("stubborn-0")
    site.wait(lambda: site.states() == Counter({FAILED: 1}))

    [failed] = site.executions()
    assert failed.failure is not None and failed.failure.type == FailureCode.JOB_TIMEOUT
    site.enqueue("quick", 1)
    site.await_completed(1)
    assert worker.poll() is None


@pytest.mark.timeout(400)
def test_an_isolated_job_waits_for_a_pool_that_can_run_it(site: Site) -> None:
    site.headway()
    greenlets = site.worker(pool="gevent")
    site.wait(lambda: "workflow 'stubborn': isolated = True: a pool of greenlets" in site.log())
    site.await_owners(1)
    site.enqueue("stubborn", 1)
    site.wait(lambda: ExecutionState.HANDED_BACK in site.states())
    site.worker(pool="threads")
    site.await_owners(2)
    # Side by side, chance says which of them gets it each time.
    greenlets.send_signal(signal.SIGTERM)
    site.wait(lambda: greenlets.poll() is not None)
    site.release()
    site.await_completed(1)

    assert len(site.bodies()) == 1
    assert site.states()[FAILED] == 0


def test_an_async_job_is_stopped_at_its_timeout(site: Site) -> None:
    site.headway()
    site.worker()
    site.trigger("impatient-0")
    site.wait(lambda: site.states()[FAILED] >= 1)

    failure = site.executions()[-1].failure
    assert failure is not None and failure.type == FailureCode.JOB_TIMEOUT


def test_a_worker_that_is_told_to_stop_finishes_its_job_and_leaves(site: Site) -> None:
    site.headway()
    worker = site.worker(concurrency=1)
    site.enqueue("in_thread", 1)
    site.await_bodies(1)

    worker.send_signal(signal.SIGTERM)
    began = time.monotonic()
    site.wait(lambda: "Warm shutdown" in site.log())
    site.release()
    assert worker.wait(60) == 0, site.logs()

    assert time.monotonic() - began < 30
    assert site.states() == Counter({COMPLETED: 1})
    assert site.owners() == {}
