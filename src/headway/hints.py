"""Hints between servers: what there is to do here is announced, what others announce is heard."""

from collections.abc import Callable, Collection

from headway.observe import Observer, told
from headway.store import notifications
from headway.store.bells import hang
from headway.store.engine import Store
from headway.store.together import Line
from headway.wakeups import EVERY_ROLE, Role, WakeUps

LISTEN_PULSE = 1.0
# Between two looks whether there still is a pooler that nothing can be heard through.
DEAF_PAUSE = 3600.0
DISPATCHING = frozenset({Role.DISPATCHER})
DEAF = (
    "a pooler between this process and PostgreSQL keeps notifications from it: what other "
    "processes have to tell is found by polling"
)


def announcing(
    store: Store, observer: Observer, sender: str = ""
) -> Callable[[Collection[Role]], None]:
    """What tells every other listening server that there is something to do for some roles.

    >>> announcing(store, observer)([Role.WORKER])  # doctest: +SKIP
    """

    def announce(roles: Collection[Role]) -> None:
        try:
            notifications.notify(store, roles, sender)
        except Exception as error:
            # A lost hint costs one polling interval; a lost announcer would cost it every time.
            observer.emit("loop.failed", loop="notify", error=told(error))

    return announce


def listen_here(store: Store, wakeups: WakeUps) -> Callable[[], None]:
    """Wake the loops of this process for whatever else it writes to an SQLite file, until what is
    returned is called.

    >>> listen_here(store, WakeUps())()  # doctest: +SKIP
    """
    if store.on_postgresql:
        return lambda: None
    return hang(store.url, lambda topic: wakeups.wake_here(*_roles_of(topic)))


def listen(
    store: Store,
    wakeups: WakeUps,
    observer: Observer,
    stopping: Callable[[], bool],
    listener: str = "",
    start_all: Callable[[Line], bool] = lambda line: False,
) -> float:
    """Wake the loops of this process for whatever others announce, until *stopping*.

    Unless there is nothing to do but to *start_all* that was queued, and that can be done at once.
    Returns how long to wait before listening again.

    >>> listen(store, WakeUps(), Observer(), lambda: False)  # doctest: +SKIP
    """
    unheard = EVERY_ROLE  # whatever was announced before this connection listened
    for topics, line in notifications.listen(store, LISTEN_PULSE, listener):
        if stopping():
            break
        roles = unheard.union(*map(_roles_of, topics))
        if roles != DISPATCHING or not start_all(line):
            wakeups.wake_here(*roles)
        unheard = frozenset()
    else:
        observer.emit("service.pooled", advice=DEAF)
        return DEAF_PAUSE
    return 0.0


def _roles_of(topic: str) -> frozenset[Role]:
    """Whom a notification is for: one role, or everybody (no payload)."""
    return frozenset({Role(topic)}) if topic else EVERY_ROLE
