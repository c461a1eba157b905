"""Requests to stop a command that is still starting: SIGTERM, Ctrl-C, a closed terminal.

A long-running command obeys them from its first line on: importing its modules takes most of a
second, and a process without handlers would be killed by SIGTERM instead of ending with status 0.
"""

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = 130
MESSAGE = "headway: stopped\n"

_noted: list[int] = []

LONG_RUNNING = (("run",), ("worker",), ("web",), ("demo",), ("azolla", "serve"))


def is_long_running(arguments: Sequence[str]) -> bool:
    """Return whether these arguments of ``headway`` start a command that runs until it is stopped.

    >>> is_long_running(["azolla", "serve", "shop:hw"]), is_long_running(["azolla", "peers"])
    (True, False)
    """
    return any(tuple(arguments[: len(words)]) == words for words in LONG_RUNNING)


def exit_code(number: int) -> int:
    """Return the exit code of a command that this signal stopped before anything ran.

    >>> exit_code(signal.SIGINT), exit_code(signal.SIGTERM)
    (130, 0)
    """
    return INTERRUPTED if number == signal.SIGINT else 0


class Interrupted(KeyboardInterrupt):
    """Raised in the main thread by a stop signal that comes while a command starts."""


def exit_on_signals() -> None:
    """End this process at once on a stop signal: there is nothing yet that would be cleaned up.

    >>> exit_on_signals()  # doctest: +SKIP
    """
    _handle(_exit)


def interrupt_on_signals() -> None:
    """Raise :class:`Interrupted` on a stop signal, and note the signal.

    Code in between may swallow the exception or replace it by one of its own (a driver whose
    statement is cancelled, an application with a bare ``except``). The note remains.

    >>> interrupt_on_signals()  # doctest: +SKIP
    """
    _noted.clear()
    _handle(_interrupt)


def ignore_signals() -> None:
    """Ignore stop signals from now on, because the process is ending.

    >>> ignore_signals()  # doctest: +SKIP
    """
    _handle(signal.SIG_IGN)


def is_interrupting() -> bool:
    """Return whether a stop signal would raise :class:`Interrupted` now.

    >>> is_interrupting()
    False
    """
    return signal.getsignal(signal.SIGTERM) is _interrupt


def noted() -> int | None:
    """Return the first signal that interrupted the start, or None.

    >>> noted() is None
    True
    """
    return _noted[0] if _noted else None


def stopped(number: int) -> int:
    """Write that the command was stopped by signal *number*; returns the exit code.

    >>> stopped(signal.SIGTERM)  # doctest: +SKIP
    headway: stopped
    0
    """
    if sys.stderr is not None:  # else its file descriptor may belong to something else
        with suppress(OSError):
            os.write(2, MESSAGE.encode())
    return exit_code(number)


def _handle(handler: Any) -> None:
    for number in SIGNALS:
        # A background shell ignores Ctrl-C for what it starts, and nohup a hang-up.
        if number == signal.SIGTERM or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    _noted.append(number)
    raise Interrupted


def _exit(number: int, _frame: FrameType | None) -> None:
    os._exit(stopped(number))
