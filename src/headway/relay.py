"""The relay: tells other task servers what the outbox holds for them, from a thread of its own.

A server that does not answer is asked again after a while, and gets nothing more until it answers;
what it was never told of goes back to the queue. Its jobs are charged nothing.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from headway.definition.registry import Registry
from headway.definition.task_servers import TaskServers
from headway.domain.routing import RelayedServer
from headway.observe import Observer, told
from headway.store import outbox
from headway.store.engine import Store
from headway.store.outbox import Letter

# So many are taken at once that they are published well before somebody else may take them.
BATCH = 100
MOST_DROPPED = 1000

# What was claimed meanwhile takes up room only; nobody waits for it to be dropped.
DROP_PAUSE = 5.0
SOON = 1.0

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 4.0


@dataclass(frozen=True)
class Relayed:
    """What one pass did: how many were told, how many went back to the queue, whether a server
    answers again, and after how many seconds there is something to do."""

    published: int = 0
    recalled: int = 0
    back: bool = False
    due_in: float | None = None


@dataclass(frozen=True)
class Absence:
    """A server that does not answer: how often it was asked, and when to ask it again."""

    failures: int
    ask_at: float


class Relay:
    """Publishes what is due for the servers of one application that are told through the outbox.

    >>> Relay(store, registry, task_servers, observer).run_once().published  # doctest: +SKIP
    3
    """

    def __init__(
        self,
        store: Store,
        registry: Registry,
        task_servers: TaskServers,
        observer: Observer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._registry = registry
        self._task_servers = task_servers
        self._observer = observer
        self._clock = clock
        self._absent: dict[str, Absence] = {}
        self._drop_at = 0.0

    def run_once(self) -> Relayed:
        """Tell every server that answers what is due for it, and ask those that do not."""
        published = recalled = 0
        before = set(self._absent)
        for name, server in self._task_servers.relayed.items():
            if name not in self._absent or self._answers_again(name, server):
                published += self._publish_all(name, server)
            if name in self._absent:
                recalled += self._recall(name)
        self._drop_claimed()
        back = bool(before - self._absent.keys())
        return Relayed(published, recalled, back, SOON if published else self._due_in())

    def _publish_all(self, name: str, server: RelayedServer) -> int:
        published = 0
        while name not in self._absent:
            with self._store.briefly() as tx:
                letters = outbox.take(tx, name, self._registry.names(), BATCH)
            published += self._publish(name, server, letters) if letters else 0
            if len(letters) < BATCH:
                break
        return published

    def _publish(self, name: str, server: RelayedServer, letters: Sequence[Letter]) -> int:
        sent: list[Letter] = []
        try:
            for one in letters:
                server.publish(one.execution_id)
                sent.append(one)
        except Exception as error:
            self._note_absent(name, error)
        with self._store.briefly() as tx:
            outbox.note_published(tx, sent)
            outbox.let_go(tx, letters[len(sent) :])
        again = sum(one.published > 0 for one in sent)
        if again:
            self._observer.emit("relay.unclaimed", task_server=name, count=again)
        return len(sent)

    def _answers_again(self, name: str, server: RelayedServer) -> bool:
        if self._clock() < self._absent[name].ask_at:
            return False
        try:
            server.reach()
        except Exception as error:
            self._note_absent(name, error)
            return False
        del self._absent[name]
        self._task_servers.note_away(name, False)
        self._observer.emit("task_server.back", task_server=name)
        return True

    def _note_absent(self, name: str, error: Exception) -> None:
        known = self._absent.get(name)
        failures = known.failures + 1 if known else 1
        pause = min(FIRST_PAUSE * 2 ** min(failures - 1, 10), LONGEST_PAUSE)
        self._absent[name] = Absence(failures, self._clock() + pause)
        self._task_servers.note_away(name, True)
        if known is None:
            self._observer.emit("task_server.away", task_server=name, error=told(error))

    def _recall(self, name: str) -> int:
        with self._store.briefly() as tx:
            return outbox.recall(tx, name, self._registry.names())

    def _drop_claimed(self) -> None:
        if self._clock() < self._drop_at:
            return
        self._drop_at = self._clock() + DROP_PAUSE
        dropped = MOST_DROPPED
        while dropped == MOST_DROPPED:
            with self._store.briefly() as tx:
                dropped = outbox.drop_claimed(tx, MOST_DROPPED)

    def _due_in(self) -> float | None:
        now = self._clock()
        waits = [max(0.0, one.ask_at - now) for one in self._absent.values()]
        if not waits:
            with self._store.reading() as tx:
                due = outbox.next_due(tx, list(self._task_servers.relayed))
                waits = [] if due is None else [max(timedelta(), due - tx.now).total_seconds()]
        return min(waits, default=None)
