"""headway tokens: made, shown once, listed without their texts, revoked."""

from __future__ import annotations

import json
import re
from contextlib import closing
from datetime import timedelta

import pytest
from sqlalchemy import update

from headway.cli.deployment import actor
from headway.definition.tokens import Tokens
from headway.store.engine import Store
from headway.store.tables import token as token_table
from tests.surface.test_cli import CommandLine, assert_brief, headway

__all__ = ["headway"]

SHOP = """
from headway import Headway

hw = Headway("shop", database_url={url!r})
"""


@pytest.fixture
def shop(headway: CommandLine, database_url: str) -> CommandLine:
    headway.write("shop.py", SHOP.format(url=database_url))
    assert headway("db", "migrate", "shop:hw").code == 0
    return headway


def test_a_token_is_printed_once_and_alone(shop: CommandLine, database_url: str) -> None:
    code, out, err = shop(
        "tokens", "create", "alice", "--scope", "operate", "--expires", "90d", "-a", "shop:hw"
    )

    text = out.strip()
    assert (code, out) == (0, f"{text}\n") and text.startswith("hw_")
    assert err.startswith("alice may operate until ") and text not in err
    with closing(Store(database_url)) as store:
        known = Tokens(store).check(text)
    assert known is not None and known.identity.name == "alice"

    code, out, err = shop("tokens", "list", "-a", "shop:hw")
    assert (code, err) == (0, "") and text not in out
    titles, row = out.splitlines()
    assert titles.split()[:3] == ["name", "scope", "state"]
    assert row.split()[:4] == ["alice", "operate", "valid", text[:12]]


def test_a_revoked_token_opens_nothing(shop: CommandLine, database_url: str) -> None:
    made = shop("tokens", "create", "ci", "--json", "--database-url", database_url)
    token = json.loads(made.out)
    assert (token["scope"], token["expires_at"], made.err) == ("read", None, "")
    assert token["created_by"].startswith("cli:")

    code, out, err = shop("tokens", "revoke", "ci", "--database-url", database_url)

    assert (code, err) == (0, "") and out == f"ci: token hw_{token['prefix']}_… is revoked\n"
    with closing(Store(database_url)) as store:
        assert Tokens(store).check(token["text"]) is None
    [listed] = json.loads(shop("tokens", "list", "--json", "-a", "shop:hw").out)
    assert listed["revoked_at"] is not None and not {"text", "sha256"} & listed.keys()


def test_every_column_of_the_list(shop: CommandLine, database_url: str) -> None:
    for name, options in (("alice", ("--scope", "admin")), ("bob", ("--expires", "90d"))):
        assert shop("tokens", "create", name, *options, "-a", "shop:hw").code == 0
    made = json.loads(
        shop("tokens", "create", "ci", "--expires", "1d", "--json", "-a", "shop:hw").out
    )
    shop("tokens", "revoke", "alice", "-a", "shop:hw")
    with closing(Store(database_url)) as store, store.writing() as tx:
        past = {"created_at": tx.now - timedelta(days=3), "expires_at": tx.now - timedelta(days=2)}
        tx.connection.execute(update(token_table).where(token_table.c.name == "ci").values(**past))
        used = update(token_table).where(token_table.c.name == "bob").values(last_used_at=tx.now)
        tx.connection.execute(used)

    table = re.sub(
        r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ", "AT", shop("tokens", "list", "-a", "shop:hw").out
    )
    titles, *rows = [re.split(r" {2,}", line.strip()) for line in table.splitlines()]
    assert titles == [
        *("name", "scope", "state", "begins with", "created", "by", "expires", "last used")
    ]
    found = {row[0]: [*row[1:3], *row[4:]] for row in rows}
    assert found == {
        "alice": ["admin", "revoked", "AT", actor(), "never", "never"],
        "bob": ["read", "valid", "AT", actor(), "AT", "AT"],
        "ci": ["read", "expired", "AT", actor(), "AT", "never"],
    }
    [prefix] = [row[3] for row in rows if row[0] == "ci"]
    assert prefix == f"hw_{made['prefix']}_" and made["text"].startswith(prefix)


def test_what_a_token_may_is_told_with_its_end(shop: CommandLine) -> None:
    told = shop("tokens", "create", "bob", "--expires", "90d", "-a", "shop:hw").err
    assert re.fullmatch(
        r"bob may read until 20\d\d-\d\d-\d\d \d\d:\d\d UTC. It is not shown again; "
        r"keep it like a password.\n",
        told,
    )
    told = shop("tokens", "create", "eve", "-a", "shop:hw").err
    assert told.startswith("eve may read until it is revoked. It is not shown again")
    revoked = json.loads(shop("tokens", "revoke", "eve", "--json", "-a", "shop:hw").out)
    assert (revoked["name"], revoked["revoked_at"] is None) == ("eve", False)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("create", "alice", "--scope", "root"), 2, "scope = 'root': must be read, operate"),
        (("create", "alice", "--expires", "soon"), 2, "--expires = 'soon': must be a duration"),
        (("create", "alice", "--expires", "0s"), 2, "expires_in"),
        (("create", ""), 2, "token name = ''"),
        (("create", "cli:root"), 2, "must not begin with 'cli:'"),
        (("create", "taken"), 2, "there is one already"),
        (("revoke", "nobody"), 1, "no token is called 'nobody'"),
    ],
)
def test_what_is_wrong_is_one_line(
    shop: CommandLine, arguments: tuple[str, ...], code: int, told: str
) -> None:
    shop("tokens", "create", "taken", "-a", "shop:hw")
    outcome = shop("tokens", *arguments, "-a", "shop:hw")
    assert (outcome.code, outcome.out) == (code, "")
    assert told in outcome.err
    assert_brief(outcome.err)


def test_without_tokens_the_list_says_how_to_make_one(shop: CommandLine) -> None:
    assert "headway tokens create" in shop("tokens", "list", "-a", "shop:hw").out
    assert shop("tokens").code == 2
