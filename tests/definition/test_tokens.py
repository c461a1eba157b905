"""Tokens: shown once, kept as a hash, valid until they expire or are revoked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from headway.definition.operating import Operator
from headway.definition.tokens import NewToken, Tokens
from headway.domain.access import Identity, Scope
from headway.domain.setting_values import LONGEST
from headway.errors import DefinitionError, TokenNotFound
from headway.store.engine import Store
from headway.store.tables import schema, token
from tests.builders import Scene
from tests.databases import database_url, postgres_url, sqlite_url
from tests.operations import noted
from tests.runtime_verbs import runtime_of

__all__ = ["database_url", "postgres_url", "sqlite_url"]


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url) as scene:
        yield scene


@pytest.fixture
def tokens(scene: Scene) -> Tokens:
    return Tokens(scene.store)


def made(tokens: Tokens, name: str = "alice", scope: str = "operate", **options: Any) -> NewToken:
    return tokens.create(name, scope, created_by="bob", **options)


def test_who_brings_the_text_is_known(tokens: Tokens) -> None:
    alice, carol = made(tokens), made(tokens, "carol", "read")
    known = tokens.check(alice.text)
    assert known is not None and known.token == alice.token.id
    assert known.identity == Identity("alice", frozenset({Scope.OPERATE}))
    assert tokens.still(carol.token.id) == tokens.check(carol.text) != known


def test_nothing_in_the_database_says_the_text(scene: Scene, tokens: Tokens) -> None:
    new = made(tokens)
    tokens.check(new.text)
    secret = new.text.split("_", 2)[2]
    with scene.store.reading() as tx:
        rows = [
            str(row)
            for table in schema.sorted_tables
            for row in tx.connection.execute(table.select())
        ]
    assert not any(secret in row or secret[:10] in row for row in rows)
    assert secret not in repr(new) and len(secret) >= 43
    assert len({made(tokens, f"p{number}").text for number in range(20)}) == 20


def test_whoever_has_the_prefix_alone_is_nobody(tokens: Tokens) -> None:
    text = made(tokens).text
    other = "A" if text[-1] != "A" else "B"
    wrong = [
        "",
        "hw_",
        text[:-1],
        text + "x",
        text[:-1] + other,
        text.upper(),
        f" {text}",
        f"{text}\n",
        "hw_00000000_" + text.split("_", 2)[2],
        "hw_" + "0" * 10_000,
        "' OR 1=1 --",
        "\ud800",
        "hw_\x00",
    ]
    assert [tokens.check(one) for one in wrong] == [None] * len(wrong)


def test_a_token_ends_when_it_expires(scene: Scene, tokens: Tokens) -> None:
    new = made(tokens, expires_in=timedelta(days=90))
    scene.clock.advance(days=89, hours=23)
    assert tokens.check(new.text) and tokens.still(new.token.id) and tokens.exist()
    scene.clock.advance(hours=1)
    assert not (tokens.check(new.text) or tokens.still(new.token.id) or tokens.exist())


def test_a_revoked_token_ends_at_once_and_its_name_is_free(scene: Scene, tokens: Tokens) -> None:
    old = made(tokens)
    scene.clock.advance(minutes=1)
    assert tokens.revoke("alice").revoked_at == scene.clock.now
    assert not (tokens.check(old.text) or tokens.still(old.token.id) or tokens.exist())
    new = made(tokens)
    assert tokens.check(new.text) and not tokens.check(old.text)
    assert [(one.name, one.revoked_at is None) for one in tokens.all()] == [
        ("alice", True),
        ("alice", False),
    ]
    tokens.revoke("alice")
    with pytest.raises(TokenNotFound, match="'alice'"):
        tokens.revoke("alice")


def test_the_last_use_is_noted_now_and_then(scene: Scene, tokens: Tokens) -> None:
    new = made(tokens)
    uses = []
    for _ in range(4):
        tokens.check(new.text)
        with scene.store.reading() as tx:
            used = tx.connection.execute(select(token.c.last_used_at)).scalar_one()
        uses.append(scene.clock.now - used)
        scene.clock.advance(minutes=2)
    assert uses == [timedelta(minutes=lag) for lag in (0, 2, 4, 0)]


def test_a_name_is_one_person(tokens: Tokens) -> None:
    made(tokens)
    with pytest.raises(DefinitionError, match="there is one already"):
        made(tokens, scope="admin")


def test_of_two_who_take_a_name_at_once_one_gets_it(scene: Scene) -> None:
    begin = threading.Barrier(6)

    def take(_: int) -> bool:
        with closing(Store(scene.url)) as store:
            begin.wait()
            try:
                made(Tokens(store))
            except DefinitionError:
                return False
            return True

    with ThreadPoolExecutor(6) as people:
        assert sum(people.map(take, range(6))) == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"name": ""}, "token name = ''"),
        ({"name": "a\nb"}, "token name = "),
        ({"name": "cli:root"}, "must not begin with 'cli:'"),
        ({"scope": "public"}, "scope = 'public': must be read, operate or admin"),
        ({"scope": "OPERATE"}, "scope = 'OPERATE'"),
        ({"scope": None}, "scope = None"),
        ({"expires_in": timedelta(0)}, "expires_in = "),
        ({"expires_in": timedelta(days=-1)}, "expires_in = "),
        ({"expires_in": timedelta.max}, "expires_in = "),
        ({"expires_in": 90}, "expires_in = 90: must be a timedelta"),
    ],
)
def test_what_is_wrong_is_named(tokens: Tokens, options: dict[str, Any], told: str) -> None:
    with pytest.raises(DefinitionError, match=told):
        made(tokens, **options)
    assert tokens.all() == []


@pytest.mark.parametrize("limit", [0, 1001, True])
def test_a_list_has_from_one_to_a_thousand_tokens(tokens: Tokens, limit: int) -> None:
    with pytest.raises(DefinitionError, match=f"limit = {limit}"):
        tokens.all(limit)


def test_of_more_tokens_than_are_asked_for_the_newest_are_listed(
    scene: Scene, tokens: Tokens
) -> None:
    for name in ("alice", "carol", "dave"):
        made(tokens, name)
        scene.clock.advance(minutes=1)
    assert [one.name for one in tokens.all(2)] == ["dave", "carol"]


def test_the_longest_life_of_a_token_is_accepted(scene: Scene, tokens: Tokens) -> None:
    assert made(tokens, expires_in=LONGEST).token.expires_at == scene.clock.now + LONGEST


def test_giving_and_taking_is_in_the_audit_without_the_text(scene: Scene) -> None:
    bob = Operator("bob", runtime_of(scene))
    new = bob.tokens.create("ci", "admin", expires_in=timedelta(days=1))
    bob.tokens.revoke("ci")
    with pytest.raises(TokenNotFound):
        bob.tokens.revoke("ci")
    assert new.token.created_by == "bob"
    created, revoked = noted(scene)
    assert (created.actor, created.action, created.subject) == ("bob", "token.create", "ci")
    assert json.loads(created.detail) == {
        "token": new.token.prefix,
        "scope": "admin",
        "expires_at": str(scene.clock.now + timedelta(days=1)),
    }
    assert json.loads(revoked.detail) == {"token": new.token.prefix}
    assert new.text.split("_", 2)[2] not in str((created, revoked))
