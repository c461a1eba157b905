"""What a handler works with: the application, the read side, and who asks."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from anyio import CapacityLimiter
from fastapi import Request

from headway.definition.app import Headway
from headway.definition.explaining import Explaining
from headway.definition.operating import Operator
from headway.definition.runtime import Runtime
from headway.health import Health
from headway.history import History
from headway.store.engine import Store
from headway.web.broadcasting import Broadcaster
from headway.web.failures import Unauthenticated
from headway.web.security.identity import Identity

IDENTITY = "headway.identity"
# Of a request whose actions and answer are written in one transaction.
OPERATOR = "headway.operator"
HISTORY = "headway.history"


@dataclass(frozen=True)
class Surface:
    """One application on one store, as the web sees it.

    *health* is that of the actors in the same process, if there are any.

    >>> Surface(app, store).history  # doctest: +SKIP
    """

    app: Headway
    store: Store
    health: Callable[[], Health] | None = None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    @cached_property
    def history(self) -> History:
        """The read side."""
        return History(self.store)

    @cached_property
    def explaining(self) -> Explaining:
        """What says why something is not running."""
        return Explaining(self.store, self.app.settings, self.app.task_servers)

    @cached_property
    def runtime(self) -> Runtime:
        """What can be done to the deployment, by the connections of the web."""
        most = self.app.settings.max_queued_per_group
        return Runtime(self.app.name, self.app.registry, self.store, most_queued=most)

    @cached_property
    def probe_threads(self) -> CapacityLimiter:
        """The threads in which readiness is checked."""
        return CapacityLimiter(2)

    @cached_property
    def broadcaster(self) -> Broadcaster:
        """What tells streams of events what changes."""
        return Broadcaster(self.history)


def surface(request: Request) -> Surface:
    """The application that *request* is about.

    >>> surface(request).history  # doctest: +SKIP
    """
    found: Surface = request.app.state.surface
    return found


def known_identity(request: Request) -> Identity | None:
    """Who asks, or None if nobody knows them.

    >>> known_identity(Request({"type": "http"})) is None
    True
    """
    found: Identity | None = request.scope.get(IDENTITY)
    return found


def identity(request: Request) -> Identity:
    """Who asks.

    >>> identity(request).name  # doctest: +SKIP
    'ada'
    """
    found = known_identity(request)
    if found is None:
        raise Unauthenticated
    return found


def operator(request: Request) -> Operator:
    """The verbs of the application in the name of whoever asks.

    >>> operator(request).trigger("load-users")  # doctest: +SKIP
    7
    """
    found: Operator | None = request.scope.get(OPERATOR)
    return found or Operator(identity(request).name, surface(request).runtime)


def history(request: Request) -> History:
    """The read side, which sees what this request itself has just done.

    >>> history(request).groups.detail("nightly")  # doctest: +SKIP
    """
    found: History | None = request.scope.get(HISTORY)
    return found or surface(request).history
