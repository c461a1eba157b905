"""What changes, told to whoever listens: one thread for each process looks, all streams share it.

It looks only while somebody listens, at a bounded number of rows each time.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from threading import Event as Flag
from threading import Lock, Thread
from typing import Any

from headway.domain.execution import ExecutionState
from headway.domain.paging import MOST_PER_PAGE
from headway.domain.views import ExecutionDetail, ExecutionFilter, ExecutionOverview
from headway.errors import DatabaseUnavailable, ExecutionNotFound
from headway.history import History
from headway.store.engine import TRANSIENT
from headway.web.failures import TooMany

logger = logging.getLogger("headway.web")

EVERY_SECONDS = 1.0
CHECK_SECONDS = 5.0
MOST_STREAMS = 50
MOST_WAITING = 500
COME_BACK = 5
LIVE = ExecutionFilter(states=[ExecutionState.PENDING, ExecutionState.IN_PROGRESS])

# Of a summary: when it was made, and over how long its rates were taken.
UNTOLD = ("now", "rated")

SUMMARY, EXECUTION, MISSED, END = "summary", "execution", "missed", "end"


@dataclass(frozen=True)
class Event:
    """Something to tell: its name, and what it says.

    >>> Event("end", {}).name
    'end'
    """

    name: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Permit:
    """The right by which a stream was opened, checked again while the stream is open.

    Streams of the same *credential* share one check. *holds* may read the database.

    >>> Permit(("token", 7), lambda: True).holds()
    True
    """

    credential: Hashable
    holds: Callable[[], bool] = field(compare=False)


@dataclass(eq=False)
class Stream:
    """One listener: to everything, or to one execution. Whoever is too slow is cut off."""

    loop: asyncio.AbstractEventLoop
    execution_id: int | None = None
    permit: Permit | None = None
    ended: bool = False
    events: asyncio.Queue[Event | None] = field(
        default_factory=lambda: asyncio.Queue(MOST_WAITING + 1)
    )
    told: dict[str, Any] | None = None

    def put(self, event: Event | None) -> None:
        """Hand *event* over to the loop that serves this listener; None ends the stream."""
        with suppress(RuntimeError):  # the server of this listener has ended
            self.loop.call_soon_threadsafe(self._keep, event)

    def _keep(self, event: Event | None) -> None:
        if self.events.qsize() < MOST_WAITING:
            self.events.put_nowait(event)
        elif not self.events.full():
            self.events.put_nowait(None)


class Broadcaster:
    """Looks what has changed and tells every stream what it wants to know.

    >>> Broadcaster(history).look()  # doctest: +SKIP
    """

    def __init__(
        self,
        history: History,
        *,
        every: float = EVERY_SECONDS,
        most: int = MOST_STREAMS,
        by_itself: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._history = history
        self._every = every
        self._most = most
        self._by_itself = by_itself
        self._clock = clock
        self._checked_at = clock()
        self._streams: list[Stream] = []
        self._lock = Lock()
        self._thread: Thread | None = None
        self._wake_up = Flag()
        self._known: dict[int, tuple[object, ...]] = {}
        self._newest: int | None = None

    def listen(
        self,
        loop: asyncio.AbstractEventLoop,
        execution_id: int | None = None,
        permit: Permit | None = None,
    ) -> Stream:
        """A new stream, which is to be closed; it ends by itself when *permit* holds no more."""
        stream = Stream(loop, execution_id, permit)
        with self._lock:
            if len(self._streams) >= self._most:
                told = f"{self._most} streams are open already; close one, or ask again later"
                raise TooMany(told, COME_BACK)
            self._streams.append(stream)
            self._wake_up.clear()
            if self._by_itself and self._thread is None:
                self._thread = Thread(
                    target=self._keep_looking, name="headway-broadcaster", daemon=True
                )
                self._thread.start()
        return stream

    def close(self, stream: Stream) -> None:
        """Tell *stream* nothing more."""
        with self._lock:
            if stream in self._streams:
                self._streams.remove(stream)
            if not self._streams:
                self._wake_up.set()

    def stop(self) -> None:
        """End every stream, and look no more until somebody listens again."""
        with self._lock:
            streams, thread = list(self._streams), self._thread
        for stream in streams:
            self.close(stream)
            stream.put(None)
        if thread is not None:
            thread.join()

    def look(self) -> None:
        """Look once, and tell everybody what is new to them."""
        self._end_refused()
        with self._lock:
            streams = list(self._streams)
        everything = [stream for stream in streams if stream.execution_id is None]
        if everything:
            self._tell_everything(everything)
        else:
            self._known, self._newest = {}, None
        watched = {stream.execution_id for stream in streams if stream.execution_id is not None}
        for execution_id in watched:
            self._tell_about(
                execution_id, [one for one in streams if one.execution_id == execution_id]
            )

    def _end_refused(self) -> None:
        """End the streams whose permit holds no more, every CHECK_SECONDS.

        An error of the database goes on to the caller: without an answer nothing is told.
        """
        now = self._clock()
        if now - self._checked_at < CHECK_SECONDS:
            return
        with self._lock:
            streams = list(self._streams)
        permits = {stream.permit for stream in streams if stream.permit is not None}
        refused = {permit for permit in permits if not _holds(permit)}
        for stream in streams:
            if stream.permit in refused:
                self.close(stream)
                stream.ended = True  # what waits in its queue is not told either
                stream.put(None)
        self._checked_at = now

    def _keep_looking(self) -> None:
        while True:
            try:
                self.look()
            except (*TRANSIENT, DatabaseUnavailable) as error:
                logger.warning("cannot tell what changes: %s", type(error).__name__)
            except Exception:
                logger.exception("cannot tell what changes")
            self._wake_up.wait(self._every)
            with self._lock:
                if not self._streams:
                    self._thread = None
                    return

    def _tell_everything(self, streams: Iterable[Stream]) -> None:
        changes = list(self._changes())
        found = asdict(self._history.overview.summary())
        summary = {name: value for name, value in found.items() if name not in UNTOLD}
        for stream in streams:
            if stream.told != summary:
                stream.told = summary
                stream.put(Event(SUMMARY, summary))
            for event in changes:
                stream.put(event)

    def _changes(self) -> Iterator[Event]:
        newest = self._history.executions.page(limit=MOST_PER_PAGE)
        live = self._history.executions.page(LIVE, limit=MOST_PER_PAGE)
        found = {run.id: run for run in (*live.items, *newest.items)}
        before, first = self._known, self._newest is None
        self._known = {key: _state(run) for key, run in found.items()}
        skipped = newest.next is not None and newest.items[-1].id > (self._newest or 0)
        self._newest = max(found, default=self._newest or 0)
        if first:
            return
        if skipped:
            yield Event(MISSED, {"sentence": "more has changed than is told; look again"})
        for key in sorted(found):
            if before.get(key) != self._known[key]:
                yield Event(EXECUTION, _overview(found[key]))

    def _tell_about(self, execution_id: int, streams: Iterable[Stream]) -> None:
        try:
            found = self._history.executions.detail(execution_id)
        except ExecutionNotFound:
            told, over = None, True
        else:
            told, over = _detail(found), found.execution.state.terminal
        for stream in streams:
            if told is not None and stream.told != told:
                stream.told = told
                stream.put(Event(EXECUTION, told))
            if over:
                stream.put(Event(END, {"id": execution_id}))
                stream.put(None)
                self.close(stream)


def _holds(permit: Permit) -> bool:
    try:
        return permit.holds()
    except (*TRANSIENT, DatabaseUnavailable):
        raise
    except Exception as error:
        # The authentication of the user's own application may refuse by raising.
        logger.warning("a stream of events ends: %s", type(error).__name__)
        return False


def _state(run: ExecutionOverview) -> tuple[object, ...]:
    return run.state, run.running_step, run.progress, run.progress_note, run.cancel_requested


_OVERVIEW = (
    "id",
    "external_id",
    "group_name",
    "workflow",
    "state",
    "attempt",
    "running_step",
    "progress",
    "progress_note",
    "cancel_requested",
    "started_at",
    "finished_at",
)


def _overview(run: Any) -> dict[str, Any]:
    failure = run.failure if isinstance(run.failure, str | None) else run.failure.summary
    return _plain({name: getattr(run, name) for name in _OVERVIEW}) | {"failure": failure}


def _detail(found: ExecutionDetail) -> dict[str, Any]:
    steps = [_plain(step._asdict()) for step in found.steps]
    return _overview(found.execution) | {"steps": steps}


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in values.items()
    }
