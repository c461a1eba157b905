"""What all web processes know of visitors: who has logged out, and who was wrong how often."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from sqlalchemy import func, insert, select

from headway.store import logouts, wrong_tries
from headway.store.engine import Store
from headway.store.tables import wrong_try
from tests.store.factories import NOON, Clock

HERE, THERE = "192.0.2.1", "2001:db8::1"


def test_a_session_that_was_ended_is_over_for_every_process(store: Store, second: Store) -> None:
    for _ in range(2):  # logging out twice is no fault
        with store.writing() as tx:
            logouts.end(tx, "ended", NOON + timedelta(hours=12))
    with second.unclocked() as tx:
        assert [logouts.has_ended(tx, one) for one in ("ended", "other")] == [True, False]


def test_wrong_tries_add_up_over_processes_and_begin_anew_each_minute(
    store: Store, second: Store, clock: Clock
) -> None:
    for asked, address in ((store, HERE), (second, HERE), (second, THERE)):
        with asked.writing() as tx:
            wrong_tries.count(tx, address)
    assert (counted(store, HERE), counted(second, HERE), counted(store, THERE)) == (2, 2, 1)
    clock.advance(seconds=60)
    assert counted(store, HERE) == 0


def test_no_try_is_lost_between_two_who_count_at_once(store: Store, second: Store) -> None:
    def count(asked: Store) -> Callable[[], None]:
        def one() -> None:
            with asked.writing() as tx:
                wrong_tries.count(tx, HERE)

        return one

    with ThreadPoolExecutor(2) as pool:
        done = [pool.submit(count(asked)) for asked in (store, second) for _ in range(20)]
    assert [one.exception() for one in done] == [None] * 40
    assert counted(store, HERE) == 40


def test_whoever_is_wrong_from_many_addresses_fills_no_disk(store: Store, clock: Clock) -> None:
    rows = [{"minute": NOON, "address": str(number), "tries": 1} for number in range(250)]
    with store.writing() as tx:
        tx.connection.execute(insert(wrong_try), rows)
    clock.advance(seconds=wrong_tries.KEPT.total_seconds() + 1)
    left = []
    for _ in range(4):
        with store.writing() as tx:
            wrong_tries.count(tx, HERE)
            found = select(func.count()).select_from(wrong_try)
            left.append(tx.connection.execute(found).scalar_one())
    assert left == [151, 51, 1, 1]


def counted(store: Store, address: str) -> int:
    with store.reading() as tx:
        return wrong_tries.counted(tx, address)
