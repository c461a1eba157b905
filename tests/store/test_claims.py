"""The claim/lease protocol: one holder at a time, and nothing written by anybody else."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import literal, select, text

from headway.domain.azolla.artifacts import ClaimRecord, ResourceType
from headway.errors import DefinitionError
from headway.store import claims
from headway.store.claims import ClaimLost
from headway.store.engine import Store
from headway.store.tables import claim_record
from tests.builders import eventually
from tests.store.factories import ME, NOON, OTHER, Clock, at_once, rows_of

LEASE = timedelta(seconds=30)
EVENT = ResourceType.EVENT
RACES = 40


def acquire(store: Store, owner: str = ME, resource: str = "e1") -> ClaimRecord | None:
    with store.writing() as tx:
        return claims.acquire(tx, EVENT, resource, owner, LEASE)


def held(store: Store, owner: str = ME) -> ClaimRecord:
    claim = acquire(store, owner)
    assert claim is not None
    return claim


def renew(store: Store, claim: ClaimRecord) -> ClaimRecord:
    with store.writing() as tx:
        return claims.renew(tx, claim, LEASE)


def release(store: Store, claim: ClaimRecord) -> None:
    with store.writing() as tx:
        claims.release(tx, claim)


def test_the_first_gets_it_at_version_nought(store: Store) -> None:
    claim = held(store)
    assert (claim.owner_id, claim.claim_version) == (ME, 0)
    assert (claim.heartbeat_at, claim.lease_expires_at) == (NOON, NOON + LEASE)
    assert ClaimRecord.model_validate(rows_of(store, claim_record)[0]) == claim


def test_while_the_lease_lasts_nobody_else_gets_it(store: Store, clock: Clock) -> None:
    claim = held(store)
    clock.now += LEASE - timedelta(microseconds=1)
    assert acquire(store, OTHER) is None
    assert acquire(store, ME) is None, "not even the holder: it renews"
    assert acquire(store, OTHER, "e2") is not None, "another resource is another claim"
    assert ClaimRecord.model_validate(rows_of(store, claim_record)[0]) == claim


def test_an_expired_one_is_taken_over_with_the_next_version(store: Store, clock: Clock) -> None:
    before = held(store)
    clock.now += LEASE
    after = held(store, OTHER)
    assert (after.owner_id, after.claim_version) == (OTHER, 1)
    assert after.lease_expires_at == clock.now + LEASE
    for refused in (renew, release):
        with pytest.raises(ClaimLost, match="LEASE_LOST: worker-1 no longer holds EVENT e1"):
            refused(store, before)


def test_a_renewal_raises_the_version_and_the_old_one_is_worth_nothing(
    store: Store, clock: Clock
) -> None:
    first = held(store)
    clock.now += LEASE / 2
    second = renew(store, first)
    assert (second.claim_version, second.heartbeat_at) == (1, clock.now)
    assert second.lease_expires_at == clock.now + LEASE
    with pytest.raises(ClaimLost):
        renew(store, first)
    assert renew(store, second).claim_version == 2


def test_after_its_release_the_next_one_gets_it_and_no_version_comes_back(store: Store) -> None:
    first = held(store)
    release(store, first)
    with pytest.raises(ClaimLost):
        release(store, first)
    assert held(store, OTHER).claim_version == 2


@pytest.mark.parametrize(
    "change",
    [{"owner_id": OTHER}, {"claim_version": 1}, {"claim_version": 7}, {"resource_id": "e2"}],
    ids=str,
)
@pytest.mark.parametrize("verb", [claims.fence, claims.release, partial(claims.renew, lease=LEASE)])
def test_whoever_is_not_the_holder_changes_nothing(
    store: Store, verb: Callable[..., Any], change: dict[str, Any]
) -> None:
    claim, before = held(store), rows_of(store, claim_record)
    with store.writing() as tx, pytest.raises(ClaimLost):
        verb(tx, claim.model_copy(update=change))
    assert rows_of(store, claim_record) == before


@pytest.mark.parametrize("verb", [claims.fence, claims.release, partial(claims.renew, lease=LEASE)])
def test_after_the_lease_even_the_holder_changes_nothing(
    store: Store, clock: Clock, verb: Callable[..., Any]
) -> None:
    claim, before = held(store), rows_of(store, claim_record)
    clock.now += LEASE
    with store.writing() as tx, pytest.raises(ClaimLost):
        verb(tx, claim)
    assert rows_of(store, claim_record) == before


@pytest.mark.parametrize(
    ("owner", "lease", "said"),
    [
        ("", LEASE, "claim owner_id = '': must not be empty; for example 'server-7'"),
        (" ", LEASE, "claim owner_id = ' ': must not be empty"),
        (ME, timedelta(0), "claim lease = 0:00:00: must be from 1 second to 1 hour"),
        (ME, timedelta(days=365), "claim lease = 365 days, 0:00:00: must be from 1 second"),
        (ME, -LEASE, "must be from 1 second to 1 hour; for example 30s"),
    ],
    ids=str,
)
def test_a_claim_for_nobody_or_for_ever_is_refused(
    store: Store, owner: str, lease: timedelta, said: str
) -> None:
    with store.writing() as tx, pytest.raises(DefinitionError) as refused:
        claims.acquire(tx, EVENT, "e1", owner, lease)
    assert said in str(refused.value)
    assert rows_of(store, claim_record) == []
    claim = held(store)
    with store.writing() as tx, pytest.raises(DefinitionError):
        claims.renew(tx, claim.model_copy(update={"owner_id": owner}), lease)


@pytest.mark.parametrize("lease", [timedelta(seconds=1), timedelta(hours=1)], ids=str)
def test_the_shortest_and_the_longest_lease_are_taken(store: Store, lease: timedelta) -> None:
    with store.writing() as tx:
        claim = claims.acquire(tx, EVENT, "e1", ME, lease)
        assert claim is not None and claim.lease_expires_at == NOON + lease
        assert claims.renew(tx, claim, lease).lease_expires_at == NOON + lease


def test_a_renewal_for_too_short_a_time_is_refused(store: Store) -> None:
    claim = held(store)
    with store.writing() as tx, pytest.raises(DefinitionError, match="claim lease"):
        claims.renew(tx, claim, timedelta(0))


def test_a_release_ends_the_lease_and_says_when_it_was_renewed_last(
    store: Store, clock: Clock
) -> None:
    claim = held(store)
    before = rows_of(store, claim_record)[0]
    later = clock.advance(seconds=1)
    release(store, claim)
    changed = {"lease_expires_at": later, "claim_version": 1}
    assert rows_of(store, claim_record) == [before | changed]


def test_whether_something_is_claimed_is_asked_of_its_kind_and_its_holder(
    store: Store, clock: Clock
) -> None:
    held(store)
    asked = [
        (EVENT, "e1", None),
        (EVENT, "e1", ME),
        (EVENT, "e1", OTHER),
        (EVENT, "e2", None),
        (ResourceType.WORKORDER, "e1", None),
    ]

    def answers() -> list[bool]:
        with store.reading() as tx:
            conditions = [claims.held(tx, kind, literal(key), by) for kind, key, by in asked]
            return [bool(tx.connection.execute(select(one)).scalar()) for one in conditions]

    assert answers() == [True, True, False, False, False]
    clock.now += LEASE
    assert answers() == [False] * 5


def test_of_many_at_once_one_gets_it_and_every_version_has_one_owner(
    store: Store, second: Store, clock: Clock
) -> None:
    """Takeovers of an expired claim by real connections, again and again."""
    stores = (store, second)
    for number in range(RACES):
        won = at_once(*(partial(acquire, stores[n % 2], f"owner-{n}") for n in range(6)))
        winners = [one for one in won if one is not None]
        assert [one.claim_version for one in winners] == [number]
        clock.now += LEASE


def test_a_renewal_against_a_takeover_has_one_winner(
    store: Store, second: Store, clock: Clock
) -> None:
    """The clock stands at the edge: the holder finds itself expired, or nobody took over."""
    for _ in range(RACES):
        claim = held(store)
        clock.now += LEASE - timedelta(microseconds=1)

        def take_over() -> ClaimRecord | None:
            clock.now += timedelta(microseconds=1)
            return acquire(second, OTHER)

        renewed, taken = at_once(partial(attempt, partial(renew, store, claim)), take_over)
        assert (renewed is None) != (taken is None)
        clock.now += 2 * LEASE


def attempt(write: Callable[[], ClaimRecord]) -> ClaimRecord | None:
    try:
        return write()
    except ClaimLost:
        return None


def test_what_is_fenced_cannot_be_taken_over_before_it_is_written(
    emptied_postgres_url: str, clock: Clock
) -> None:
    """The holder's lease ends while its transaction is open: whoever comes waits for its end."""
    with closing(Store(emptied_postgres_url, clock=clock)) as store:
        claim = held(store)
        with ThreadPoolExecutor(1) as pool:
            with store.writing() as tx:
                claims.fence(tx, claim)
                clock.now += LEASE
                taking_over = pool.submit(acquire, store, OTHER)
                pid = tx.connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
                eventually(partial(somebody_waits_for, pid, store))
                assert not taking_over.done()
            taken = taking_over.result()
    assert taken is not None and taken.claim_version == 1


def somebody_waits_for(pid: int, store: Store) -> bool:
    blocked = "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE :pid = ANY (pg_blocking_pids(pid)))"
    with closing(store.apart()) as other, other.reading() as tx:
        return bool(tx.connection.execute(text(blocked), {"pid": pid}).scalar_one())
