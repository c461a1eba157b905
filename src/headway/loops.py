"""The furniture around ``run_once()``: a thread that repeats it, sleeps between, and survives."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from headway.observe import Observer

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 4.0  # whatever was away, work goes on within 5 seconds of its return
DOUBLINGS = 10


@dataclass(frozen=True)
class Rest:
    """How long a loop sleeps: in any case until *due*, if that is known, not before *earliest* for
    an offer, and while it is *deaf* not even for a wake-up, which is heard afterwards.

    >>> Rest(earliest=2.0, due=30.0)
    Rest(earliest=2.0, due=30.0, deaf=0.0)
    """

    earliest: float
    due: float | None = None
    deaf: float = 0.0


@dataclass(frozen=True)
class LoopState:
    """How a loop fares at the moment *now*: since when a pass is under way, since when all of them
    have failed, how many, and how the last one did.

    >>> LoopState("manager", datetime.now(UTC)).failures
    0
    """

    name: str
    now: datetime
    busy_since: datetime | None = None
    failing_since: datetime | None = None
    failures: int = 0
    error: Exception | None = None


class Loop:
    """Repeats *once* in a thread; *once* returns how many seconds to wait, 0 to go on at once.

    It may also return a :class:`Rest`: then it is the pulse that says when there is something.
    It begins *after* so many seconds, unless somebody wakes it up.

    An error is reported, waited out and tried again: a loop ends only when it is told to.

    >>> loop = Loop("manager", lambda: 60.0, Observer())
    >>> loop.start(); loop.wake(); loop.stop()
    """

    def __init__(
        self,
        name: str,
        once: Callable[[], float | Rest],
        observer: Observer,
        *,
        after: float = 0.0,
    ) -> None:
        self.name = name
        self._once = once
        self._after = after
        self._observer = observer
        self._changed = threading.Condition()
        self._woken = False
        self._offered = False
        self._stopping = False
        self._failures = 0
        self._error: Exception | None = None
        self._failing_since: datetime | None = None
        self._busy_since: datetime | None = None
        self._thread = threading.Thread(target=self._run, name=f"headway-{name}", daemon=True)

    def start(self) -> None:
        """Begin to repeat."""
        self._thread.start()

    def wake(self) -> None:
        """Go on now instead of after the pause."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def offer(self) -> None:
        """There seems to be something to do: go on once the loop has rested for long enough."""
        with self._changed:
            self._offered = True
            self._changed.notify_all()

    def request_stop(self) -> None:
        """End after the pass that is under way."""
        self._stopping = True
        self.wake()

    def state(self) -> LoopState:
        """How it fares."""
        return LoopState(
            self.name,
            datetime.now(UTC),
            self._busy_since,
            self._failing_since,
            self._failures,
            self._error,
        )

    def stop(self) -> None:
        """End, and return when it has ended."""
        self.request_stop()
        if self._thread.ident is not None:  # else it was never started
            self._thread.join()

    def _run(self) -> None:
        if self._after:
            self._sleep(Rest(earliest=0.0, due=self._after))
        while not self._stopping:
            rest = self._pass()
            self._sleep(rest if isinstance(rest, Rest) else Rest(rest, due=rest))

    def _sleep(self, rest: Rest) -> None:
        earliest = rest.earliest if rest.due is None else min(rest.earliest, rest.due)
        left = None if rest.due is None else rest.due - earliest
        with self._changed:
            if rest.deaf:
                self._changed.wait_for(lambda: self._stopping, rest.deaf)
            self._changed.wait_for(lambda: self._woken, earliest)
            if left is None or left > 0:
                self._changed.wait_for(lambda: self._woken or self._offered, left)
            self._woken = self._offered = False

    def _pass(self) -> float | Rest:
        self._busy_since = datetime.now(UTC)
        try:
            pause = self._once()
        except Exception as error:
            self._failures += 1
            self._error = error
            self._failing_since = self._failing_since or self._busy_since
            self._observer.loop_failed(self.name, error)
            doublings = min(self._failures - 1, DOUBLINGS)  # 2**1024 is beyond any float
            return float(min(FIRST_PAUSE * 2**doublings, LONGEST_PAUSE))
        finally:
            self._busy_since = None
        self._failures, self._error, self._failing_since = 0, None, None
        return pause
