"""``headway azolla objective``: what is to be reached, and what keeps it from going on."""

from typing import Annotated, Any

import typer

from headway.cli.azolla.desk import AsJson, Limit, echo_json, echo_rows, opened
from headway.cli.output import done
from headway.cli.target import Target
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
    as_json: AsJson = False,
) -> None:
    """Add an objective; prints its id.

    Example: headway azolla objective add shop:hw "clean the staging tables" --urgency 3
    """
    given = _given(importance=importance, urgency=urgency, status=status, criteria=criteria)
    with opened(target) as azolla:
        one = azolla.objective(title, objective_id=objective_id, **given)
    done(one.objective_id, one, as_json=as_json)


def change(
    target: Target,
    objective_id: ObjectiveId,
    title: Annotated[str | None, typer.Option(help="A new title.")] = None,
    criteria: Criteria = None,
    importance: Importance = None,
    urgency: Urgency = None,
    status: Status = None,
    because: Annotated[str | None, typer.Option(help="Why it is blocked.")] = None,
    as_json: AsJson = False,
) -> None:
    """Change an objective; what is left out stays.

    Example: headway azolla objective set shop:hw clean-staging --status done
    """
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
    done(_told(one), one, as_json=as_json)


def show(target: Target, status: Status = None, limit: Limit = 50, as_json: AsJson = False) -> None:
    """List objectives with what they wait for, those touched last first.

    Example: headway azolla objective list shop:hw --status blocked
    """
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
    as_json: AsJson = False,
) -> None:
    """Note what an objective waits for; prints the blocker's id.

    Example: headway azolla objective block shop:hw clean-staging user_input "which may go?"
    """
    with opened(target) as azolla:
        one = azolla.block(objective_id, kind, description)
    done(one.blocker_id, one, as_json=as_json)


def resolve(
    target: Target,
    blocker_id: Annotated[str, typer.Argument(metavar="BLOCKER", help="Its id.")],
    as_json: AsJson = False,
) -> None:
    """Note that a blocker is gone.

    Example: headway azolla objective resolve shop:hw blocker-8c1d0e7f2a3b
    """
    with opened(target) as azolla:
        azolla.resolve(blocker_id)
    facts = {"blocker_id": blocker_id, "resolved": True}
    done(f"{blocker_id} is resolved", facts, as_json=as_json)


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
