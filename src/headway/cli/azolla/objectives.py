"""``headway azolla objective``: what is to be reached, and what keeps it from going on."""

from typing import Annotated, Any

import typer

from headway.cli.azolla.desk import AsJson, Limit, echo_json, echo_rows, opened
from headway.cli.target import Target
from headway.cli.terminal import plain
from headway.domain.azolla.artifacts import Objective

ObjectiveId = Annotated[str, typer.Argument(metavar="OBJECTIVE", help="Its id.")]
Importance = Annotated[int | None, typer.Option(metavar="0-4", help="How much it matters.")]
Urgency = Annotated[
    int | None, typer.Option(metavar="0-4", help="How soon it is wanted; 4 is now.")
]
Status = Annotated[
    str | None, typer.Option(help="new, todo, in_progress, blocked or done.", metavar="STATUS")
]
Criteria = Annotated[str | None, typer.Option(help="How one sees that it is reached.")]


def add(
    target: Target,
    title: Annotated[str, typer.Argument(help="What is to be reached.")],
    objective_id: Annotated[
        str | None, typer.Option("--id", help="An id of your own; else one is made up.")
    ] = None,
    criteria: Criteria = None,
    importance: Importance = None,
    urgency: Urgency = None,
    status: Status = None,
) -> None:
    """Add an objective; prints its id."""
    given = _given(importance=importance, urgency=urgency, status=status, criteria=criteria)
    with opened(target) as azolla:
        one = azolla.objective(title, objective_id=objective_id, **given)
    typer.echo(plain(one.objective_id))


def change(
    target: Target,
    objective_id: ObjectiveId,
    title: Annotated[str | None, typer.Option(help="A new title.")] = None,
    criteria: Criteria = None,
    importance: Importance = None,
    urgency: Urgency = None,
    status: Status = None,
    because: Annotated[str | None, typer.Option(help="Why it is blocked.")] = None,
) -> None:
    """Change an objective; what is left out stays."""
    given = _given(
        title=title,
        importance=importance,
        urgency=urgency,
        status=status,
        criteria=criteria,
        because=because,
    )
    with opened(target) as azolla:
        one = azolla.update(objective_id, **given)
    typer.echo(plain(_told(one)))


def show(target: Target, status: Status = None, limit: Limit = 50, as_json: AsJson = False) -> None:
    """List objectives with what they wait for, those touched last first."""
    with opened(target) as azolla:
        found = azolla.objectives(status=status, limit=limit)
    if as_json:
        echo_json(found)
        return
    titles = ["id", "status", "urgency", "importance", "touched (UTC)", "title", "waits for"]
    echo_rows(titles, [_row(one) for one in found], "no objectives")


def block(
    target: Target,
    objective_id: ObjectiveId,
    kind: Annotated[
        str,
        typer.Argument(
            help="user_input, external_system, dependency_change, design_decision or "
            "environment_access.",
            metavar="KIND",
        ),
    ],
    description: Annotated[str, typer.Argument(help="What it waits for.")],
) -> None:
    """Note what an objective waits for; prints the blocker's id."""
    with opened(target) as azolla:
        one = azolla.block(objective_id, kind, description)
    typer.echo(one.blocker_id)


def resolve(
    target: Target,
    blocker_id: Annotated[str, typer.Argument(metavar="BLOCKER", help="Its id.")],
) -> None:
    """Note that a blocker is gone."""
    with opened(target) as azolla:
        azolla.resolve(blocker_id)
    typer.echo(plain(f"{blocker_id} is resolved"))


def _given(**options: Any) -> dict[str, Any]:
    names = {"criteria": "acceptance_criteria", "because": "blocked_reason"}
    return {names.get(name, name): value for name, value in options.items() if value is not None}


def _told(one: Objective) -> str:
    degrees = f"urgency {one.urgency}, importance {one.importance}"
    return f"{one.objective_id}: {one.status}, {degrees}, {one.title}"


def _row(one: Objective) -> tuple[object, ...]:
    waits = [f"{it.description} ({it.blocker_id})" for it in one.blocked_on if not it.resolved]
    touched = f"{one.updated_at:%Y-%m-%d %H:%M}"
    shown = (one.objective_id, one.status, one.urgency, one.importance, touched, one.title)
    return (*shown, "; ".join(waits) or one.blocked_reason or "")
