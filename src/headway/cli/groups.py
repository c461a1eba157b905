"""``headway groups``: caps, priorities and switches, and who holds a group's slots."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import Console

from headway.cli.asking import Yes, agreed
from headway.cli.completion import group_names
from headway.cli.deployment import App, DatabaseUrl, deployment
from headway.cli.exits import help_without_command
from headway.cli.listing import SHOWN, After, Everything, Limit, Listing, Paging
from headway.cli.output import AsJson, Column, done, echo_json, show_fields, show_table
from headway.cli.terminal import console
from headway.domain.text import shown
from headway.domain.views import COUNTED_TO, ExecutionOverview, GroupDetail, GroupFilter
from headway.domain.views import GroupOverview as Overview

app = typer.Typer(help="List and show groups; change a cap, a priority or a switch.")

Name = Annotated[str, typer.Argument(metavar="GROUP", help="Its name.", autocompletion=group_names)]


def _counted(number: int) -> str:
    return f"{number}+" if number >= COUNTED_TO else str(number)


def _active(group: Overview) -> str:
    active, cap = _counted(group.active), group.max_active_jobs
    return active if cap is None else f"{active} of {cap}"


def _cap(group: Overview) -> str:
    return "no cap" if group.max_active_jobs is None else str(group.max_active_jobs)


LISTING = Listing[Overview](
    [
        Column("group", lambda one: one.name, long=True),
        Column("state", lambda one: one.state),
        Column("active", _active),
        Column("queued", lambda one: _counted(one.queued)),
        Column("prio", lambda one: one.priority, spare=True),
        Column("on", lambda one: one.enabled),
        Column("manifests", lambda one: _counted(one.manifests), spare=True),
        Column("done 24 h", lambda one: _counted(one.completed), spare=True),
        Column("failed", lambda one: _counted(one.failed)),
        Column("dead", lambda one: _counted(one.dead_letters)),
    ],
    "no group is like that; headway groups list shows all",
)
HOLDERS = (
    Column[ExecutionOverview]("execution", lambda one: one.id),
    Column[ExecutionOverview]("manifest", lambda one: one.external_id, long=True),
    Column[ExecutionOverview]("state", lambda one: one.state),
    Column[ExecutionOverview]("since", lambda one: one.started_at or one.dispatched_at),
    Column[ExecutionOverview]("step", lambda one: one.running_step, long=True),
)


@app.callback(invoke_without_command=True)
def _groups(context: typer.Context) -> None:
    help_without_command(context)


@app.command("list")
def list_groups(
    beginning: Annotated[
        str,
        typer.Argument(
            metavar="BEGINNING",
            help="How their names begin.",
            autocompletion=group_names,
            show_default=False,
        ),
    ] = "",
    anywhere: Annotated[
        bool, typer.Option("--anywhere", help="Find it anywhere in the name.")
    ] = False,
    enabled: Annotated[
        bool | None,
        typer.Option("--enabled/--disabled", help="Only those switched on, or off."),
    ] = None,
    limit: Limit = SHOWN,
    everything: Everything = False,
    after: After = None,
    app: App = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """List groups by name: how much runs of what may, and how much waits.

    Example: headway groups list --disabled
    """
    wanted = GroupFilter(search=beginning, anywhere=anywhere, enabled=enabled)
    with deployment(app, database_url) as site:
        LISTING.show(
            lambda cursor, most: site.history.groups.page(wanted, cursor, most),
            Paging(limit, everything, after),
            now=site.now,
            as_json=as_json,
        )


@app.command("show")
def show_group(
    name: Name, app: App = None, database_url: DatabaseUrl = None, as_json: AsJson = False
) -> None:
    """Show a group, and who holds its slots.

    Example: headway groups show nightly
    """
    with deployment(app, database_url) as site:
        found, now = site.history.groups.detail(name), site.now
    if as_json:
        echo_json(found)
    else:
        _show(console(), found, now)


@app.command("set")
def set_group(
    name: Name,
    cap: Annotated[
        str | None,
        typer.Option(metavar="N", help="How many of its jobs may run at once; none for no cap."),
    ] = None,
    priority: Annotated[
        int | None, typer.Option(metavar="0-31", help="Higher ones are dispatched first.")
    ] = None,
    enabled: Annotated[
        bool | None, typer.Option("--enable/--disable", help="Switch it on, or off.")
    ] = None,
    app: App = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Change a group's cap, priority or switch; it stays so across deployments.

    Example: headway groups set nightly --cap 2 --priority 9
    """
    wanted: dict[str, Any] = {"priority": priority, "enabled": enabled}
    changes = {key: value for key, value in wanted.items() if value is not None}
    if cap is not None:
        changes["max_active_jobs"] = _read_cap(cap)
    if not changes:
        raise typer.BadParameter("nothing to change; for example --cap 2, or --disable")
    with deployment(app, database_url) as site:
        site.operator.set_group(name, **changes)
    done(f"group {name}: {_told(changes)}", {"group": name, **changes}, as_json=as_json)


@app.command("trigger")
def trigger_group(
    name: Name,
    yes: Yes = False,
    app: App = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Queue a run of every enabled manifest of a group, dependents aside.

    Example: headway groups trigger nightly --yes
    """
    agreed(f"queue a run of every manifest of group {name}", yes)
    with deployment(app, database_url) as site:
        queued = site.operator.trigger_group(name)
    done(f"queued {queued} of group {name}", {"group": name, "queued": queued}, as_json=as_json)


def _read_cap(given: str) -> int | None:
    if given.lower() == "none":
        return None
    if given.isdecimal() and int(given) > 0:
        return int(given)
    raise typer.BadParameter(
        f"--cap = {shown(given)}: must be a whole number of at least 1, or none for no cap; "
        "for example --cap 4"
    )


def _told(changes: Mapping[str, Any]) -> str:
    words: dict[str, Callable[[Any], str]] = {
        "max_active_jobs": lambda cap: "no cap" if cap is None else f"cap {cap}",
        "priority": lambda priority: f"priority {priority}",
        "enabled": lambda enabled: "enabled" if enabled else "disabled",
    }
    return ", ".join(words[name](value) for name, value in changes.items())


def _show(output: Console, found: GroupDetail, now: datetime) -> None:
    show_fields(output, _fields(found), now=now)
    if found.holders:
        show_table(output, HOLDERS, found.holders, now=now, title="who holds its slots")


def _fields(found: GroupDetail) -> Iterator[tuple[str, object]]:
    one = found.overview
    yield "group", one.name
    yield "state", one.state
    yield "enabled", one.enabled
    yield "cap", _cap(one)
    yield "priority", one.priority
    yield "active", _counted(one.active)
    yield "queued", _counted(one.queued)
    yield "manifests", _counted(one.manifests)
    yield "dead letters", _counted(one.dead_letters)
    yield "last 24 h", f"{one.completed} completed, {one.failed} failed, {one.cancelled} cancelled"
    yield "runs after", ", ".join(found.parents)
    yield "before", ", ".join(found.children)
    yield "changed", found.updated_at
