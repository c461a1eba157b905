"""Tokens by which programs and people are known: ``hw.tokens`` of an application."""

from dataclasses import dataclass, field
from datetime import timedelta

from headway.domain.access import (
    Known,
    Scope,
    Token,
    checked_scope,
    checked_token_name,
    new_token_text,
)
from headway.domain.azolla.entries import checked_count
from headway.domain.names import checked_name
from headway.domain.setting_values import LONGEST
from headway.domain.text import shown
from headway.errors import DefinitionError, TokenNotFound
from headway.store import tokens
from headway.store.within import Transactions

SHOWN = 200
MOST_SHOWN = 1000


@dataclass(frozen=True)
class NewToken:
    """A token just made: the only moment at which its *text* can be read.

    >>> NewToken(token, "hw_0a1b2c3d_…").token.name  # doctest: +SKIP
    'alice'
    """

    token: Token
    text: str = field(repr=False)


class Tokens:
    """Who is let in, and what they may do.

    >>> hw.tokens.check("hw_0a1b2c3d_…").identity.name  # doctest: +SKIP
    'alice'
    """

    def __init__(self, store: Transactions) -> None:
        self._store = store

    def create(
        self,
        name: str,
        scope: str = Scope.READ,
        *,
        expires_in: timedelta | None = None,
        created_by: str,
    ) -> NewToken:
        """Make a token of this name; without *expires_in* it is valid until it is revoked.

        >>> hw.tokens.create("alice", "operate", created_by="bob").text  # doctest: +SKIP
        'hw_0a1b2c3d_…'
        """
        owner, wanted = checked_token_name(name), checked_scope(scope)
        by, lifetime = checked_name("operator", created_by), _checked_lifetime(expires_in)
        text = new_token_text()
        with self._store.writing() as tx:
            until = None if lifetime is None else tx.now + lifetime
            made = tokens.create(tx, owner, text, wanted, by, until)
            if made is None:
                raise DefinitionError(
                    f"token name = {shown(owner)}: there is one already; revoke it first, or "
                    f"choose another, for example '{owner}-2'"
                )
        return NewToken(made, text)

    def revoke(self, name: str) -> Token:
        """End a token, at once and for good.

        >>> hw.tokens.revoke("alice").revoked_at  # doctest: +SKIP
        """
        with self._store.writing() as tx:
            ended = tokens.revoke(tx, checked_name("token name", name))
            if ended is None:
                raise TokenNotFound(name)
        return ended

    def all(self, limit: int = SHOWN) -> list[Token]:
        """Every token, the newest first; revoked and expired ones too.

        >>> [one.name for one in hw.tokens.all()]  # doctest: +SKIP
        ['alice']
        """
        most = checked_count("limit", limit, MOST_SHOWN)
        with self._store.reading() as tx:
            return tokens.newest(tx, most)

    def exist(self) -> bool:
        """Whether there is a valid one.

        >>> hw.tokens.exist()  # doctest: +SKIP
        True
        """
        with self._store.reading() as tx:
            return tokens.any_valid(tx)

    def check(self, text: str) -> Known | None:
        """Whose token this is, if it is valid; its use is noted now and then.

        >>> hw.tokens.check("letmein") is None  # doctest: +SKIP
        True
        """
        with self._store.reading() as tx:
            found = tokens.by_text(tx, text)
            if found is None or not found.valid(tx.now):
                return None
            fresh = tokens.is_fresh(found, tx.now)
        if not fresh:
            with self._store.writing() as tx:
                tokens.touch(tx, found.id)
        return found.known

    def still(self, token: int) -> Known | None:
        """Whose token has this id, if it is valid still.

        >>> hw.tokens.still(7) is None  # doctest: +SKIP
        True
        """
        with self._store.reading() as tx:
            found = tokens.by_id(tx, token)
            return found.known if found is not None and found.valid(tx.now) else None


def _checked_lifetime(value: object) -> timedelta | None:
    if value is None:
        return None
    if not isinstance(value, timedelta) or not timedelta(0) < value <= LONGEST:
        raise DefinitionError(
            f"expires_in = {shown(value)}: must be a timedelta from above 0 to {LONGEST.days} "
            "days; for example timedelta(days=90)"
        )
    return value
