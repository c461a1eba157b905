"""The steps of a run as one text, and back."""

import json
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import Any

from headway.domain.execution import StepRun


def steps_to_json(steps: Iterable[StepRun]) -> str:
    """What is stored with a run.

    >>> from datetime import UTC
    >>> steps_to_json([StepRun("load", datetime(2030, 1, 1, tzinfo=UTC), 0.5)])
    '[{"name":"load","started_at":"2030-01-01T00:00:00+00:00","seconds":0.5}]'
    """
    return f"[{','.join(map(_to_json, steps))}]"


def _to_json(step: StepRun) -> str:
    # By hand, because it is done for every run: a number looks the same in Python and in JSON.
    name, started_at, seconds = step
    took = "null" if seconds is None else repr(seconds)
    return f'{{"name":{_quoted(name)},"started_at":"{started_at.isoformat()}","seconds":{took}}}'


@lru_cache(maxsize=1000)
def _quoted(name: str) -> str:
    return json.dumps(name)


def steps_from_json(text: str) -> tuple[StepRun, ...]:
    """The steps in a stored text; none in one that somebody edited so that it cannot be read.

    >>> steps_from_json("[]"), steps_from_json("{")
    ((), ())
    """
    try:
        return tuple(
            StepRun(one["name"], datetime.fromisoformat(one["started_at"]), one["seconds"])
            for one in json.loads(text)
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        return ()


def steps_of(row: Any) -> tuple[StepRun, ...]:
    """The steps of an execution's row: those that ended, and the one on record as running."""
    ended = steps_from_json(row.steps or "[]")
    names = {step.name for step in ended}
    complete = row.steps == "[]" or row.running_step in names
    if complete or row.running_step is None or row.step_started_at is None:
        return ended
    return (*ended, StepRun(row.running_step, row.step_started_at))
