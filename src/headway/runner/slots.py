"""The places for runs in one pool: kept for a claim or a dispatch, taken by what that brings."""

import threading
from itertools import count


class Slots:
    """Counts the places of a pool; whoever keeps some for later may do so from any thread.

    >>> slots = Slots(3)
    >>> key, free = slots.keep()
    >>> free, slots.keep(), slots.on_their_way
    (3, None, frozenset({1}))
    >>> slots.fill(key, used=1)
    False
    >>> slots.keep()
    (2, 2)
    """

    def __init__(self, places: int) -> None:
        self._lock = threading.Lock()
        self._keys = count(1)
        self._free = places
        self._closed = False
        self._in_vain = False
        self._kept: dict[int, int] = {}

    def keep(self) -> tuple[int, int] | None:
        """Keep all that are free for what is on its way: under which key, and how many."""
        with self._lock:
            if self._closed or not self._free:
                return None
            return self._keep(self._free)

    def announce(self) -> int:
        """Something is on its way that asks for no place here; returns its key."""
        with self._lock:
            return self._keep(0)[0]

    def _keep(self, places: int) -> tuple[int, int]:
        key = next(self._keys)
        self._free -= places
        self._kept[key] = places
        return key, places

    def fill(self, key: int, used: int = 0) -> bool:
        """What was on its way under this key has come, and takes as many places as are *used*.

        Whether somebody asked for a place in the meantime who may have one now.
        """
        with self._lock:
            left = self._kept.pop(key) - used
            self._free += left
            in_vain, self._in_vain = self._in_vain, False
            return in_vain and left > 0

    def leave(self, places: int = 1) -> None:
        """So many runs have ended, and their places are free."""
        with self._lock:
            self._free += places

    @property
    def free(self) -> int:
        """How many could be kept now; who asks in vain while some are kept hears of it by
        :meth:`fill`."""
        with self._lock:
            self._in_vain = self._in_vain or (not self._free and bool(self._kept))
            return 0 if self._closed else self._free

    def close(self) -> None:
        """Let nobody keep any more of them."""
        with self._lock:
            self._closed = True

    @property
    def on_their_way(self) -> frozenset[int]:
        """The keys of all that has not come yet."""
        with self._lock:
            return frozenset(self._kept)
