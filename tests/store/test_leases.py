"""Leases and what becomes of the runs of servers that lost them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from headway.domain.dead_letter import DeadLetterStatus
from headway.domain.execution import Execution, ExecutionState, Failure, FailureCode, Outcome
from headway.domain.routing import Routing
from headway.domain.work_queue import Source
from headway.store import dead_letters, executions, leases, outcomes, work_queue
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.servers import ServerProcess
from headway.store.tables import execution, execution_history, server
from headway.store.tables import work_queue as queue_table
from tests.store.factories import (
    COMPLETED,
    ME,
    OTHER,
    Clock,
    at_once,
    declare,
    dispatched,
    everything,
    finish,
    queue,
    queue_ad_hoc,
    rows_of,
    started,
    state_of,
    view_of,
)

LEASE = timedelta(seconds=15)
BEAT = LEASE / 5
CRASHES = 3
RACES = 220


def register(store: Store, *ids: str, lease: timedelta = LEASE) -> None:
    with store.writing() as tx:
        for key in ids:
            leases.register(tx, ServerProcess(key, "host", 1, ["worker"], ["work"], 2), lease)


def renew(store: Store, server_id: str) -> bool:
    with store.writing() as tx:
        return leases.renew(tx, server_id, LEASE)


def bury(store: Store, by: str = ME) -> list[str]:
    with store.writing() as tx:
        return leases.bury(tx, by, LEASE)


def sweep(store: Store, max_crashes: int = CRASHES) -> list[Execution]:
    with store.writing() as tx:
        return outcomes.end_orphans(tx, max_crashes)[0]


def claim(store: Store, owner: str) -> list[Execution]:
    """As a worker pool does it."""
    with store.writing() as tx:
        return executions.claim_pending(tx, owner, 10, ["work"]) if leases.hold(tx, owner) else []


def live_on(store: Store, clock: Clock, *ids: str, beats: int = 5) -> None:
    """These servers renew on time, and time passes."""
    for _ in range(beats):
        clock.advance(seconds=BEAT.total_seconds())
        assert all([renew(store, key) for key in ids])


def ids(store: Store) -> list[str]:
    return sorted(row["id"] for row in rows_of(store, server))


def test_a_row_says_everything_about_its_process(store: Store, clock: Clock) -> None:
    routing = Routing(by_workflow={"train": "gpu"})
    process = ServerProcess(ME, "web", 7, ["worker", "manager"], ["work", "load"], 3, routing)
    with store.writing() as tx:
        leases.register(tx, process, LEASE)
    assert rows_of(store, server) == [
        {
            "id": ME,
            "host": "web",
            "pid": 7,
            "roles": '["manager", "worker"]',
            "workflows": '["load", "work"]',
            "slots": 3,
            "started_at": clock.now,
            "renewed_at": clock.now,
            "expires_at": clock.now + LEASE,
            "unbroken_since": clock.now,
            "routes": routing.to_json(),
        }
    ]


def test_more_than_half_a_lease_without_a_renewal_is_a_gap(store: Store, clock: Clock) -> None:
    register(store, ME)
    clock.now += LEASE / 2
    assert renew(store, ME)
    [row] = rows_of(store, server)
    assert row["unbroken_since"] == clock.now - LEASE / 2
    clock.now += LEASE / 2 + timedelta(microseconds=1)
    assert renew(store, ME)
    [row] = rows_of(store, server)
    assert row["unbroken_since"] == clock.now


def test_a_lease_is_renewed_while_it_lives(store: Store, clock: Clock) -> None:
    register(store, ME)
    clock.advance(seconds=14)
    assert renew(store, ME)
    [row] = rows_of(store, server)
    assert (row["renewed_at"], row["expires_at"]) == (clock.now, clock.now + LEASE)
    assert row["started_at"] == clock.now - timedelta(seconds=14)


def test_a_renewal_after_the_end_touches_nothing(store: Store, clock: Clock) -> None:
    register(store, ME)
    clock.advance(seconds=15)
    before = everything(store)
    assert not renew(store, ME)
    assert not renew(store, "never registered")
    assert everything(store) == before


def test_a_server_without_a_living_row_claims_nothing(store: Store, clock: Clock) -> None:
    declare(store, "extract")
    pending = dispatched(store)
    before = everything(store)
    assert claim(store, ME) == []
    assert everything(store) == before
    register(store, ME)
    clock.advance(seconds=15)
    assert claim(store, ME) == []
    register(store, OTHER)
    assert [one.id for one in claim(store, OTHER)] == [pending]


def test_an_expired_row_is_buried_and_a_living_one_is_not(store: Store, clock: Clock) -> None:
    register(store, ME, OTHER, "third")
    live_on(store, clock, ME, "third")
    assert bury(store) == [OTHER]
    assert ids(store) == ["third", ME]
    assert bury(store) == []


def test_who_was_away_buries_nobody_until_it_was_there_for_one_lease(
    store: Store, clock: Clock
) -> None:
    """After an outage the first process back must not reclaim a healthy fleet's jobs."""
    register(store, ME, OTHER)
    live_on(store, clock, ME, OTHER)
    clock.advance(seconds=60)

    assert not renew(store, ME), "it was away for too long itself"
    register(store, "me again")
    assert bury(store, "me again") == []
    live_on(store, clock, "me again", beats=4)
    assert bury(store, "me again") == []
    live_on(store, clock, "me again", beats=1)
    assert bury(store, "me again") == [ME, OTHER]


