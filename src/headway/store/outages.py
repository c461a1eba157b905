"""Errors that mean that the PostgreSQL server is away or restarting, told from all others.

While a connection is opened the driver reports no SQLSTATE, only the server's or its own message.
Everything that is not listed here (a wrong password, an unknown database or host name) is no
outage: waiting would not help. Work that is repeated after an outage is given to a `Patiently`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from sqlalchemy.exc import DBAPIError

Result = TypeVar("Result")

ENDING, CRASHED, NOT_YET, TOO_MANY = "57P01", "57P02", "57P03", "53300"
READ_ONLY = "25006"

WORDS = {
    ENDING: "the server has ended the connection",
    CRASHED: "the server has crashed and restarts",
    NOT_YET: "the server does not accept connections yet",
    TOO_MANY: "all connections of the server are taken",
    READ_ONLY: "the server takes no writes",
}
ANSWERS = (
    (r"the database system is starting up", "the server is starting up", NOT_YET),
    (r"the database system is shutting down", "the server is shutting down", NOT_YET),
    (r"the database system is in recovery mode", "the server is recovering", NOT_YET),
    (r"the database system is not (yet )?accepting connections", WORDS[NOT_YET], NOT_YET),
    (r"terminating connection due to administrator command", WORDS[ENDING], ENDING),
    (r"too many clients already|remaining connection slots", WORDS[TOO_MANY], TOO_MANY),
)
UNREACHABLE = re.compile(
    r"Connection refused|connection to server on socket .* failed: No such file or directory"
    r"|server closed the connection unexpectedly|Connection reset by peer|Connection timed out"
    r"|connection timeout expired|No route to host|Network is unreachable"
)


@dataclass(frozen=True)
class Outage:
    """Why the server cannot be used now; *answered* if it is the server itself that says so."""

    reason: str
    answered: bool


def outage_of(error: BaseException | None) -> Outage | None:
    """Return the outage that *error*, or what caused it, reports; None if it is none.

    >>> outage_of(OSError("FATAL:  the database system is starting up")).reason
    'the server is starting up (57P03)'
    >>> outage_of(OSError('FATAL:  database "shop" does not exist')) is None
    True
    """
    while error is not None:
        driver = error.orig if isinstance(error, DBAPIError) else error
        code = getattr(driver, "sqlstate", None)
        if code in WORDS:
            return Outage(f"{WORDS[code]} ({code})", answered=True)
        if code is None and (found := _in_words(str(driver))):
            return found
        if isinstance(error, DBAPIError) and error.connection_invalidated:
            return Outage("the connection was lost", answered=True)
        error = error.__cause__
    return None


def _in_words(message: str) -> Outage | None:
    for pattern, reason, code in ANSWERS:
        if re.search(pattern, message):
            return Outage(f"{reason} ({code})", answered=True)
    if found := UNREACHABLE.search(message):
        return Outage(found.group(), answered=False)
    return None


class Patiently(Protocol):
    """Does a piece of database work, repeated as long as the database is away."""

    def __call__(self, work: Callable[[], Result], /) -> Result:
        """Return the result of *work*."""


def once(work: Callable[[], Result]) -> Result:
    """Do *work* without any patience."""
    return work()
