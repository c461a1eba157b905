"""Executions: the list, and everything about one."""

from datetime import datetime
from typing import Any

from fastapi import Request, Response
from markupsafe import Markup

from headway.definition.masking import shown_input
from headway.domain.execution import ExecutionState
from headway.domain.views import ExecutionDetail, ExecutionFilter, StepRun
from headway.domain.work_queue import Source
from headway.web.context import surface
from headway.web.drawing.bars import step_bar
from headway.web.forms.inputs import knows
from headway.web.pages.asked import chosen, moment
from headway.web.rendering import page
from headway.web.routing import Scope, ScopedRouter

router = ScopedRouter()

PER_PAGE = 50


@router.get("/executions", scope=Scope.READ, include_in_schema=False)
def executions(
    request: Request,
    state: str = "",
    manifest: str = "",
    group: str = "",
    source: str = "",
    since: str = "",
    until: str = "",
    cursor: str = "",
) -> Response:
    """What runs and what has run, newest first."""
    picked = chosen("state", ExecutionState, state)
    wanted = ExecutionFilter(
        states=[picked] if picked else (),
        manifest=manifest.strip() or None,
        group=group.strip() or None,
        source=chosen("source", Source, source),
        since=moment("since", since),
        until=moment("until", until),
    )
    return page(
        request,
        "executions.html",
        found=surface(request).history.executions.page(wanted, cursor or None, PER_PAGE),
        states=list(ExecutionState),
        sources=list(Source),
        asked={
            "state": state,
            "manifest": manifest,
            "group": group,
            "source": source,
            "since": since,
            "until": until,
        },
        filtered=any((state, manifest, group, source, since, until)),
    )


@router.get("/executions/{execution_id:id}", scope=Scope.READ, include_in_schema=False)
def execution(request: Request, execution_id: int) -> Response:
    """One attempt: its times and steps, what it was given and gave, and what went wrong."""
    asked = surface(request)
    found = asked.history.executions.detail(execution_id)
    run = found.execution
    return page(
        request,
        "execution.html",
        detail=found,
        run=run,
        live=not run.state.terminal,
        why=asked.explaining.why(execution=execution_id) if not run.state.terminal else None,
        way=way_of(found),
        steps=_steps(found, asked.clock()),
        input=shown_input(asked.app.registry, run.workflow, run.input),
        known=knows(asked.app.registry, run.workflow),
    )


def way_of(found: ExecutionDetail) -> list[dict[str, Any]]:
    """The stations of a run: what each is called, when it was reached, and what came after.

    >>> [station["name"] for station in way_of(detail)]  # doctest: +SKIP
    ['Queued', 'Dispatched', 'Started', 'Completed']
    """
    run = found.execution
    ended = run.finished_at is not None
    last = str(run.state).replace("_", " ").capitalize() if ended else "Finished"
    stations = [
        ("Queued", found.queued_at, "queued"),
        ("Dispatched", run.dispatched_at, "dispatched"),
        ("Started", run.started_at, "in_progress"),
        (last, run.finished_at, str(run.state) if ended else "idle"),
    ]
    after = [at for _, at, _ in stations[1:]] + [None]
    return [
        {"name": name, "at": at, "state": state, "took": _between(at, following)}
        for (name, at, state), following in zip(stations, after, strict=True)
        if at is not None or not ended
    ]


def _between(begin: datetime | None, end: datetime | None) -> float | None:
    if begin is None or end is None:
        return None
    return max(0.0, (end - begin).total_seconds())


def _steps(found: ExecutionDetail, now: datetime) -> list[tuple[Any, Markup]]:
    run = found.execution
    start = run.started_at or run.dispatched_at
    whole = ((run.finished_at or now) - start).total_seconds()
    failed = run.failure.step if run.failure else None
    return [
        (
            step,
            step_bar(
                max(0.0, (step.started_at - start).total_seconds()),
                _lasted(step, run.finished_at, now),
                whole,
                _state_of(step.name, step.seconds, failed, run.state),
                step.name,
            ),
        )
        for step in found.steps
    ]


def _lasted(step: StepRun, ended: datetime | None, now: datetime) -> float:
    if step.seconds is not None:
        return step.seconds
    if ended is not None:
        return max(0.0, (ended - step.started_at).total_seconds())
    # In whole seconds, so that a page asked for again within one is the same.
    return float(int(max(0.0, (now - step.started_at).total_seconds())))


def _state_of(name: str, seconds: float | None, failed: str | None, state: ExecutionState) -> str:
    if name == failed:
        return "failed"
    if seconds is not None:
        return "completed"
    return "in_progress" if not state.terminal else str(state)
