"""Serving dashboard and REST API in a thread of this process.

On loopback whoever starts the process is let in by an address that works once. Beyond loopback
nothing is served unless there are tokens: an open port must never be an open door.
"""

import os
import shlex
import socket
import stat
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path

from headway.config import Settings
from headway.definition.app import Headway
from headway.definition.tokens import Tokens
from headway.domain.access import checked_secret
from headway.domain.text import shown
from headway.errors import HeadwayError, SettingsError
from headway.health import Health
from headway.store.engine import Store
from headway.web.app import build_app
from headway.web.connections import BoundedRequests, Connections, patient
from headway.web.context import Surface
from headway.web.security.access import Access
from headway.web.server_thread import ServerThread, address_of, listen_on

CONNECTIONS = 5
DEFAULT_PORT = 8700
# 8701 is where the exchange membrane listens.
NEXT_PORTS = range(8702, 8720)
STOP_SECONDS = 2
LARGEST_SECRET = 64 * 1024


class Dashboard:
    """Serves *app* from *store* until :meth:`stop`; the store is closed with it.

    Without any token, *entrance* is the address with a key that lets in whoever opens it first.

    >>> dashboard = Dashboard(hw, store, "127.0.0.1", 8700)  # doctest: +SKIP
    >>> dashboard.entrance                                   # doctest: +SKIP
    'http://127.0.0.1:8700/?token=vFq1…'
    """

    def __init__(
        self,
        app: Headway,
        store: Store,
        host: str | None = None,
        port: int | None = None,
        health: Callable[[], Health] | None = None,
    ) -> None:
        settings = app.settings
        host = host or settings.dashboard_host
        self._store = store
        tokens = Tokens(store)
        self.access = access_of(settings, host, tokens)
        open_to_nobody = not tokens.exist()
        if open_to_nobody and not is_loopback(host):
            raise SettingsError(
                f"dashboard_host = {shown(host)}: others can reach this address, and there is no "
                "token to know them by; make one with headway tokens create, or use 127.0.0.1"
            )
        listener = listen(host, settings.dashboard_port if port is None else port)
        self.address = settings.dashboard_public_url or address_of(host, listener)
        key = f"/?token={self.access.start_key()}" if open_to_nobody else ""
        self.entrance = self.address + key
        served = build_app(app, store, self.access, health=health)
        self._surface: Surface = served.state.surface
        self._server = ServerThread(
            BoundedRequests(served),
            listener,
            "headway-dashboard",
            patient(Connections(self.access.proxies.trust)),
            None,
            STOP_SECONDS,
        )

    def stop(self) -> None:
        """Finish what is being answered, and end."""
        self._surface.broadcaster.stop()
        self._server.stop()
        self._store.close()


def access_of(settings: Settings, host: str, tokens: Tokens | None = None) -> Access:
    """Who is let in by *settings* when *host* is listened on.

    >>> access_of(Settings(), "127.0.0.1").hosts.know("127.0.0.1:8700")
    True
    """
    return Access(
        tokens=tokens,
        secret=read_secret(settings.dashboard_secret_file),
        public_url=settings.dashboard_public_url,
        allowed_hosts=(*settings.dashboard_allowed_hosts, host),
        trusted_proxies=settings.dashboard_trusted_proxies,
    )


def read_secret(file: str | None) -> bytes | None:
    """The secret in *file*, if it is hard to guess.

    >>> read_secret(None) is None
    True
    """
    if file is None:
        return None
    try:
        with Path(file).open(encoding="utf-8", errors="surrogateescape") as opened:
            text, mode = opened.read(LARGEST_SECRET), os.fstat(opened.fileno()).st_mode
    except OSError as error:
        raise SettingsError(f"dashboard_secret_file: {error.strerror}: {shown(file)}") from None
    if mode & stat.S_IRWXO:
        raise SettingsError(
            f"dashboard_secret_file = {shown(file)}: must not be open to every user; for example "
            f"chmod 600 {shlex.quote(file)}"
        )
    return checked_secret("dashboard_secret_file", text)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach *host*.

    >>> is_loopback("localhost"), is_loopback("127.8.0.1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; if the default port is taken, on the next that is free.

    >>> with listen("127.0.0.1", 0) as listener:
    ...     listener.getsockname()[0]
    '127.0.0.1'
    """
    for candidate in (port, *(NEXT_PORTS if port == DEFAULT_PORT else ())):
        try:
            return listen_on(host, candidate)
        except OSError as error:
            refused = error
    raise HeadwayError(
        f"the dashboard cannot listen on {host}:{port}: {refused.strerror}; choose another with "
        "--port, or none with --no-dashboard"
    )