def test_who_was_cut_off_but_kept_its_lease_buries_nobody_either(
    store: Store, clock: Clock
) -> None:
    """Its renewal came just in time, that of another would come a moment later."""
    register(store, OTHER)
    live_on(store, clock, OTHER)
    clock.advance(seconds=2)
    register(store, ME)
    live_on(store, clock, ME, OTHER)
    clock.advance(seconds=2)
    assert renew(store, ME)
    clock.advance(seconds=14)
    assert renew(store, ME), "it lives, and has for long"
    assert not renew(store, OTHER)

    assert bury(store) == []
    live_on(store, clock, ME)
    assert bury(store) == [OTHER]


def test_the_dead_bury_nobody(store: Store, clock: Clock) -> None:
    register(store, ME, OTHER)
    live_on(store, clock, ME)
    clock.advance(seconds=15)
    assert bury(store) == []
    assert bury(store, "nobody") == []


def test_a_server_of_an_older_version_buries_nobody(store: Store, clock: Clock) -> None:
    """It wrote its row without saying since when it is there."""
    register(store, ME, OTHER)
    with store.writing() as tx:
        tx.connection.execute(server.update().values(unbroken_since=None))
    live_on(store, clock, ME)
    assert bury(store) == []


def test_whoever_leaves_is_gone_at_once(store: Store) -> None:
    register(store, ME, OTHER)
    with store.writing() as tx:
        leases.leave(tx, ME)
    assert ids(store) == [OTHER]
    assert not renew(store, ME)


def test_runs_of_the_living_and_of_the_unburied_are_nobodys_orphans(
    store: Store, clock: Clock
) -> None:
    declare(store, "one", "two")
    register(store, ME, OTHER)
    started(store, "one", ME)
    started(store, "two", OTHER)
    live_on(store, clock, ME)
    before = everything(store)
    assert sweep(store) == []
    assert everything(store) == before


def test_an_orphans_entry_is_queued_again_at_once_and_its_crash_counted(
    store: Store, clock: Clock
) -> None:
    declare(store, "one", "two")
    register(store, ME, OTHER)
    mine, theirs = started(store, "one", ME), started(store, "two", OTHER)
    live_on(store, clock, ME)
    bury(store)

    [ended] = sweep(store)

    assert (ended.id, ended.state, ended.owner) == (theirs.id, ExecutionState.FAILED, OTHER)
    assert ended.failure is not None and ended.failure.type == FailureCode.WORKER_LOST
    assert [row["id"] for row in rows_of(store, execution)] == [mine.id]
    [entry] = rows_of(store, queue_table)
    assert entry["id"] == theirs.entry_id
    assert (entry["status"], entry["crashes"], entry["attempts"]) == ("queued", 1, 0)
    assert entry["scheduled_at"] is None, "at once"
    view = view_of(store, "two")
    assert (view.failed_count, view.has_awaiting_dead_letter) == (0, False), "not charged"
    assert finish(store, theirs, owner=OTHER) == [], "the zombie comes too late"
    assert sweep(store) == []


