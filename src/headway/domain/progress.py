"""How far long work is: a number of things done, of a number to do."""

from collections.abc import Callable

Progress = Callable[[int, int], None]


def unseen(done: int, total: int) -> None:
    """Nobody looks.

    >>> unseen(1, 2)
    """
