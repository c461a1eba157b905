"""Who wakes whom: events inside this process, and a hint to other servers on PostgreSQL."""

import threading
from collections.abc import Callable, Iterable
from enum import StrEnum


class Role(StrEnum):
    """What a headway process can do."""

    MANAGER = "manager"
    DISPATCHER = "dispatcher"
    WORKER = "worker"


EVERY_ROLE = frozenset(Role)


def concerned(of_manifests: bool) -> tuple[Role, ...]:
    """Whom it concerns that something has ended: room is free, and manifests may go on.

    >>> concerned(of_manifests=False)
    (<Role.DISPATCHER: 'dispatcher'>,)
    """
    return (Role.MANAGER, Role.DISPATCHER) if of_manifests else (Role.DISPATCHER,)


class WakeUps:
    """Wakes the loops of this process at once and tells other servers through *announce*.

    As long as there is ``nobody_else`` nobody is told: a hint costs a transaction, and whoever
    comes begins with a look at everything.

    >>> heard = []
    >>> wakeups = WakeUps()
    >>> wakeups.on(Role.DISPATCHER, lambda: heard.append("dispatcher"))
    >>> wakeups.wake(Role.DISPATCHER, Role.WORKER)
    >>> heard
    ['dispatcher']
    """

    def __init__(self, announce: Callable[[Iterable[Role]], None] | None = None) -> None:
        self._announce = announce
        self.nobody_else = False
        self.for_itself = False
        self._listeners: dict[Role, Callable[[], None]] = {}

    def on(self, role: Role, listener: Callable[[], None]) -> None:
        """Call *listener* whenever *role* has something to do."""
        self._listeners[role] = listener

    def wake(self, *roles: Role) -> None:
        """There is something to do for *roles*, here or elsewhere."""
        self.wake_here(*roles)
        if self._announce is not None and not self.nobody_else:
            self._announce(roles)

    def tell_of_end(self, of_manifests: bool, *, stopping: bool = False) -> None:
        """Something has ended. Who dispatches ``for_itself`` uses the room this makes itself,
        unless it is *stopping*.

        >>> WakeUps().tell_of_end(of_manifests=False)
        """
        if self.for_itself and not stopping:
            self.wake_here(Role.DISPATCHER)
            if of_manifests:
                self.wake(Role.MANAGER)
        else:
            self.wake(*concerned(of_manifests))

    def wake_here(self, *roles: Role) -> None:
        """There is something to do for *roles* in this process."""
        for role in roles:
            listener = self._listeners.get(role)
            if listener is not None:
                listener()


class Announcer:
    """Sends collected topics from a thread of its own: the first at once, then at most every 5 ms.

    >>> sent = []
    >>> announcer = Announcer(sent.append)
    >>> announcer.start(); announcer([Role.WORKER]); announcer.stop()
    >>> sent
    [{<Role.WORKER: 'worker'>}]
    """

    PAUSE = 0.005

    def __init__(self, send: Callable[[set[Role]], None]) -> None:
        self._send = send
        self._topics: set[Role] = set()
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="headway-notify", daemon=True)

    def __call__(self, roles: Iterable[Role]) -> None:
        """Have *roles* announced soon."""
        with self._changed:
            self._topics.update(roles)
            self._changed.notify()

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self) -> None:
        """Send what is left and end."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.ident is not None:  # else it was never started
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._topics or self._stopping)
                topics, self._topics = self._topics, set()
                stopping = self._stopping
            if topics:
                self._send(topics)
            if stopping:
                return
            threading.Event().wait(self.PAUSE)
