"""kill -9 for Celery's children, and for their parent, at each step of a job's way.

Four jobs are halted in the four children of a worker, each at another step, and others wait for
their slots; then all that were halted die, and another worker is started.
"""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headway.domain.execution import Execution, ExecutionState, FailureCode
from tests.brokers import Broker
from tests.scenarios.bodies import NEVER, Body, most_at_once
from tests.scenarios.limited import Watch
from tests.servers.celery.halts import Halts, Step
from tests.servers.celery.site import Site

CAP, JOBS = 4, 8  # as in the application
NUMBERS = {step: number for number, step in enumerate(Step)}
LEASE, SWEEP, UNCLAIMED = 6.0, 1.0, 5.0
SLOW_MACHINE = 6.0
SETTINGS = {"HEADWAY_SERVER_LEASE": f"{LEASE}s", "SCENARIO_UNCLAIMED": str(UNCLAIMED)}
PENDING, IN_PROGRESS = ExecutionState.PENDING, ExecutionState.IN_PROGRESS
COMPLETED, FAILED = ExecutionState.COMPLETED, ExecutionState.FAILED


class Way:
    """One job halted at each step, and what becomes of them."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.halts = Halts(site.folder)
        self.service = site.headway()
        self.worker = site.worker(concurrency=len(Step))
        site.await_owners(len(Step))
        self.halted = [self._halt(step, number) for step, number in NUMBERS.items()]
        self.halts.want(None)
        self.killed_at = 0

    def _halt(self, step: Step, number: int) -> int:
        self.halts.want(step)
        self.site.trigger(f"halting-{number}")
        self.site.wait(lambda: self.halts.halted(step) is not None)
        pid = self.halts.halted(step)
        assert pid is not None
        return pid

    def go_on(self, kill: Callable[[Way], None]) -> subprocess.Popen[bytes]:
        """Have them killed while others wait for their slots; returns the worker that is left."""
        assert self.site.states() == Counter({PENDING: 1, IN_PROGRESS: 2, COMPLETED: 1})
        for number in range(len(Step), JOBS):
            self.site.trigger(f"halting-{number}")
        self.killed_at = time.monotonic_ns()
        kill(self)
        other = self.site.worker(concurrency=2)
        self.site.await_completed(JOBS)
        return other

    def runs(self, step: Step) -> list[Execution]:
        name = f"halting-{NUMBERS[step]}"
        return [one for one in self.site.executions() if one.external_id == name]

    def bodies(self, step: Step) -> list[Body]:
        found = [one for one in self.site.bodies() if one.job == NUMBERS[step]]
        return sorted(found, key=lambda one: one.began)

    def seconds_to(self, body: Body) -> float:
        return (body.began - self.killed_at) / 1e9


@pytest.fixture
def site(broker: Broker, postgres_url: str, tmp_path: Path) -> Iterator[Site]:
    """On each of the brokers, with a word to those who wait for it."""
    site = Site(postgres_url, broker, tmp_path, application="halting", **SETTINGS)
    yield site
    site.close()


def kill_the_children(way: Way) -> None:
    for pid in way.halted:
        way.site.kill(pid)


def kill_the_parent(way: Way) -> None:
    way.site.kill(way.worker.pid)
    way.worker.wait()
    way.site.note_deaths(way.halted)


@pytest.mark.story(31)
def test_children_killed_at_each_step_cost_their_jobs_no_more_than_a_start(site: Site) -> None:
    way = Way(site)
    assert set(way.halted) == set(site.children(way.worker)), "one in each child"
    with Watch(site.store) as watch:
        other = way.go_on(kill_the_children)

    assert_each_ended_once(way, watch)
    [ended] = way.runs(Step.ACKNOWLEDGEMENT)
    site.wait(lambda: f"delivery.ignored execution_id={ended.id}" in site.log())
    site.ended(other)
    site.enqueue("quick", JOBS)
    site.await_completed(JOBS + 1)
    assert way.worker.poll() is None, "it has got new children, and they work"


@pytest.mark.story(31)
def test_a_parent_killed_with_a_job_at_each_step_costs_them_no_more_than_a_start(
    site: Site,
) -> None:
    way = Way(site)
    with Watch(site.store) as watch:
        way.go_on(kill_the_parent)

    assert_each_ended_once(way, watch)
    [ended] = way.runs(Step.ACKNOWLEDGEMENT)
    if site.broker.url.startswith("redis"):
        site.deliver(ended.id)  # as Redis does after an hour
    site.wait(lambda: f"delivery.ignored execution_id={ended.id}" in site.log())
    assert len(way.bodies(Step.ACKNOWLEDGEMENT)) == 1


def assert_each_ended_once(way: Way, watch: Watch) -> None:
    site = way.site
    completed = [one.external_id for one in site.executions() if one.state is COMPLETED]
    assert sorted(map(str, completed)) == [f"halting-{number}" for number in range(JOBS)]
    assert (site.history.queue.all(), site.history.dead_letters.awaiting()) == ([], [])
    assert set(site.states()) == {COMPLETED, FAILED}, "and nothing is left over"
    for step in (Step.CLAIM, Step.ACKNOWLEDGEMENT):
        assert_it_ran_once(way, step)
    for step in (Step.BODY, Step.FINISH):
        assert_it_ran_twice(way, step)
    [late] = way.bodies(Step.CLAIM)
    assert 0 < way.seconds_to(late) < UNCLAIMED + SLOW_MACHINE
    assert max(watch.most[CAP], most_at_once(site.bodies())) == CAP, "reached, and never exceeded"
    assert way.service.poll() is None


def assert_it_ran_once(way: Way, step: Step) -> None:
    """Where nothing had begun, or all was over, nothing is charged and nothing begins again."""
    [run], [body] = way.runs(step), way.bodies(step)
    assert (run.state, run.attempt, run.crashes) == (COMPLETED, 1, 0)
    assert body.execution_id == run.id and body.ended != NEVER


def assert_it_ran_twice(way: Way, step: Step) -> None:
    """The same entry, soon, and charged as a crash and not as a failure."""
    lost, again = way.runs(step)
    assert lost.failure is not None and lost.failure.type == FailureCode.WORKER_LOST
    assert (lost.state, lost.attempt, lost.crashes) == (FAILED, 1, 0)
    assert (again.state, again.attempt, again.crashes) == (COMPLETED, 1, 1)
    assert again.entry_id == lost.entry_id
    first, second = way.bodies(step)
    assert (first.execution_id, second.execution_id) == (lost.id, again.id)
    assert (first.ended == first.died_at) is (step is Step.BODY), "else its body was over"
    assert first.lost and 0 < way.seconds_to(second) < LEASE + SWEEP + SLOW_MACHINE
