"""Who asks and what they may do; what tokens and secrets look like."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from headway.domain.names import checked_name
from headway.domain.text import shown
from headway.errors import DefinitionError, SettingsError

SHORTEST_SECRET = 32
FEWEST_CHARACTERS = 10
BY_HAND = "cli:"

_TOKEN = re.compile(r"hw_([0-9a-f]{8})_[A-Za-z0-9_-]{43,86}")
# What manuals and examples say; whoever copies one of them shares it with all their readers.
_SAMPLES = re.compile(
    r"(change.?(me|this|it)|default.?(token|secret|key)|(my|your|the|a|some).?(own.?)?"
    r"(super.?)?secret|secret.?(key|token)|pass.?word|example|sample|insecure|replace.?(me|this)"
    r"|test.?(secret|token|key)|123456|abcdef|qwerty|to.?be.?changed)",
    re.IGNORECASE,
)


class Scope(StrEnum):
    """What a route asks for; each includes the ones before it.

    >>> Scope.OPERATE.includes(Scope.READ), Scope.READ.includes(Scope.ADMIN)
    (True, False)
    """

    PUBLIC = "public"
    READ = "read"
    OPERATE = "operate"
    ADMIN = "admin"

    def includes(self, other: "Scope") -> bool:
        """Whether whoever has this scope may do what *other* allows."""
        ranks = list(Scope)
        return ranks.index(self) >= ranks.index(other)


GIVEN = (Scope.READ, Scope.OPERATE, Scope.ADMIN)
"""The scopes a token may have."""


@dataclass(frozen=True)
class Identity:
    """Somebody headway knows, by name, and the scopes they have.

    >>> Identity("ada", frozenset({Scope.OPERATE})).may(Scope.READ)
    True
    """

    name: str
    scopes: Collection[Scope]

    def may(self, scope: Scope) -> bool:
        """Whether one of the scopes is enough for *scope*."""
        return any(own.includes(scope) for own in self.scopes)


@dataclass(frozen=True)
class Known:
    """The owner of a token, and the id it can be found by as long as it is valid."""

    token: int
    identity: Identity


@dataclass(frozen=True)
class Token:
    """A token as it is kept: everything but its text."""

    id: int
    name: str
    prefix: str
    scope: Scope
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None

    def valid(self, now: datetime) -> bool:
        """Whether it opens anything *now*."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    @property
    def known(self) -> Known:
        """Whose it is."""
        return Known(self.id, Identity(self.name, frozenset({self.scope})))


def new_token_text() -> str:
    """A new token: a prefix by which a leak is found, and 32 random bytes.

    >>> prefix_of(new_token_text()) is None
    False
    """
    return f"hw_{secrets.token_hex(4)}_{secrets.token_urlsafe(32)}"


def prefix_of(text: str) -> str | None:
    """The public part of a token, or None if *text* is none.

    >>> prefix_of("hw_0a1b2c3d_" + "x" * 43)
    '0a1b2c3d'
    >>> prefix_of("letmein") is None
    True
    """
    found = _TOKEN.fullmatch(text)
    return found.group(1) if found else None


def hashed(text: str) -> str:
    """What is kept of a token. It has 256 random bits: nobody finds it from its hash.

    >>> hashed("hw_0a1b2c3d_x")[:8]
    '3562baf0'
    """
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def same_hash(text: str, kept: str) -> bool:
    """Whether *kept* is the hash of *text*, in a time that tells nothing about either.

    >>> same_hash("hw_0a1b2c3d_x", hashed("hw_0a1b2c3d_x"))
    True
    """
    return hmac.compare_digest(hashed(text), kept)


def checked_scope(value: object) -> Scope:
    """The scope a token shall have.

    >>> checked_scope("operate")
    <Scope.OPERATE: 'operate'>
    """
    for scope in GIVEN:
        if value == scope.value:
            return scope
    raise DefinitionError(
        f"scope = {shown(value)}: must be read, operate or admin; for example 'operate'"
    )


def checked_token_name(value: object) -> str:
    """The name of a token's owner, as the audit will show it.

    >>> checked_token_name("alice")
    'alice'
    """
    name = checked_name("token name", value)
    if name.startswith(BY_HAND):
        raise DefinitionError(
            f"token name = {shown(value)}: must not begin with {BY_HAND!r}, which is for people at "
            "a command line; for example 'alice'"
        )
    return name


def checked_secret(name: str, text: str) -> bytes:
    """A secret somebody has configured: long enough, and not one that manuals print.

    >>> len(checked_secret("dashboard_secret_file", "mPz4Xo0vT9sQeRk2uYw7bJd5hLc8nGa1"))
    32
    """
    secret = text.strip().encode(errors="surrogatepass")
    if len(secret) < SHORTEST_SECRET:
        rule = f"must have at least {SHORTEST_SECRET} bytes, not {len(secret)}"
    elif len(set(secret)) < FEWEST_CHARACTERS or _SAMPLES.search(text):
        rule = "is one that can be guessed"
    else:
        return secret
    # The value itself is not shown: what is nearly a secret may be one elsewhere.
    raise SettingsError(
        f"{name}: the secret {rule}; make one: "
        "python -c 'import secrets; print(secrets.token_urlsafe(32))'"
    )
