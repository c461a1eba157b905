"""``headway check``: everything that can be found wrong without starting anything."""

import difflib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from headway.cli.output import AsJson, Column, echo_json, show_table
from headway.cli.target import Target, load
from headway.cli.terminal import cell, console
from headway.definition.app import Headway
from headway.definition.isolated_steps import problems
from headway.domain.manifest import Manifest
from headway.domain.preview import how_it_runs
from headway.domain.schedule import Cron, Once, Schedule
from headway.domain.wall_clock import zone
from headway.errors import DefinitionError
from headway.store.urls import described, parse_url, shown


def check(
    target: Target,
    undeclared_parents: Annotated[
        bool,
        typer.Option(
            "--allow-undeclared-parents",
            help="Warn of parents that this application does not declare, instead of failing.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check an application without starting it: imports, settings, declarations, database address.

    Nothing is written and no database is opened.

    Example: headway check shop:hw
    """
    app = load(target)
    _refuse_unimportable_steps(app)
    address = app.database_url
    manifests = app.declaration().manifests
    missing = list(_missing_parents(manifests))
    if missing and not undeclared_parents:
        raise DefinitionError(_missing_told(missing))
    if as_json:
        echo_json(_facts(app, shown(parse_url(address)), manifests))
        return
    output = console()
    if manifests:
        now = datetime.now(UTC)
        show_table(output, _columns(now), manifests, now=now)
    for line in _remarks(app, manifests):
        output.print(cell(line), soft_wrap=True)
    number = f"{len(manifests)} manifest{'' if len(manifests) == 1 else 's'}"
    fine = f"{target} is fine: {number}, database {described(address)}"
    output.print(cell(fine), soft_wrap=True)


def _refuse_unimportable_steps(app: Headway) -> None:
    found = list(problems(app.registry, app.registry.names()).values())
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise DefinitionError(f"{found[0]}{more}")


def _facts(app: Headway, address: str, manifests: tuple[Manifest, ...]) -> dict[str, object]:
    told = [
        {
            "external_id": one.external_id,
            "workflow": one.workflow,
            "group": one.group.name,
            "schedule": how_it_runs(one),
            "enabled": one.enabled,
        }
        for one in manifests
    ]
    remarks = list(_remarks(app, manifests))
    return {"application": app.name, "database": address, "manifests": told, "remarks": remarks}


def _columns(now: datetime) -> Sequence[Column[Manifest]]:
    return (
        Column("external id", lambda one: cell(one.external_id, _style(one)), long=True),
        Column("workflow", lambda one: one.workflow, long=True, spare=True),
        Column("group", lambda one: one.group.name, long=True, spare=True),
        Column("schedule", _schedule, long=True),
        Column("next by the clock", lambda one: _next(one.schedule, now) if one.enabled else ""),
    )


def _style(manifest: Manifest) -> str:
    return "" if manifest.enabled else "dim"


def _schedule(manifest: Manifest) -> str:
    return how_it_runs(manifest) if manifest.enabled else "disabled"


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


def _missing_parents(manifests: tuple[Manifest, ...]) -> Iterator[str]:
    """A sentence for each parent that no manifest of the application is."""
    declared = {one.external_id for one in manifests}
    for one in manifests:
        for parent in one.parents:
            if parent not in declared:
                close = difflib.get_close_matches(parent, declared, n=1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                yield (
                    f"{one.external_id}: depends_on = {parent!r}: this application declares no "
                    f"manifest with that external id{hint}"
                )


def _missing_told(missing: Sequence[str]) -> str:
    more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
    return (
        f"{missing[0]}{more}; if another application declares the parent, add "
        "--allow-undeclared-parents"
    )


def _remarks(app: Headway, manifests: tuple[Manifest, ...]) -> Iterator[str]:
    names = sorted(app.registry.names())
    unused = [name for name in names if name not in {one.workflow for one in manifests}]
    if not manifests:
        yield "no manifests are declared; add one: hw.schedule(workflow, 'its-id', input, ...)"
    elif unused:
        yield f"workflows without a manifest: {', '.join(unused)}"
    for told in _missing_parents(manifests):
        yield f"warning: {told}"
    for name in app.settings.exclude_from_max_active_jobs:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            yield f"warning: exclude_from_max_active_jobs: no workflow is called {name!r}{hint}"
