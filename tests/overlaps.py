"""What the tests of overlapping runs share: a manifest that may overlap, and how its runs end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from headway import Group, RetryPolicy, every
from headway.domain.execution import Execution, ExecutionState, Failure, Outcome
from headway.domain.schedule import Schedule
from headway.manager.cycle import ManagerResult
from headway.store import outcomes
from tests.builders import OWNER, Scene

LATER = every(days=9)
AT_ONCE = RetryPolicy(timedelta(seconds=1), 1.0, timedelta(seconds=1))
DONE = Outcome(ExecutionState.COMPLETED)
FAILED = Outcome(ExecutionState.FAILED, Failure("work", "Boom", "told to fail"))
CANCELLED = Outcome(ExecutionState.CANCELLED, Failure("work", "JobCancelled", "asked to"))
HANDED_BACK = Outcome(ExecutionState.HANDED_BACK)


def declare(scene: Scene, schedule: Schedule = LATER, **options: Any) -> None:
    """A manifest that may overlap beside one that may not."""
    scene.new_app()
    scene.app.schedule("work", "alone", None, LATER, group=Group("etl"))
    both = {"allow_overlap": True, "retry": AT_ONCE, **options}
    scene.app.schedule("work", "free", None, schedule, group=Group("etl"), **both)
    scene.apply()


def running(scene: Scene, name: str = "free") -> list[Execution]:
    scene.claim()
    live = scene.history.executions.all(states=[ExecutionState.IN_PROGRESS])
    return [one for one in live if one.external_id == name]


def end(scene: Scene, outcome: Outcome, *ended: Execution) -> None:
    with scene.store.writing() as tx:
        outcomes.finish(tx, OWNER, {one.id: outcome for one in ended})


def go_on(scene: Scene) -> ManagerResult:
    managed = scene.manage()
    scene.dispatch()
    return managed
