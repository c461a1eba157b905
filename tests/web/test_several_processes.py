"""Two web processes on one database: what one of them has been told holds in the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pytest

from headway import Headway
from headway.definition.tokens import Tokens
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.transaction import Transaction
from headway.web.app import build_app
from headway.web.security.access import Access
from tests.store.factories import Clock
from tests.web.site import Answered, Site, listening
from tests.web.test_gate import as_page, cookie_of

pytestmark = pytest.mark.gate

SECRET = b"kept in a file by both of them: 7Hq2"


@dataclass(frozen=True)
class Pair:
    """The processes, and a token that both know."""

    first: Site
    second: Site
    token: str
    clock: Clock

    def wrong(self, site: Site) -> int:
        return site.get("/api/v1/groups", authorization="Bearer hw_00000000_guessed").status

    def log_in(self, site: Site) -> Answered:
        return site.ask("POST", "/login", f"token={self.token}".encode(), as_page(site))


@pytest.fixture
def pair(database_url: str) -> Iterator[Pair]:
    clock = Clock()
    stores = [Store(database_url, clock=clock) for _ in range(2)]
    migrate(stores[0])
    token = Tokens(stores[0]).create("ada", "read", created_by="bob").text
    first, second = (
        build_app(Headway("shop"), store, Access(tokens=Tokens(store), secret=SECRET))
        for store in stores
    )
    with listening(first) as one, listening(second) as other:
        yield Pair(one, other, token, clock)
    for store in stores:
        store.close()


def test_who_logs_out_of_one_is_out_of_the_other(pair: Pair) -> None:
    kept, other = (cookie_of(pair.log_in(pair.first)) for _ in range(2))
    # Each port has a cookie of its own name; behind one address it is the same.
    value, elsewhere = kept.partition("=")[2], f"headway_{pair.second.port}"
    assert pair.second.get("/groups", cookie=f"{elsewhere}={value}").status == 200

    page = pair.first.get("/groups", cookie=kept).text
    csrf = page.partition('name="csrf_token" value="')[2].partition('"')[0]
    out = pair.first.ask(
        "POST", "/logout", f"csrf_token={csrf}".encode(), as_page(pair.first, kept)
    )
    assert out.status == 303
    assert pair.first.get("/groups", cookie=kept).headers["location"].startswith("/login")
    refused = pair.second.get("/groups", cookie=f"{elsewhere}={value}")
    assert refused.headers["location"].startswith("/login")
    # The same person's other browser stays where it is.
    value = other.partition("=")[2]
    assert pair.second.get("/groups", cookie=f"{elsewhere}={value}").status == 200


def test_who_guesses_at_both_is_counted_once(pair: Pair) -> None:
    tried = [pair.wrong(site) for _ in range(5) for site in (pair.first, pair.second)]
    assert tried == [401] * 10
    assert [pair.wrong(pair.first), pair.wrong(pair.second)] == [429, 429]
    refused = pair.log_in(pair.second)
    assert (refused.status, refused.headers["retry-after"]) == (429, "60")
    pair.clock.advance(seconds=20)
    assert pair.log_in(pair.second).headers["retry-after"] == "40"
    pair.clock.advance(seconds=39.8)
    assert pair.log_in(pair.second).headers["retry-after"] == "1"
    pair.clock.advance(seconds=0.2)
    assert pair.wrong(pair.second) == 401


def test_a_guesser_who_is_refused_stops_costing_the_database(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(10):
        pair.wrong(pair.first)
    asked: list[Store] = []
    reading = Store.reading

    def counted(store: Store) -> AbstractContextManager[Transaction]:
        asked.append(store)
        return reading(store)

    monkeypatch.setattr(Store, "reading", counted)
    assert [pair.wrong(pair.second) for _ in range(50)] == [429] * 50
    assert len(asked) < 15
