"""Scopes include one another in order; secrets from manuals are no secrets."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from headway.domain.access import (
    Identity,
    Known,
    Scope,
    Token,
    checked_scope,
    checked_secret,
    checked_token_name,
    hashed,
    new_token_text,
    prefix_of,
    same_hash,
)
from headway.errors import DefinitionError, SettingsError

NOON = datetime(2030, 1, 7, 12, tzinfo=UTC)
TOKEN = Token(5, "ada", "0a1b2c3d", Scope.OPERATE, NOON, "cli:ada", None, None, None)

SAMPLES = [
    "default_token",
    "changeme",
    "",
    " " * 40,
    "a" * 64,
    "changeme" * 8,
    "your-secret-key-goes-right-here-12345",
    "this-is-a-very-insecure-development-value",
    "please-change-this-before-you-deploy-it!",
    "0123456789abcdef0123456789abcdef",
    "my_super_secret_string_nobody_guesses",
    "django-insecure-x8#k2!qpw0zvb7n4m1c5r9t3y",
]


@pytest.mark.parametrize("sample", SAMPLES)
def test_what_can_be_guessed_is_refused_and_not_repeated(sample: str) -> None:
    with pytest.raises(SettingsError, match="dashboard_secret_file: the secret") as refused:
        checked_secret("dashboard_secret_file", sample)
    assert not sample.strip() or sample not in str(refused.value)
    assert "secrets.token_urlsafe(32)" in str(refused.value)


def test_random_secrets_are_taken() -> None:
    for _ in range(200):
        text = new_token_text()
        assert checked_secret("secret", f"{text}\n") == text.encode()


def test_a_scope_includes_those_before_it() -> None:
    order = [Scope.PUBLIC, Scope.READ, Scope.OPERATE, Scope.ADMIN]
    for place, own in enumerate(order):
        someone = Identity("ada", [own])
        assert [someone.may(one) for one in order] == [rank <= place for rank in range(4)]
    assert not any(Identity("nobody", []).may(one) for one in order)


def test_a_hash_fits_its_text_alone() -> None:
    one, other = new_token_text(), new_token_text()
    assert same_hash(one, hashed(one)) and not same_hash(other, hashed(one))
    assert prefix_of(one) == one[3:11] != prefix_of(other)


def test_a_token_is_valid_until_it_expires_or_is_revoked() -> None:
    assert TOKEN.valid(NOON)
    assert not replace(TOKEN, revoked_at=NOON).valid(NOON)
    expiring = replace(TOKEN, expires_at=NOON)
    assert expiring.valid(NOON - timedelta(microseconds=1)) and not expiring.valid(NOON)
    assert not replace(expiring, revoked_at=NOON).valid(NOON - timedelta(hours=1))


def test_the_owner_of_a_token_has_its_scope_alone() -> None:
    assert TOKEN.known == Known(5, Identity("ada", frozenset({Scope.OPERATE})))
    assert not TOKEN.known.identity.may(Scope.ADMIN)


@pytest.mark.parametrize("scope", [Scope.READ, Scope.OPERATE, Scope.ADMIN])
def test_a_token_may_have_a_scope(scope: Scope) -> None:
    assert checked_scope(scope.value) is scope


@pytest.mark.parametrize("value", ["public", "Read", "", None, 5])
def test_what_is_no_scope_of_a_token_is_refused(value: object) -> None:
    with pytest.raises(DefinitionError) as refused:
        checked_scope(value)
    rule = "must be read, operate or admin; for example 'operate'"
    assert str(refused.value) == f"scope = {value!r}: {rule}"


def test_the_owner_of_a_token_has_a_name_other_than_those_of_a_command_line() -> None:
    assert checked_token_name("climate") == "climate"
    with pytest.raises(DefinitionError, match=r"^token name = ' a': must not start or end"):
        checked_token_name(" a")
    with pytest.raises(DefinitionError) as refused:
        checked_token_name("cli:ada")
    assert str(refused.value) == (
        "token name = 'cli:ada': must not begin with 'cli:', which is for people at a command "
        "line; for example 'alice'"
    )


@pytest.mark.parametrize(
    "text",
    [
        "hw_0a1b2c3d_" + "x" * 42,
        "hw_0a1b2c3d_" + "x" * 87,
        "hw_0A1B2C3D_" + "x" * 43,
        "hw_0a1b2c3d_" + "x" * 43 + "\n",
        "0a1b2c3d_" + "x" * 43,
    ],
)
def test_what_does_not_look_like_a_token_has_no_prefix(text: str) -> None:
    assert prefix_of(text) is None
    assert prefix_of("hw_0a1b2c3d_" + "-" * 86) == "0a1b2c3d"


def test_a_secret_has_32_bytes_of_ten_kinds() -> None:
    ten = "mPz4Xo0vT9"
    assert checked_secret("secret", f" {ten * 3}mP\n") == f"{ten * 3}mP".encode()
    for short, rule in (
        (ten * 3 + "m", "must have at least 32 bytes, not 31"),
        (ten[:9] * 4, "is one that can be guessed"),
    ):
        with pytest.raises(SettingsError) as refused:
            checked_secret("secret", short)
        assert str(refused.value) == (
            f"secret: the secret {rule}; make one: "
            "python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
    assert len(checked_secret("secret", "ä" * 11 + ten)) == 32


def test_text_of_any_kind_has_a_hash() -> None:
    assert same_hash("\ud800", hashed("\ud800"))
    assert len(hashed("\ud800")) == 64


@pytest.mark.parametrize(
    "word",
    [
        *["change-me", "changethis", "CHANGE_IT", "default_token", "default.secret", "defaultkey"],
        *["my_secret", "your own secret", "the-super-secret", "some secret", "secret-key"],
        *["secret_token", "pass-word", "Example", "sample", "insecure", "replace_me"],
        *["replacethis", "test_secret", "testtoken", "test-key", "123456", "abcdef", "qwerty"],
        *["to-be-changed"],
    ],
)
def test_one_word_of_a_manual_is_enough_to_refuse_a_secret(word: str) -> None:
    random = "mPz4Xo0vT9sQeRk2uYw7bJd5hLc8nGa1"
    assert checked_secret("secret", random) == random.encode()
    with pytest.raises(SettingsError, match="can be guessed"):
        checked_secret("secret", f"{random}-{word}")
