"""Tokens: created with a hash of their text, found by that text, revoked at once."""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import and_, false, or_, select, update

from headway.domain.access import Scope, Token, hashed, prefix_of, same_hash
from headway.store.tables import token
from headway.store.transaction import Transaction, insert_or_ignore

TOUCHED_EVERY = timedelta(minutes=5)
NO_HASH = hashed("")

_COLUMNS = [column for column in token.c if column.name != "sha256"]


def create(
    tx: Transaction,
    name: str,
    text: str,
    scope: Scope,
    created_by: str,
    expires_at: datetime | None,
) -> Token | None:
    """Keep a new token; None if there is one of this name that is not revoked."""
    row = {
        "name": name,
        "prefix": prefix_of(text),
        "sha256": hashed(text),
        "scope": scope.value,
        "created_at": tx.now,
        "created_by": created_by,
        "expires_at": expires_at,
    }
    statement = insert_or_ignore(tx, token).values(row).returning(*_COLUMNS)
    made = tx.connection.execute(statement).one_or_none()
    return None if made is None else _token(made)


def by_text(tx: Transaction, text: str) -> Token | None:
    """The token with this text, valid or not.

    Compared in constant time, also when there is none.
    """
    prefix = prefix_of(text)
    chosen = token.c.prefix == prefix if prefix is not None else false()
    row = tx.connection.execute(select(token).where(chosen)).one_or_none()
    same = same_hash(text, NO_HASH if row is None else row.sha256)
    return _token(row) if row is not None and same else None


def by_id(tx: Transaction, key: int) -> Token | None:
    """The token with this id, valid or not."""
    row = tx.connection.execute(select(*_COLUMNS).where(token.c.id == key)).one_or_none()
    return None if row is None else _token(row)


def newest(tx: Transaction, limit: int) -> list[Token]:
    """Tokens, revoked and expired ones too, the newest first."""
    statement = select(*_COLUMNS).order_by(token.c.id.desc()).limit(limit)
    return [_token(row) for row in tx.connection.execute(statement)]


def any_valid(tx: Transaction) -> bool:
    """Whether anybody can be let in."""
    unexpired = or_(token.c.expires_at.is_(None), token.c.expires_at > tx.now)
    statement = select(token.c.id).where(token.c.revoked_at.is_(None), unexpired).limit(1)
    return tx.connection.execute(statement).first() is not None


def revoke(tx: Transaction, name: str) -> Token | None:
    """End the token of this name; None if there is none that is not revoked."""
    statement = (
        update(token)
        .where(token.c.name == name, token.c.revoked_at.is_(None))
        .values(revoked_at=tx.now)
        .returning(*_COLUMNS)
    )
    row = tx.connection.execute(statement).one_or_none()
    return None if row is None else _token(row)


def is_fresh(one: Token, now: datetime) -> bool:
    """Whether its last use was noted a little while ago, so that this one need not be."""
    return one.last_used_at is not None and now - one.last_used_at < TOUCHED_EVERY


def touch(tx: Transaction, key: int) -> None:
    """Note that a token is used, at most every few minutes."""
    stale = or_(token.c.last_used_at.is_(None), token.c.last_used_at <= tx.now - TOUCHED_EVERY)
    chosen = and_(token.c.id == key, stale)
    tx.connection.execute(update(token).where(chosen).values(last_used_at=tx.now))


def _token(row: Any) -> Token:
    return Token(
        id=row.id,
        name=row.name,
        prefix=row.prefix,
        scope=Scope(row.scope),
        created_at=row.created_at,
        created_by=row.created_by,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
        revoked_at=row.revoked_at,
    )
