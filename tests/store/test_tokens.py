"""Tokens as they are kept."""

from __future__ import annotations

from datetime import datetime, timedelta

from headway.domain.access import Scope, Token, new_token_text, prefix_of
from headway.store import tokens
from headway.store.engine import Store
from headway.store.tokens import TOUCHED_EVERY
from tests.store.factories import NOBODY, NOON, Clock

HOUR = timedelta(hours=1)


def create(store: Store, name: str, expires_at: datetime | None = None) -> tuple[Token, str]:
    text = new_token_text()
    with store.writing() as tx:
        made = tokens.create(tx, name, text, Scope.OPERATE, "root", expires_at)
    assert made is not None
    return made, text


def test_a_token_is_kept_with_everything_but_its_text(store: Store) -> None:
    made, text = create(store, "alice", NOON + HOUR)
    assert made == Token(
        id=made.id,
        name="alice",
        prefix=prefix_of(text) or "",
        scope=Scope.OPERATE,
        created_at=NOON,
        created_by="root",
        expires_at=NOON + HOUR,
        last_used_at=None,
        revoked_at=None,
    )
    with store.reading() as tx:
        assert tokens.by_text(tx, text) == made
        assert tokens.by_text(tx, text[:-1] + ("a" if text[-1] != "a" else "b")) is None
        assert tokens.by_text(tx, "nonsense") is None
        assert tokens.by_id(tx, made.id) == made
        assert tokens.by_id(tx, NOBODY) is None


def test_the_newest_come_first(store: Store) -> None:
    first, second, third = (create(store, name)[0] for name in ("a", "b", "c"))
    with store.reading() as tx:
        assert tokens.newest(tx, 10) == [third, second, first]
        assert tokens.newest(tx, 2) == [third, second]


def test_a_name_is_given_again_once_it_was_revoked(store: Store, clock: Clock) -> None:
    first, text = create(store, "alice")
    later = clock.advance(minutes=1)
    with store.writing() as tx:
        assert tokens.create(tx, "alice", new_token_text(), Scope.READ, "root", None) is None
        ended = tokens.revoke(tx, "alice")
        assert ended is not None and (ended.id, ended.revoked_at) == (first.id, later)
        assert tokens.revoke(tx, "alice") is None
        assert tokens.by_text(tx, text) == ended
    assert create(store, "alice")[0].revoked_at is None


def test_somebody_can_be_let_in_while_a_token_is_valid(store: Store, clock: Clock) -> None:
    def any_valid() -> bool:
        with store.reading() as tx:
            return tokens.any_valid(tx)

    assert not any_valid()
    create(store, "short", NOON + HOUR)
    assert any_valid()
    clock.advance(hours=1)
    assert not any_valid(), "it has expired"
    create(store, "endless")
    assert any_valid()
    with store.writing() as tx:
        tokens.revoke(tx, "endless")
    assert not any_valid()


def test_a_use_is_noted_every_few_minutes(store: Store, clock: Clock) -> None:
    made, _ = create(store, "alice")
    other, _ = create(store, "bob")

    def touched() -> Token:
        with store.writing() as tx:
            tokens.touch(tx, made.id)
            found = tokens.by_id(tx, made.id)
        assert found is not None
        return found

    assert not tokens.is_fresh(made, clock.now)
    first = touched()
    assert first.last_used_at == NOON and tokens.is_fresh(first, NOON)
    clock.now = NOON + TOUCHED_EVERY - timedelta(seconds=1)
    assert touched() == first and tokens.is_fresh(first, clock.now)
    clock.now = NOON + TOUCHED_EVERY
    assert not tokens.is_fresh(first, clock.now)
    assert touched().last_used_at == clock.now
    with store.reading() as tx:
        assert tokens.by_id(tx, other.id) == other
