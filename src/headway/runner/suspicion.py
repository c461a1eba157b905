"""Who may share a process with whom once workers were lost: nobody is judged by its neighbours.

When a worker dies, all it ran is charged with a crash, the culprit and whoever was beside it. They
start again together, so the innocent would be dead-lettered together with the guilty. Therefore a
run whose next crash is its last shares its process only with runs that never crashed.
"""

from collections.abc import Collection, Iterable

MANY = 2**31 - 1


class Suspicion:
    """Which pending runs a process may claim beside those it runs, by their crashes.

    >>> suspicion = Suspicion(max_crashes=3)
    >>> suspicion.ordinary(running=[0, 1]), suspicion.ordinary(running=[0, 2])
    (range(0, 2), range(0, 1))
    >>> suspicion.last_chance(running=[0, 0])
    range(2, 2147483647)
    >>> suspicion.last_chance(running=[0, 1])
    """

    def __init__(self, max_crashes: int) -> None:
        self.last = range(max(1, max_crashes - 1), MANY)

    def ordinary(self, running: Iterable[int]) -> range:
        """What may be claimed at any time, in any number."""
        return range(1 if any(one in self.last for one in running) else self.last.start)

    def last_chance(self, running: Iterable[int]) -> range | None:
        """What may be claimed one at a time; None while that would share with a suspect."""
        return None if any(running) else self.last

    def admits(self, crashes: int, running: Collection[int]) -> bool:
        """Whether a run after so many *crashes* may start beside those *running*.

        >>> [Suspicion(max_crashes=3).admits(2, running) for running in ([0], [0, 1], [2])]
        [True, False, False]
        """
        return crashes in self.ordinary(running) or crashes in (self.last_chance(running) or ())
