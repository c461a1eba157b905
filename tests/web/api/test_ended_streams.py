"""Streams of events end with the right by which they were opened."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http.client import HTTPConnection, HTTPResponse

import pytest
from fastapi import Request
from sqlalchemy.exc import OperationalError

from headway import Headway
from headway.definition.tokens import Tokens
from headway.domain.work_queue import NewEntry, Source
from headway.history import History
from headway.store import work_queue
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.web import broadcasting
from headway.web.app import build_app
from headway.web.broadcasting import CHECK_SECONDS, Broadcaster, Permit
from headway.web.security.access import Access
from headway.web.security.identity import Identity, Scope
from headway.web.security.sessions import Sessions
from headway.web.serving import Dashboard
from tests.builders import eventually
from tests.federation.sites import opened
from tests.store.factories import Clock, declare, dispatched
from tests.web.site import Site, listening
from tests.web.test_gate import as_page, cookie_of
from tests.web.test_serving import enter

SECRET = b"kept in a file by all of them: 7Hq2"
PATH = "/api/v1/events"


@dataclass
class Deployed:
    """Two web processes on one database; the first one serves the streams."""

    stores: list[Store]
    first: Site
    second: Site
    tokens: Tokens
    clock: Clock
    sessions_now: list[float]
    lines: list[HTTPConnection] = field(default_factory=list)

    def log_in(self, site: Site, token: str) -> str:
        return cookie_of(site.ask("POST", "/login", f"token={token}".encode(), as_page(site)))

    def log_out(self, site: Site, cookie: str) -> None:
        page = site.get("/groups", cookie=cookie).text
        csrf = page.partition('name="csrf_token" value="')[2].partition('"')[0]
        out = site.ask("POST", "/logout", f"csrf_token={csrf}".encode(), as_page(site, cookie))
        assert out.status == 303

    def stream(self, path: str = PATH, **headers: str) -> HTTPResponse:
        """A stream that has told its first event."""
        line = HTTPConnection("127.0.0.1", self.first.port, timeout=10)
        self.lines.append(line)
        line.request("GET", path, headers=headers)
        answer = line.getresponse()
        assert answer.status == 200
        while not answer.readline().startswith(b"data: "):
            pass
        return answer


@pytest.fixture
def deployed(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployed]:
    monkeypatch.setattr(broadcasting, "CHECK_SECONDS", 0.0, raising=False)
    clock, now = Clock(), [time.time()]
    stores = [Store(database_url, clock=clock) for _ in range(2)]
    migrate(stores[0])
    apps = []
    for store in stores:
        access = Access(tokens=Tokens(store), secret=SECRET)
        access.sessions = Sessions(SECRET, clock=lambda: now[0])
        app = build_app(Headway("shop"), store, access)
        caster = Broadcaster(History(store), every=0.02)
        app.state.surface.__dict__["broadcaster"] = caster
        apps.append((app, caster))
    with listening(apps[0][0]) as one, listening(apps[1][0]) as other:
        made = Deployed(stores, one, other, Tokens(stores[1]), clock, now)
        yield made
        for line in made.lines:
            line.close()
        for _, caster in apps:
            caster.stop()
    for store in stores:
        store.close()


def ends(answer: HTTPResponse) -> bool:
    """Whether the stream is over; one that goes on lets the connection run into its timeout."""
    return not answer.read().strip()


def test_a_stream_ends_when_its_token_is_revoked(deployed: Deployed) -> None:
    token = deployed.tokens.create("ada", "read", created_by="bob").text
    kept = deployed.tokens.create("eve", "read", created_by="bob").text
    answer = deployed.stream(authorization=f"Bearer {token}")
    other = deployed.stream(authorization=f"Bearer {kept}")
    deployed.tokens.revoke("ada")  # through the store of the other process
    assert ends(answer)
    deployed.tokens.revoke("eve")
    assert ends(other)
    assert deployed.first.get(PATH, authorization=f"Bearer {token}").status == 401


def test_a_stream_of_an_execution_ends_with_the_right_as_well(deployed: Deployed) -> None:
    declare(deployed.stores[0], "load")
    path = f"/api/v1/executions/{dispatched(deployed.stores[0], 'load')}/events"
    text = deployed.tokens.create("ada", "read", created_by="bob").text
    by_token = deployed.stream(path, authorization=f"Bearer {text}")
    by_login = deployed.stream(path, cookie=deployed.log_in(deployed.first, text))
    deployed.tokens.revoke("ada")
    assert ends(by_token) and ends(by_login)


def test_a_stream_ends_when_its_token_expires(deployed: Deployed) -> None:
    lifetime = timedelta(minutes=1)
    token = deployed.tokens.create("ada", "read", expires_in=lifetime, created_by="bob").text
    answer = deployed.stream(authorization=f"Bearer {token}")
    deployed.clock.advance(seconds=61)
    assert ends(answer)


@pytest.mark.parametrize("where", ["first", "second"])
def test_a_stream_ends_with_the_login(deployed: Deployed, where: str) -> None:
    token = deployed.tokens.create("ada", "read", created_by="bob").text
    site = deployed.first if where == "first" else deployed.second
    cookie = deployed.log_in(deployed.first, token)
    value = cookie.partition("=")[2]
    answer = deployed.stream(cookie=cookie)
    deployed.log_out(site, f"headway_{site.port}={value}")
    assert ends(answer)


def test_a_stream_of_another_login_goes_on(deployed: Deployed) -> None:
    token = deployed.tokens.create("ada", "read", created_by="bob").text
    first, other = (deployed.log_in(deployed.first, token) for _ in range(2))
    gone, kept = deployed.stream(cookie=first), deployed.stream(cookie=other)
    deployed.log_out(deployed.first, first)
    assert ends(gone)
    with deployed.stores[1].writing() as tx:
        work_queue.enqueue(tx, [NewEntry("work", Source.AD_HOC, "null")])
    while not (line := kept.readline()).startswith(b"data: "):
        assert line, "the stream has ended"
    assert json.loads(line.removeprefix(b"data: "))["queued"] == 1


def test_a_stream_ends_when_the_session_is_over(deployed: Deployed) -> None:
    token = deployed.tokens.create("ada", "read", created_by="bob").text
    answer = deployed.stream(cookie=deployed.log_in(deployed.first, token))
    deployed.sessions_now[0] += 13 * 3600
    assert ends(answer)


def test_a_stream_ends_when_the_token_of_the_login_is_revoked(deployed: Deployed) -> None:
    token = deployed.tokens.create("ada", "read", created_by="bob").text
    answer = deployed.stream(cookie=deployed.log_in(deployed.first, token))
    deployed.tokens.revoke("ada")
    assert ends(answer)


def test_a_login_signed_with_a_replaced_secret_opens_no_stream(deployed: Deployed) -> None:
    token = deployed.tokens.create("ada", "read", created_by="bob").text
    cookie = deployed.log_in(deployed.first, token)
    store = deployed.stores[0]
    access = Access(tokens=Tokens(store), secret=b"another one, since Tuesday: 9Kw4x")
    with listening(build_app(Headway("shop"), store, access)) as restarted:
        value = cookie.partition("=")[2]
        assert restarted.get(PATH, cookie=f"headway_{restarted.port}={value}").status == 401


class Directory:
    """The authentication of an application that headway is mounted in."""

    def __init__(self) -> None:
        self.answer: Callable[[], Identity | None] = lambda: Identity("ada", {Scope.READ})

    def __call__(self, request: Request) -> Identity | None:
        return self.answer()

    def fail(self) -> Identity | None:
        raise PermissionError("the directory has no such user")


@pytest.mark.parametrize(
    "answer",
    [
        lambda directory: None,
        lambda directory: Identity("ada", ()),
        lambda directory: Identity("bob", {Scope.READ}),
        Directory.fail,
    ],
    ids=["unknown", "no role", "another user", "error"],
)
def test_a_stream_ends_when_the_users_own_authentication_says_so(
    sqlite_url: str,
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[Directory], Identity | None],
) -> None:
    monkeypatch.setattr(broadcasting, "CHECK_SECONDS", 0.0, raising=False)
    directory = Directory()
    with opened(sqlite_url) as store:
        app = build_app(Headway("shop"), store, Access(directory))
        app.state.surface.__dict__["broadcaster"] = Broadcaster(History(store), every=0.02)
        with listening(app) as site:
            line = HTTPConnection("127.0.0.1", site.port, timeout=10)
            line.request("GET", PATH)
            stream = line.getresponse()
            assert stream.status == 200
            directory.answer = lambda: answer(directory)
            stream.read()
            line.close()


@contextmanager
def by_hand(store: Store, now: list[float]) -> Iterator[Broadcaster]:
    yield Broadcaster(History(store), by_itself=False, clock=lambda: now[0])


def test_rights_are_checked_every_few_seconds_and_once_for_each_credential(
    sqlite_url: str,
) -> None:
    now, asked, loop = [0.0], [], asyncio.new_event_loop()
    with opened(sqlite_url) as store, by_hand(store, now) as caster:

        def holds() -> bool:
            asked.append(now[0])
            return now[0] < 3 * CHECK_SECONDS

        streams = [caster.listen(loop, permit=Permit(("token", 7), holds)) for _ in range(3)]
        caster.look()
        assert asked == []  # all of them have been checked when they were opened
        for _ in range(4):
            now[0] += CHECK_SECONDS
            for _ in range(5):
                caster.look()
        assert asked == [CHECK_SECONDS, 2 * CHECK_SECONDS, 3 * CHECK_SECONDS]
        loop.run_until_complete(asyncio.sleep(0))
        assert all(stream.ended for stream in streams)
    loop.close()


def test_nothing_is_told_while_rights_cannot_be_checked(sqlite_url: str) -> None:
    now, loop = [0.0], asyncio.new_event_loop()

    def away() -> bool:
        raise OperationalError("SELECT", {}, Exception("the database is away"))

    with opened(sqlite_url) as store, by_hand(store, now) as caster:
        stream = caster.listen(loop, permit=Permit(("token", 7), away))
        now[0] += CHECK_SECONDS
        for _ in range(2):
            with pytest.raises(OperationalError):
                caster.look()
        loop.run_until_complete(asyncio.sleep(0))
        assert stream.events.empty()
    loop.close()


def test_the_broadcaster_pauses_for_who_listens_after_the_last_stream_was_closed(
    sqlite_url: str,
) -> None:
    loop, looked = asyncio.new_event_loop(), threading.Event()
    with opened(sqlite_url) as store:
        caster = Broadcaster(History(store), every=3600)
        caster.close(caster.listen(loop))
        eventually(lambda: caster._thread is None)
        looks = count_looks(caster, looked)
        last = caster.listen(loop)
        assert looked.wait(20)
        # The thread that looks has begun its pause, or will, and nothing ends that but a close.
        assert not caster._wake_up.wait(0.2) and len(looks) == 1
        caster.close(last)
    loop.close()


def count_looks(caster: Broadcaster, looked: threading.Event) -> list[float]:
    """The times at which *caster* looks from now on; the first sets *looked*."""
    looks: list[float] = []
    look = caster.look

    def noting() -> None:
        looks.append(time.monotonic())
        looked.set()
        look()

    caster.look = noting  # type: ignore[method-assign]
    return looks


def test_streams_end_when_their_process_stops(sqlite_url: str) -> None:
    with opened(sqlite_url) as store:
        dashboard = Dashboard(Headway("shop"), store, port=0)
        site, cookie = enter(dashboard.entrance)
        line = HTTPConnection("127.0.0.1", site.port, timeout=20)
        line.request("GET", PATH, headers={"cookie": cookie})
        answer = line.getresponse()
        while not answer.readline().startswith(b"data: "):
            pass
        dashboard.stop()
        # A stream that is cut off instead of ended raises IncompleteRead.
        assert answer.read().strip() == b""
        line.close()
