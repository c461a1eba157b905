"""The relay: tells other task servers what the outbox holds for them, from a thread of its own.

A server that does not answer is asked again after a while, and gets nothing more until it answers;
what it was never told of goes back to the queue. Its jobs are charged nothing. One that answers and
does not take an execution refuses it, as any task server may: so often, and no oftener.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from headway.config import Settings
from headway.definition.registry import Registry
from headway.definition.task_servers import TaskServers
from headway.domain.routing import RelayedServer
from headway.observe import Observer, told
from headway.store import absent_servers, outbox
from headway.store.engine import Store
from headway.store.outbox import Letter

# So many are taken at once that they are published well before somebody else may take them.
BATCH = 100
MOST_DROPPED = 1000

# A server that refuses so many in one pass is taken to be away: to ask of each takes long.
MOST_REFUSED = 10

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
    """A server that does not answer: how often it was asked, when to ask it again, and why."""

    failures: int
    ask_at: float
    reason: str


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
        settings: Settings | None = None,
    ) -> None:
        self._settings = settings or Settings()
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
        later: list[Letter] = []  # told before: it may be claimed yet
        refused: dict[int, str] = {}
        left = list(letters)
        try:
            while left:
                error = _refusal(server, one := left[0])
                del left[0]
                if error is None:
                    sent.append(one)
                elif one.published:
                    later.append(one)
                else:
                    refused[one.execution_id] = told(error)
                if error is not None and len(refused) + len(later) >= MOST_REFUSED:
                    raise error
        except Exception as error:
            self._note_absent(name, error)
        with self._store.briefly() as tx:
            outbox.note_published(tx, sent + later)
            outbox.let_go(tx, left)
        self._take_back(name, refused)
        again = sum(one.published > 0 for one in sent)
        if again:
            self._observer.emit("relay.unclaimed", task_server=name, count=again)
        return len(sent)

    def _take_back(self, name: str, refused: Mapping[int, str]) -> None:
        """Have what the server does not take tried again later, or fail after too many times."""
        settings = self._settings
        for execution_id, error in refused.items():
            sentence = f"task server {name!r} answers, but does not take it: {error}"
            with self._store.briefly() as tx:
                taken = outbox.take_back(
                    tx,
                    execution_id,
                    settings.max_dispatch_attempts,
                    sentence,
                    settings.retry_policy,
                    patience=settings.unknown_workflow_timeout,
                )
            for one in taken:
                self._observer.emit(f"execution.{one.state}", **one.told())
        if refused:
            reason = next(iter(refused.values()))
            self._observer.emit(
                "dispatch.refused", task_server=name, count=len(refused), error=reason
            )

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
        with self._store.briefly() as tx:
            absent_servers.note_present(tx, name)
        self._observer.emit("task_server.back", task_server=name)
        return True

    def _note_absent(self, name: str, error: Exception) -> None:
        known = self._absent.get(name)
        failures = known.failures + 1 if known else 1
        pause = min(FIRST_PAUSE * 2 ** min(failures - 1, 10), LONGEST_PAUSE)
        reason = told(error)
        self._absent[name] = Absence(failures, self._clock() + pause, reason)
        self._task_servers.note_away(name, True)
        with self._store.briefly() as tx:
            absent_servers.note_absent(tx, name, reason)
        if known is None:
            self._observer.emit("task_server.away", task_server=name, error=reason)

    def _recall(self, name: str) -> int:
        with self._store.briefly() as tx:
            reason = self._absent[name].reason
            return outbox.recall(tx, name, self._registry.names(), reason)

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


def _refusal(server: RelayedServer, letter: Letter) -> Exception | None:
    """Tell the server; returns why it does not take that although it answers.

    Raises if it does not answer. A connection that was lost meanwhile is no refusal.
    """
    try:
        server.publish(letter.execution_id)
    except Exception as error:
        try:
            server.reach()
        except Exception:
            raise error from None
        try:
            server.publish(letter.execution_id)
        except Exception as again:
            return again
    return None
