"""headway tokens: made, shown once, listed without their texts, revoked."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from headway.definition.tokens import Tokens
from headway.store.engine import Store
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
