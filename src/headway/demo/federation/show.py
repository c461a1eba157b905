"""Starts the deployments, lets some of their jobs fail, asks for the page and prints it."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table

from headway.definition.azolla import Azolla
from headway.demo.federation.site import HARBOUR, MILL, SALES, WAREHOUSE
from headway.demo.federation.sites import TARGET, Federation, Site, free_ports
from headway.demo.folders import kept_or_temporary
from headway.errors import HeadwayError
from headway.store.engine import Store

PATIENCE = 60.0
LOOK_AGAIN = 0.2
STARTED = (WAREHOUSE, SALES, MILL)
WHAT = {
    WAREHOUSE: "asks for the page; a stock count leaves two things to do",
    SALES: "lets warehouse read; its orders cannot be loaded, and a refund is urgent",
    MILL: "does not let warehouse read",
    HARBOUR: "is in the registry, but nobody has started it",
}


def show_federation(directory: Path | None, console: Console) -> None:
    """Run the demo once, from start to page.

    >>> show_federation(None, Console())  # doctest: +SKIP
    """
    with kept_or_temporary(directory) as folder, Federation(folder, _sites(folder)) as federation:
        console.print("Three deployments, each with a database and processes of its own:\n")
        console.print(_table(federation))
        for name in STARTED:
            console.print(f"starting {name} …")
            federation.start(name)
        console.print("\nSomebody notes what is to be done …")
        _take_notes(federation)
        console.print("Jobs run, and some fail …")
        for name in STARTED:
            _wait_for(f"{name} to leave a pause state", partial(_rests, federation, name))
        console.print(f"The operator comes back: headway azolla request-manifest {TARGET}\n")
        page = federation.command(
            WAREHOUSE, "azolla", "request-manifest", TARGET, "--wait", str(PATIENCE)
        )
        if page.returncode:
            raise HeadwayError(f"no page was built: {page.stderr.strip()}")
        text = page.stdout.rstrip()
        console.print(Markdown(text) if console.is_terminal else text)
        console.print("\nIn your own deployments: docs/guides/federation.md")


def _sites(folder: Path) -> dict[str, Site]:
    ports = dict(zip(WHAT, free_ports(len(WHAT)), strict=True))
    return {
        name: Site(
            name,
            f"sqlite:///{folder / f'{name}.db'}",
            port,
            readers=frozenset({WAREHOUSE} if name in (SALES, HARBOUR) else ()),
        )
        for name, port in ports.items()
    }


def _table(federation: Federation) -> Table:
    table = Table("deployment", "answers at", "what it does here", box=None, pad_edge=False)
    for name, site in federation.sites.items():
        table.add_row(name, site.address, WHAT[name])
    return table


@contextmanager
def _desk(federation: Federation, name: str) -> Iterator[Azolla]:
    with closing(Store(federation.sites[name].database_url)) as store:
        yield Azolla(name, store)


def _take_notes(federation: Federation) -> None:
    with _desk(federation, SALES) as sales:
        refund = sales.objective(
            "refund the 12 customers charged twice", urgency=4, importance=3, status="TODO"
        )
        sales.block(refund.objective_id, "USER_INPUT", "finance has to approve 1,340 euros")
    with _desk(federation, WAREHOUSE) as warehouse:
        warehouse.objective("move the returns to shelf 9", urgency=1, status="TODO")
        warehouse.capture("the scanner at gate 2 beeps twice", source="phone")


def _rests(federation: Federation, name: str) -> bool:
    with _desk(federation, name) as desk:
        return len(desk.pause_states()) > 0


def _wait_for(what: str, condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise HeadwayError(f"waited {PATIENCE:g} s for {what} in vain")
        time.sleep(LOOK_AGAIN)
