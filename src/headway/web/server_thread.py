"""An HTTP server in a thread of this process, from construction until it is stopped."""

import socket
from collections.abc import Callable
from threading import Thread

from starlette.types import ASGIApp
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

LONGEST_HEAD = 64 * 1024


class ServerThread:
    """An ASGI application behind *listener*, until :meth:`stop`; *on_end* is called at its end.

    *protocol* says how patient it is with whoever connects, *at_once* how many are answered at
    the same time (None: the protocol and the application decide). What is being answered when it
    stops has *grace* seconds.

    >>> ServerThread(app, listener, "headway-web", H11Protocol, 64, 2).stop()  # doctest: +SKIP
    """

    def __init__(
        self,
        app: ASGIApp,
        listener: socket.socket,
        name: str,
        protocol: type[H11Protocol],
        at_once: int | None,
        grace: int,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._listener = listener
        self._on_end = on_end
        self._server = Server(
            Config(
                app,
                http=protocol,
                ws="none",
                loop="asyncio",
                lifespan="off",
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=at_once,
                timeout_graceful_shutdown=grace,
                h11_max_incomplete_event_size=LONGEST_HEAD,
            )
        )
        self._thread = Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Finish what is being answered, and end."""
        self._server.should_exit = True
        self._thread.join()

    def _serve(self) -> None:
        try:
            with self._listener:
                self._server.run(sockets=[self._listener])
        finally:
            self._on_end()


def listen_on(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 is any that is free.

    >>> with listen_on("127.0.0.1", 0) as listener:
    ...     listener.getsockname()[0]
    '127.0.0.1'
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


def address_of(host: str, listener: socket.socket) -> str:
    """Where a browser finds what listens on *host*.

    >>> with listen_on("127.0.0.1", 0) as listener:
    ...     address_of("127.0.0.1", listener).rpartition(":")[0]
    'http://127.0.0.1'
    """
    named = f"[{host}]" if ":" in host else host
    return f"http://{named}:{listener.getsockname()[1]}"
