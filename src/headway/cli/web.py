"""``headway web``: dashboard and REST API in a process of their own."""

from headway.cli.dashboard import Host, Port, Wanted, dashboard_line, open_dashboard
from headway.cli.database import patience
from headway.cli.narration import Narrator, configure_logging
from headway.cli.run import DatabaseUrl
from headway.cli.signals import StopSignals
from headway.cli.target import Target, load
from headway.cli.terminal import say


def web(
    target: Target, host: Host = None, port: Port = None, database_url: DatabaseUrl = None
) -> None:
    """Serve dashboard and REST API only; what they show runs in other processes.

    The first line says where. SIGTERM or Ctrl-C ends it.

    Example: headway web shop:hw --port 8080
    """
    signals = StopSignals()
    configure_logging(quiet=False, verbose=False, several=False)
    app = load(target)
    app.observer.subscribe(Narrator())
    address = database_url or app.database_url
    wait = patience(address, app, signals)
    dashboard = wait(lambda: open_dashboard(app, address, Wanted(host, port)))
    signals.install()
    say(f"{dashboard_line(dashboard)}; Ctrl-C stops")
    signals.wait()
    dashboard.stop()
