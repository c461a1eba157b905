"""The same application with jobs that halt at the step a test names, to be killed there.

Celery's own signals surround the claim and the end; between them there are the job's body, and how
what it returned is written down.
"""

from typing import Any

from celery import signals
from pydantic import BaseModel, model_serializer

from headway import Group, Run
from tests.servers.celery.halts import Halts, Step
from tests.servers.celery.shop import FOLDER, app, hw, note

__all__ = ["app", "hw"]

CAP, JOBS = 4, 8

halts = Halts(FOLDER)


class Receipt(BaseModel):
    """What a job returns."""

    number: int

    @model_serializer
    def written(self) -> int:
        halts.pass_by(Step.FINISH)
        return self.number


@hw.workflow(keep_output=True)
def halting(number: int, run: Run) -> Receipt:
    note("start", number, run)
    halts.pass_by(Step.BODY)
    note("end", number, run)
    return Receipt(number=number)


def before_the_claim(**_: Any) -> None:
    halts.pass_by(Step.CLAIM)


def before_the_acknowledgement(**_: Any) -> None:
    halts.pass_by(Step.ACKNOWLEDGEMENT)


signals.task_prerun.connect(before_the_claim)
signals.task_postrun.connect(before_the_acknowledgement)


for number in range(JOBS):
    group = Group(f"at-most-{CAP}", max_active_jobs=CAP)
    hw.schedule(halting, f"halting-{number}", number, group=group)
