"""The steps of a run as one text, and back."""

import json
from collections.abc import Iterable
from datetime import datetime

from headway.domain.execution import StepRun


def steps_to_json(steps: Iterable[StepRun]) -> str:
    """What is stored with a run.

    >>> from datetime import UTC
    >>> steps_to_json([StepRun("load", datetime(2030, 1, 1, tzinfo=UTC), 0.5)])
    '[{"name":"load","started_at":"2030-01-01T00:00:00+00:00","seconds":0.5}]'
    """
    listed = [
        {"name": one.name, "started_at": one.started_at.isoformat(), "seconds": one.seconds}
        for one in steps
    ]
    return json.dumps(listed, separators=(",", ":"))


def steps_from_json(text: str) -> tuple[StepRun, ...]:
    """The steps in a stored text.

    >>> steps_from_json("[]")
    ()
    """
    return tuple(
        StepRun(one["name"], datetime.fromisoformat(one["started_at"]), one["seconds"])
        for one in json.loads(text)
    )
