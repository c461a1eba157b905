"""Which errors mean that the database server is away, and which do not."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import DBAPIError, OperationalError

from headway.store.outages import Outage, once, outage_of


class FromDriver(Exception):
    """What a driver raises: words, and a code once the server has answered."""

    def __init__(self, message: str, sqlstate: str | None = None) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


def wrapped(error: Exception, *, lost: bool = False) -> DBAPIError:
    return OperationalError("SELECT 1", {}, error, connection_invalidated=lost)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("57P01", "the server has ended the connection"),
        ("57P02", "the server has crashed and restarts"),
        ("57P03", "the server does not accept connections yet"),
        ("53300", "all connections of the server are taken"),
        ("25006", "the server takes no writes"),
    ],
)
def test_a_code_of_the_server_says_what_is_wrong(code: str, words: str) -> None:
    wanted = Outage(f"{words} ({code})", answered=True)
    assert outage_of(FromDriver("whatever", code)) == wanted
    assert outage_of(wrapped(FromDriver("whatever", code))) == wanted


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("FATAL:  the database system is starting up", "the server is starting up (57P03)"),
        ("FATAL:  the database system is shutting down", "the server is shutting down (57P03)"),
        ("FATAL:  the database system is in recovery mode", "the server is recovering (57P03)"),
        (
            "FATAL:  the database system is not yet accepting connections",
            "the server does not accept connections yet (57P03)",
        ),
        (
            "FATAL:  the database system is not accepting connections",
            "the server does not accept connections yet (57P03)",
        ),
        (
            "FATAL:  terminating connection due to administrator command",
            "the server has ended the connection (57P01)",
        ),
        (
            "FATAL:  sorry, too many clients already",
            "all connections of the server are taken (53300)",
        ),
        (
            "FATAL:  remaining connection slots are reserved",
            "all connections of the server are taken (53300)",
        ),
    ],
)
def test_without_a_code_the_servers_words_say_it(message: str, reason: str) -> None:
    assert outage_of(wrapped(FromDriver(message))) == Outage(reason, answered=True)
    assert outage_of(FromDriver(message, "28P01")) is None, "its code says something else"


@pytest.mark.parametrize(
    "words",
    [
        "Connection refused",
        "server closed the connection unexpectedly",
        "Connection reset by peer",
        "Connection timed out",
        "connection timeout expired",
        "No route to host",
        "Network is unreachable",
        'connection to server on socket "/run/.s.PGSQL.5432" failed: No such file or directory',
    ],
)
def test_a_server_that_is_not_reached_has_not_answered(words: str) -> None:
    assert outage_of(wrapped(FromDriver(f"error: {words}\n"))) == Outage(words, answered=False)


def test_a_lost_connection_is_an_outage_whatever_was_said() -> None:
    lost = wrapped(FromDriver("something else", "08006"), lost=True)
    assert outage_of(lost) == Outage("the connection was lost", answered=True)
    assert outage_of(wrapped(FromDriver("something else", "08006"))) is None


@pytest.mark.parametrize(
    "message",
    [
        'password authentication failed for user "me"',
        'database "shop" does not exist',
        "could not translate host name",
        "No such file or directory",
    ],
)
def test_what_waiting_does_not_mend_is_no_outage(message: str) -> None:
    assert outage_of(wrapped(FromDriver(message))) is None
    assert outage_of(None) is None


def test_what_caused_an_error_may_be_an_outage() -> None:
    error, cause = ValueError("no page"), FromDriver("", "57P01")
    error.__cause__ = wrapped(cause)
    found = outage_of(error)
    assert found is not None and found.answered
    assert once(lambda: 7) == 7
