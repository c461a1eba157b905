"""Sessions: what their cookie keeps, how long it holds, and the token their forms bring."""

from __future__ import annotations

import pytest

from headway.web.security import sessions as kept
from headway.web.security.identity import Identity, Scope
from headway.web.security.sessions import Session, Sessions

SECRET = b"kept in a file by both of them: 7Hq2"
ADA = Identity("ada", {Scope.OPERATE, Scope.READ})


def test_a_session_is_read_back_as_it_was_begun() -> None:
    sessions = Sessions(SECRET, clock=lambda: 1000.0)
    session = sessions.begin(ADA, token=7)
    twelve_hours = 12 * 3600
    assert session == Session(session.id, "ada", ("operate", "read"), 1000.0 + twelve_hours, 7)
    assert Sessions(SECRET, clock=lambda: 1000.0).read(sessions.cookie(session)) == session
    assert session.identity == ADA
    assert sessions.begin(ADA).token is None
    assert sessions.begin(ADA).id != session.id


def test_a_session_is_over_at_its_end() -> None:
    now = [1000.0]
    sessions = Sessions(SECRET, clock=lambda: now[0])
    session = sessions.begin(ADA)
    cookie = sessions.cookie(session)
    now[0] = session.until - 0.001
    assert sessions.read(cookie) == session
    now[0] = session.until
    assert sessions.read(cookie) is None


def test_processes_without_a_secret_know_only_their_own_sessions() -> None:
    one, other = Sessions(), Sessions()
    cookie = one.cookie(one.begin(ADA))
    assert one.read(cookie) is not None
    assert other.read(cookie) is None
    assert one.csrf("session 1") != other.csrf("session 1")


@pytest.mark.parametrize("cookie", ["", ".", "nothing", "é.é", "e30=.", "e30=.00"])
def test_what_is_no_cookie_of_ours_is_no_session(cookie: str) -> None:
    assert Sessions(SECRET).read(cookie) is None


def test_a_cookie_that_is_too_long_is_not_read() -> None:
    sessions = Sessions(SECRET)
    long = sessions.cookie(sessions.begin(Identity("a" * kept.LONGEST_COOKIE, {Scope.READ})))
    assert sessions.read(long) is None


def test_a_form_brings_the_token_of_its_own_session() -> None:
    sessions = Sessions(SECRET)
    token = sessions.csrf("session 1")
    assert sessions.is_csrf("session 1", token)
    assert Sessions(SECRET).is_csrf("session 1", token), "another process with this secret"
    assert not sessions.is_csrf("session 2", token)
    assert not sessions.is_csrf("session 1", "")
    assert not sessions.is_csrf("session 1", "é")


def test_the_token_of_a_form_signs_no_session() -> None:
    sessions = Sessions(SECRET)
    told = sessions.cookie(sessions.begin(ADA)).partition(".")[0]
    assert sessions.read(f"{told}.{sessions.csrf(told)}") is None
