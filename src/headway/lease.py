"""This process's lease: renewed in a thread and on a connection of its own, whatever else is slow.

The protocol is explained in ``store.leases``. A database that cannot be reached decides nothing:
jobs go on, nothing can be claimed, and the first renewal that gets through says who is dead.
"""

import os
import socket
import sys
import time
import uuid
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta

from headway.domain.lease_time import LeaseTime, steady
from headway.domain.routing import Routing
from headway.errors import HeadwayError
from headway.loops import Loop
from headway.observe import Observer
from headway.store import leases
from headway.store.engine import TRANSIENT, Store
from headway.store.outages import Patiently, once
from headway.store.servers import ServerProcess

ON_POSTGRESQL = timedelta(seconds=15)
ON_SQLITE = timedelta(seconds=30)  # one writer at a time: a beat may have to wait for it

BEATS_PER_LEASE = 5
LATE = 1 / 3
# Early enough to stop before the lease is over and another server takes the jobs.
CUT_OFF = 4 / 5
LOOKS_PER_LEASE = 20
LONGEST_RETRY_PAUSE = 1.0

# How long a waiting thread lets another one have the interpreter, in seconds (Python's own: 0.005).
SWITCH_INTERVAL = 0.0005


def lease_of(store: Store, wanted: timedelta | None) -> timedelta:
    """The lease that was asked for, or the one that suits the database."""
    return wanted or (ON_POSTGRESQL if store.on_postgresql else ON_SQLITE)


def share_the_interpreter() -> None:
    """Lower the interpreter's switch interval, so that a job in a thread cannot starve the beat.

    A job that computes and makes a short system call every millisecond releases the interpreter and
    takes it back before a waiting thread has woken up, which then waits another whole interval: a
    beat took 13 seconds beside such a job. Decision 031 has the figures and what this costs.

    >>> share_the_interpreter()
    >>> sys.getswitchinterval() <= SWITCH_INTERVAL
    True
    """
    if sys.getswitchinterval() > SWITCH_INTERVAL:
        sys.setswitchinterval(SWITCH_INTERVAL)


class LeaseKeeper:
    """Keeps the lease of one process; one that lost it comes back under a new id.

    *describe* presents the process under an id, *running* names its jobs, and *on_lost* is told
    the new id before that is registered: by then, nothing may go on in the old one's name.
    *on_cut_off* is asked to stop what must not go on once the lease is nearly over and nobody knows
    about it, and returns what that was. *time_left* is told until when the lease lasts.
    """

    def __init__(
        self,
        store: Store,
        lease: timedelta,
        observer: Observer,
        describe: Callable[[str], ServerProcess],
        running: Callable[[], Sequence[str]],
        on_lost: Callable[[str], None],
        on_cut_off: Callable[[], Sequence[int]] = list,
        time_left: LeaseTime | None = None,
    ) -> None:
        self.id = new_id()
        self.lease = lease
        self._store = store.apart()
        self._observer = observer
        self._describe = describe
        self._running = running
        self._on_lost = on_lost
        self._on_cut_off = on_cut_off
        self._time_left = time_left or LeaseTime()
        self._pause = lease.total_seconds() / BEATS_PER_LEASE
        self._last = time.monotonic()
        self.renewed_at = datetime.now(UTC)
        self._registered = False
        self._loop = Loop("beat", self.beat, observer)
        self._contact = Loop("contact", self.look_at_contact, observer)

    def start(self, patiently: Patiently = once) -> None:
        """Register, and begin to renew.

        *patiently* repeats the registration while the database is away.
        """
        share_the_interpreter()
        try:
            patiently(self.register)
        except BaseException:
            self._store.close()  # the connection of its own, which `stop` would not close now
            raise
        self._loop.start()
        self._contact.start()

    def register(self) -> None:
        """Say that this process lives, under the id it has now."""
        sent, lasts_from = time.monotonic(), steady()
        with self._store.writing() as tx:
            leases.leave(tx, self.id)  # if the reply to an earlier commit was lost
            leases.register(tx, self._describe(self.id), self.lease)
        self._registered = True
        self._renewed(sent, lasts_from)

    def stop(self) -> None:
        """End the lease; nothing may be owned any more."""
        self._loop.stop()
        self._contact.stop()
        if self._registered:
            self._registered = False  # stopped again, it would open the database once more
            self._leave()
        self._store.close()

    def _leave(self) -> None:
        try:
            with self._store.writing() as tx:
                leases.leave(tx, self.id)
        except (*TRANSIENT, HeadwayError) as error:
            # The row expires by itself.
            self._observer.loop_failed("beat", error)

    def beat(self) -> float:
        """Renew once, or come back; returns the seconds until the next beat."""
        sent, lasts_from = time.monotonic(), steady()
        try:
            with self._store.unclocked(writing=True) as tx:
                renewed = leases.renew(tx, self.id, self.lease)
            self._tell_if_late()
            if not renewed:
                self._come_back()
        except TRANSIENT as error:
            self._observer.loop_failed("beat", error)
            return min(self._pause, LONGEST_RETRY_PAUSE)
        if renewed:  # else it has registered, and that is when the new lease began
            self._renewed(sent, lasts_from)
        return self._pause

    def look_at_contact(self) -> float:
        """Have what must not overlap stopped if the lease cannot be renewed for too long.

        Not part of the beat, which hangs with the database; returns the seconds until the next.
        """
        silent = time.monotonic() - self._last
        if silent > self.lease.total_seconds() * CUT_OFF and (stopped := self._on_cut_off()):
            executions = list(stopped)
            self._observer.emit(
                "server.cut_off", owner=self.id, seconds=silent, executions=executions
            )
        return self.lease.total_seconds() / LOOKS_PER_LEASE

    def _renewed(self, sent: float, lasts_from: float) -> None:
        """By the moment it was *sent*: the lease began when the database read it, not earlier."""
        self._last = sent
        self._time_left.renewed(self.id, lasts_from + self.lease.total_seconds())
        self.renewed_at = datetime.now(UTC)

    def _tell_if_late(self) -> None:
        late = time.monotonic() - self._last
        if late > self.lease.total_seconds() * LATE:
            jobs = list(self._running())
            self._observer.emit("server.late", owner=self.id, seconds=late, jobs=jobs)

    def _come_back(self) -> None:
        self._time_left.end()
        dead, self.id = self.id, new_id()
        self._observer.emit("server.dead", owner=dead, again=self.id, jobs=list(self._running()))
        self._on_lost(self.id)
        self.register()


def this_process(
    server_id: str,
    roles: Collection[str],
    workflows: Collection[str],
    slots: int,
    routing: Routing,
) -> ServerProcess:
    """This process under *server_id*, as others shall see it."""
    host, pid = socket.gethostname(), os.getpid()
    return ServerProcess(server_id, host, pid, roles, workflows, slots, routing)


def new_id() -> str:
    """An id nobody has had: host and process tell people where, the rest makes it unique."""
    return f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:12]}"
