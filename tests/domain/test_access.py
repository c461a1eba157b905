"""Scopes include one another in order; secrets from manuals are no secrets."""

from __future__ import annotations

import pytest

from headway.domain.access import (
    Identity,
    Scope,
    checked_secret,
    hashed,
    new_token_text,
    prefix_of,
    same_hash,
)
from headway.errors import SettingsError

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