def lose(store: Store, entry: int) -> Execution:
    """Dispatch the entry to a server that begins it and dies with it."""
    with store.writing() as tx:
        [execution_id] = work_queue.dispatch(tx, [entry]).values()
    with store.writing() as tx:
        assert executions.claim_one(tx, "doomed", execution_id) is not None
        assert executions.note_step(tx, "doomed", execution_id, "extract") == ""
    [ended] = sweep(store)
    return ended


@pytest.mark.story(40)
def test_a_job_that_killed_three_workers_becomes_a_dead_letter(store: Store) -> None:
    declare(store, "extract")
    entry = queue(store)
    runs = [lose(store, entry) for _ in range(CRASHES)]

    assert [one.crashes for one in runs] == [0, 1, 2]
    assert {one.entry_id for one in runs} == {entry}
    assert {one.attempt for one in runs} == {1}
    assert rows_of(store, queue_table) == []
    with store.reading() as tx:
        [letter] = dead_letters.awaiting(tx)
    assert (letter.external_id, letter.failures) == ("extract", CRASHES)
    assert letter.reason == "its job killed its worker 3 times"
    assert letter.status is DeadLetterStatus.AWAITING_INTERVENTION
    assert state_of(store).success_seq == 0


def test_a_trigger_keeps_its_one_attempt_over_crashes(store: Store) -> None:
    declare(store, "extract")
    entry = queue(store, source=Source.TRIGGER)
    lose(store, entry)
    lose(store, entry)
    with store.writing() as tx:
        [execution_id] = work_queue.dispatch(tx, [entry]).values()
        one = executions.claim_one(tx, ME, execution_id)
    assert one is not None and (one.attempt, one.crashes) == (1, 2)
    assert finish(store, one)[0].state is ExecutionState.COMPLETED


def test_without_a_manifest_the_third_crash_is_the_end(store: Store) -> None:
    entry = queue_ad_hoc(store)
    for _ in range(CRASHES):
        lost = lose(store, entry)
    assert lost.state is ExecutionState.FAILED
    assert rows_of(store, queue_table) == []
    with store.reading() as tx:
        assert dead_letters.awaiting(tx) == []


@pytest.mark.parametrize(
    ("reason", "state", "kind"),
    [
        ("please", ExecutionState.CANCELLED, "JobCancelled"),
        ("timeout", ExecutionState.FAILED, FailureCode.JOB_TIMEOUT),
    ],
)
def test_an_orphan_that_was_to_be_stopped_does_not_start_again(
    store: Store, reason: str, state: ExecutionState, kind: str
) -> None:
    declare(store, "extract")
    one = started(store)
    with store.writing() as tx:
        executions.request_cancel(tx, [one.id], reason)
    [ended] = sweep(store)
    assert (ended.state, ended.failure and ended.failure.type) == (state, kind)
    assert rows_of(store, queue_table) == []


def test_an_orphan_of_a_removed_manifest_is_not_run_again(store: Store) -> None:
    declare(store, "extract", "load")
    started(store)
    declare(store, "load")
    sweep(store)
    assert [row["status"] for row in rows_of(store, queue_table)] == ["cancelled"]


def test_whoever_lost_the_answer_to_a_commit_finds_its_outcomes_again(store: Store) -> None:
    declare(store, "one", "two", "three")
    failed = Outcome(ExecutionState.FAILED, Failure("load", "ValueError", "no rows"))
    done, broke, lost = started(store, "one"), started(store, "two"), started(store, "three")
    finish(store, done)
    finish(store, broke, failed)
    sweep(store)
    ends = {done.id: COMPLETED, broke.id: failed, lost.id: failed}
    with store.reading() as tx:
        assert [one.id for one in outcomes.written_by(tx, ME, ends)] == [done.id, broke.id]
        assert outcomes.written_by(tx, OTHER, ends) == []


