"""kill -TERM during a running job: exit 0, finished or handed back, and a restart goes on."""

import signal

import pytest

from headway.domain.execution import ExecutionState
from tests.scenarios.deployment import Deployment

COMPLETED, HANDED_BACK = ExecutionState.COMPLETED, ExecutionState.HANDED_BACK
ONE_AT_A_TIME = {"HEADWAY_WORKER_COUNT": "1"}
TWO_AT_A_TIME = {"HEADWAY_WORKER_COUNT": "2"}


def names(count: int) -> list[str]:
    return [f"job-{number}" for number in range(count)]


def assert_each_ran_once(deployment: Deployment, count: int) -> None:
    """Every job's effect exactly once, nothing left, nobody charged for a stop."""
    assert deployment.evidence("end") == dict.fromkeys(names(count), 1)
    assert deployment.states()[COMPLETED] == count
    assert deployment.history.queue.all() == []
    assert {one.attempt for one in deployment.history.executions.all()} == {1}
    assert set(deployment.states()) <= {COMPLETED, HANDED_BACK}


def test_a_job_that_ends_within_the_grace_is_finished(deployment: Deployment) -> None:
    process = deployment.start(settings=ONE_AT_A_TIME)
    deployment.wait_for("start", 1)

    process.send_signal(signal.SIGTERM)
    deployment.release()
    deployment.ended(process)

    assert deployment.evidence("start").total() == 1, "and nothing else is begun"
    assert deployment.evidence("end").total() == 1
    assert deployment.states()[COMPLETED] == 1

    again = deployment.start(settings=ONE_AT_A_TIME)
    deployment.wait_until_completed(2)
    deployment.stop(again)
    assert_each_ran_once(deployment, 2)
    assert deployment.states() == {COMPLETED: 2}


def test_jobs_beyond_the_grace_are_handed_back_and_run_again_uncharged(
    deployment: Deployment,
) -> None:
    process = deployment.start(settings=TWO_AT_A_TIME | {"HEADWAY_SHUTDOWN_TIMEOUT": "0.1s"})
    deployment.wait_for("start", 2)

    deployment.stop(process)

    assert deployment.evidence("end").total() == 0
    assert deployment.states() == {HANDED_BACK: 2}
    queued = deployment.history.queue.all()
    assert sorted(str(one.external_id) for one in queued) == names(2)

    deployment.release()
    again = deployment.start(settings=TWO_AT_A_TIME)
    deployment.wait_until_completed(2)
    deployment.stop(again)
    assert_each_ran_once(deployment, 2)
    assert deployment.states() == {HANDED_BACK: 2, COMPLETED: 2}
    entries = [one.entry_id for one in deployment.history.executions.all()]
    assert sorted(set(entries)) == sorted(one.id for one in queued), "the same entries again"


def test_a_second_signal_hands_back_at_once(deployment: Deployment) -> None:
    process = deployment.start(settings=TWO_AT_A_TIME | {"HEADWAY_SHUTDOWN_TIMEOUT": "1h"})
    deployment.wait_for("start", 2)

    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    deployment.ended(process)

    assert deployment.states() == {HANDED_BACK: 2}


@pytest.mark.full
def test_stopped_again_and_again_nothing_is_lost_or_run_twice(deployment: Deployment) -> None:
    jobs = 30
    deployment.release()
    for seen in (1, 8, 16, 24):
        process = deployment.start(jobs=jobs, settings=TWO_AT_A_TIME)
        deployment.wait_for("start", seen)
        deployment.stop(process)
    last = deployment.start(jobs=jobs, settings=TWO_AT_A_TIME)
    deployment.wait_until_completed(jobs)
    deployment.stop(last)

    assert_each_ran_once(deployment, jobs)
    assert deployment.evidence("start") == deployment.evidence("end")


@pytest.mark.full
def test_an_idle_process_stops_with_0(deployment: Deployment) -> None:
    process = deployment.start(jobs=1)
    deployment.release()
    deployment.wait_until_completed(1)

    deployment.stop(process)


@pytest.mark.full
@pytest.mark.story(47)
def test_two_processes_share_the_work(deployment: Deployment) -> None:
    jobs = 20
    processes = [deployment.start(jobs=jobs, settings=TWO_AT_A_TIME) for _ in range(2)]
    deployment.wait_for("start", 4)
    deployment.release()
    deployment.wait_until_completed(jobs)
    deployment.stop(*processes)

    assert_each_ran_once(deployment, jobs)
    assert len({one.owner for one in deployment.history.executions.all()}) == 2
