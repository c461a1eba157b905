"""``headway check``: everything that can be found wrong without starting anything."""

import difflib
from collections.abc import Iterator
from datetime import UTC, datetime

from rich.table import Table

from headway.cli.target import Target, load
from headway.cli.terminal import cell, console
from headway.definition.app import Headway
from headway.domain.manifest import Manifest
from headway.domain.schedule import Cron, Once, Schedule
from headway.domain.wall_clock import zone
from headway.store.urls import parse_url, shown


def check(target: Target) -> None:
    """Check an application without starting it: imports, settings, declarations, database address.

    Nothing is written and no database is opened.
    """
    app = load(target)
    address = shown(parse_url(app.database_url))
    manifests = app.declaration().manifests
    output = console()
    if manifests:
        output.print(_table(manifests, datetime.now(UTC)))
    for line in _remarks(app, manifests):
        output.print(cell(line))
    number = f"{len(manifests)} manifest{'' if len(manifests) == 1 else 's'}"
    output.print(cell(f"{target} is fine: {number}, database {address}"))


def _table(manifests: tuple[Manifest, ...], now: datetime) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("external id", "workflow", "group", "schedule", "next by the clock"):
        table.add_column(title)
    for manifest in manifests:
        table.add_row(
            cell(manifest.external_id, "" if manifest.enabled else "dim"),
            cell(manifest.workflow),
            cell(manifest.group.name),
            cell(manifest.schedule.describe() if manifest.enabled else "disabled"),
            cell(_next(manifest.schedule, now) if manifest.enabled else ""),
        )
    return table


def _next(schedule: Schedule, now: datetime) -> str:
    """When the clock alone says so; an interval counts from the last run, which is not known."""
    match schedule:
        case Cron(_, tz):
            upcoming, shown_in = schedule.next_after(now), zone(tz) or UTC
        case Once(at):
            upcoming, shown_in = at, UTC
        case _:
            return ""
    if upcoming is None:
        return "never again"
    return f"{upcoming.astimezone(shown_in):%Y-%m-%d %H:%M:%S %Z}"


def _remarks(app: Headway, manifests: tuple[Manifest, ...]) -> Iterator[str]:
    names = sorted(app.registry.names())
    unused = [name for name in names if name not in {one.workflow for one in manifests}]
    if not manifests:
        yield "no manifests are declared; add one: hw.schedule(workflow, 'its-id', input, ...)"
    elif unused:
        yield f"workflows without a manifest: {', '.join(unused)}"
    for name in app.settings.exclude_from_max_active_jobs:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            yield f"warning: exclude_from_max_active_jobs: no workflow is called {name!r}{hint}"