@pytest.mark.story(2, 5)
def test_a_run_that_ends_while_its_owner_is_swept_has_one_end(store: Store, second: Store) -> None:
    """Its owner was buried: a zombie finishes, another server reclaims."""
    declare(store, "extract")
    completed = 0
    for _ in range(RACES):
        one = started(store, source=Source.TRIGGER)
        finished, swept = at_once(partial(finish, store, one), partial(sweep, second, 10**6))
        assert len(finished) + len(swept) == 1
        completed += len(finished)
        record = rows_of_last(store)
        assert (record["id"], record["state"]) == (one.id, "completed" if finished else "failed")
        assert [row["id"] for row in rows_of(store, queue_table)] == [
            lost.entry_id for lost in swept
        ]
        with store.writing() as tx:
            tx.connection.execute(queue_table.delete())
    assert state_of(store).success_seq == completed
    assert rows_of(store, execution) == []


def rows_of_last(store: Store) -> Any:
    with store.reading() as tx:
        newest = execution_history.select().order_by(execution_history.c.id.desc()).limit(1)
        return tx.connection.execute(newest).mappings().one()


def test_two_servers_that_sweep_at_once_end_each_orphan_once(store: Store, second: Store) -> None:
    declare(store, *(f"extract-{number}" for number in range(10)))
    for _ in range(10):
        lost = [started(store, f"extract-{n}", source=Source.TRIGGER).id for n in range(10)]
        ends = at_once(partial(sweep, store, 10**6), partial(sweep, second, 10**6))
        swept = sorted(one.id for batch in ends for one in batch)
        swept += [one.id for one in sweep(store, 10**6)]  # what one held, the other left out
        assert sorted(swept) == lost
        with store.writing() as tx:
            tx.connection.execute(queue_table.delete())


class TestByTheDatabasesOwnClock:
    """Real connections and real time: the renewal, the claim and the burial meet at one row."""

    @pytest.fixture
    def ticking(self, store_url: str) -> Iterator[Store]:
        store = Store(store_url, durable=False)
        yield store
        store.close()

    @pytest.fixture
    def apart(self, ticking: Store) -> Iterator[Store]:
        apart = ticking.apart()
        yield apart
        apart.close()

    def test_a_lease_lives_and_ends(self, ticking: Store) -> None:
        register(ticking, ME)
        assert renew(ticking, ME)
        register(ticking, OTHER, lease=timedelta(0))
        assert not renew(ticking, OTHER)
        with ticking.writing() as tx:
            assert leases.hold(tx, ME)
            assert not leases.hold(tx, OTHER)
            assert leases.bury(tx, ME, timedelta(0)) == [OTHER]

    def test_a_renewal_and_a_burial_at_once_have_one_winner(
        self, ticking: Store, apart: Store
    ) -> None:
        """The row expires in the very moment in which both look at it."""
        register(ticking, ME)

        def late(key: str) -> bool:
            return renew(ticking, key)

        def buried(key: str) -> bool:
            with apart.writing() as tx:
                return key in leases.bury(tx, ME, timedelta(0))

        for number in range(50):
            key = f"late-{number}"
            register(ticking, key, lease=timedelta(milliseconds=3))
            renewed, dead = at_once(partial(late, key), partial(buried, key))
            assert not (renewed and dead)
            assert (key in ids(ticking)) == (not dead)


def test_a_row_held_by_a_claim_is_not_buried_until_that_ends(postgres_url: str) -> None:
    """What is claimed under it would otherwise be born an orphan."""
    clock = Clock()
    store, second = Store(postgres_url, clock=clock), Store(postgres_url, clock=clock)
    try:
        migrate(store)
        register(store, ME, OTHER)
        with second.writing() as claiming:
            assert leases.hold(claiming, OTHER)
            live_on(store, clock, ME)
            assert bury(store) == []
        assert bury(store) == [OTHER]
    finally:
        store.close()
        second.close()
