"""``headway plan``: what applying would do, for people and for CI."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from headway.cli.output import AsJson, echo_json
from headway.cli.plan_text import show
from headway.cli.run import DatabaseUrl
from headway.cli.target import Target, load
from headway.cli.terminal import cell, console
from headway.definition.registry import Registry
from headway.definition.stranded import stranded
from headway.domain.declaration import Declaration
from headway.domain.plan import Known, Plan, compare
from headway.store import planning, queued_inputs
from headway.store.engine import Store
from headway.store.migrate import check_schema, current_version
from headway.store.urls import described, parse_url

CHANGES = 3


def plan(
    target: Target,
    database_url: DatabaseUrl = None,
    everything: Annotated[
        bool, typer.Option("--all", help="List everything, not only the first 20 of each kind.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what applying the declarations would do; exits 0 without changes, 3 with.

    Nothing is written.

    Example: headway plan shop:hw
    """
    app = load(target)
    address = database_url or app.database_url
    found = planned(address, app.declaration(), app.registry)
    if as_json:
        echo_json(found)
    else:
        output = console()
        output.print(cell(f"{target} on {described(address)}", "dim"), soft_wrap=True)
        show(output, found, everything=everything)
    if found.has_changes:
        raise typer.Exit(CHANGES)


def planned(address: str, wanted: Declaration, registry: Registry) -> Plan:
    """The plan for the database at *address*; a SQLite file that is not there yet is empty.

    >>> planned("sqlite:///not-there.db", Declaration("shop", {}, ()), Registry()).has_changes
    False
    """
    url = parse_url(address)
    embedded = url.get_backend_name() == "sqlite"
    if embedded and not Path(str(url.database)).exists():
        return compare(wanted, Known())  # asking must not create the file
    with closing(Store(address)) as store:
        store.check()
        if embedded and _is_empty(store):
            return compare(wanted, Known())
        check_schema(store)
        with store.reading() as tx:
            found = planning.plan(tx, wanted)
            queued = queued_inputs.of_application(tx, wanted.application)
        return found.with_stranded(stranded(registry, queued))


def _is_empty(store: Store) -> bool:
    """The embedded database is migrated by the first start; others need it before."""
    with store.reading() as tx:
        return current_version(tx) == 0
