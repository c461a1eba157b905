"""Watching executions: a line for each thing that happens."""

import json
import time
from typing import NoReturn

import typer

from headway.cli.output import jsonable
from headway.cli.terminal import plain, say
from headway.cli.times import duration, exact
from headway.domain.paging import MOST_PER_PAGE
from headway.domain.views import ExecutionDetail, ExecutionFilter, ExecutionOverview
from headway.history import History

LOOK_AGAIN = 0.5


def follow_all(history: History, wanted: ExecutionFilter, limit: int, *, as_json: bool) -> NoReturn:
    """Print the newest executions, and then each one that begins or changes its state.

    >>> follow_all(history, ExecutionFilter(), 10, as_json=False)  # doctest: +SKIP
    """
    seen: dict[int, str] = {}
    most = min(limit, MOST_PER_PAGE)
    while True:
        page = history.executions.page(wanted, None, most).items
        for one in reversed(page):
            if seen.get(one.id) != one.state:
                typer.echo(json.dumps(jsonable(one)) if as_json else _line(one))
        seen = {one.id: one.state for one in page}
        most = MOST_PER_PAGE
        time.sleep(LOOK_AGAIN)


def follow_one(history: History, execution: int) -> None:
    """Wait for the end of an execution, and say on stderr what it does meanwhile.

    >>> follow_one(history, 17)  # doctest: +SKIP
    """
    told = 0
    while not (found := history.executions.detail(execution)).execution.state.terminal:
        news = _news(found)
        for line in news[told:]:
            say(line)
        told = max(told, len(news))
        time.sleep(LOOK_AGAIN)


def _news(found: ExecutionDetail) -> list[str]:
    return [f"{exact(step.started_at)}  step {step.name}" for step in found.steps]


def _line(one: ExecutionOverview) -> str:
    at = one.finished_at or one.started_at or one.dispatched_at
    words = [exact(at), f"{one.state:<11}", f"#{one.id}", one.external_id or one.workflow]
    if one.finished_at is not None and one.started_at is not None:
        words.append(f"in {duration(one.finished_at - one.started_at)}")
    if one.failure:
        words.append(one.failure)
    return plain("  ".join(words))
