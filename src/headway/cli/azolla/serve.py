"""``headway azolla serve``: the exchange membrane in a process of its own."""

import importlib
import sys
from contextlib import closing
from typing import Annotated

import typer

import headway
from headway.cli.azolla.registry import registry_path
from headway.cli.database import open_database, patience
from headway.cli.narration import Narrator, configure_logging
from headway.cli.run import DatabaseUrl
from headway.cli.serving import counted
from headway.cli.signals import StopSignals
from headway.cli.target import Target, load
from headway.cli.terminal import first_line, plain
from headway.errors import HeadwayError
from headway.extras import require
from headway.federation.registry import Registry, RegistryFile
from headway.store.migrate import prepare

ENDED = 0


def serve(
    target: Target,
    host: Annotated[
        str, typer.Option(metavar="HOST", help="The address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="0 takes any that is free.")
    ] = 8701,
    database_url: DatabaseUrl = None,
) -> None:
    """Answer the read-only queries of the deployments in the registry.

    The first line says where. SIGTERM or Ctrl-C ends it.

    Example: headway azolla serve shop:hw --port 8701
    """
    signals = StopSignals()
    require("federation")
    # By name, for web and cli stand beside each other and the packages may be missing.
    web = importlib.import_module("headway.web.membrane")
    configure_logging(quiet=False, verbose=False, several=False)
    app = load(target)
    registry = RegistryFile(registry_path(app), app.observer)
    app.observer.subscribe(Narrator())
    address = database_url or app.database_url
    wait = patience(address, app, signals)
    with closing(open_database(address, web.CONNECTIONS)) as store:
        wait(lambda: prepare(store))
        signals.install()
        try:
            server = web.MembraneServer(
                web.MembraneApp(store, registry, app.observer),
                host,
                port,
                on_end=lambda: signals.stops.put(ENDED),
            )
        except OSError as error:
            raise HeadwayError(f"cannot listen on {host}:{port}: {first_line(error)}") from None
        typer.echo(_start_line(registry.current(), server.address))
        sys.stdout.flush()
        if signals.wait() == ENDED:
            raise HeadwayError("the server has ended by itself; the log says why")
        server.stop()


def _start_line(registry: Registry, address: str) -> str:
    known = counted(len(registry.peers), "peer")
    return plain(
        f"headway {headway.__version__} answers for {registry.own.id} at {address} ({known}); "
        "Ctrl-C stops"
    )
