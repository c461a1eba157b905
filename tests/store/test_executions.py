"""Live executions: who may claim which, what is noted while they run, and how they are counted."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from headway.domain.admission import Active
from headway.domain.execution import Execution, ExecutionState, StepRun
from headway.domain.manifest import Group
from headway.domain.work_queue import Source
from headway.store import executions, leases, work_queue
from headway.store.engine import Store
from headway.store.executions import LONGEST_TIMEOUT, Owned, Progress, Running
from headway.store.servers import ServerProcess
from headway.store.tables import execution
from tests.store.factories import (
    CANCELLED,
    ME,
    NOBODY,
    NOON,
    OTHER,
    Clock,
    a_manifest,
    change_manifest,
    declare,
    dispatched,
    finish,
    queue,
    queue_ad_hoc,
    rows_of,
    started,
)

FIRST_STEPS = {"work": "read", "other": "fetch"}


def pending(store: Store, server: str | None = None, crashes: int = 0, **changes: Any) -> int:
    """An execution without a manifest that waits for its worker."""
    entry = queue_ad_hoc(store, **changes)
    with store.writing() as tx:
        [key] = work_queue.dispatch(tx, [entry], {entry: server} if server else {}).values()
    change(store, key, crashes=crashes)
    return key


def change(store: Store, key: int, **values: Any) -> None:
    with store.writing() as tx:
        this = execution.c.id == key
        tx.connection.execute(update(execution).where(this).values(values))


def claim(
    store: Store, limit: int = 10, workflows: Collection[str] = ("work",), **options: Any
) -> list[Execution]:
    with store.writing() as tx:
        return executions.claim_pending(tx, ME, limit, workflows, **options)


def live(store: Store) -> dict[int, dict[str, Any]]:
    return {row["id"]: row for row in rows_of(store, execution)}


# Claiming


def test_what_is_claimed_says_by_whom_since_when_and_in_which_step(
    store: Store, clock: Clock
) -> None:
    key, other = pending(store), pending(store, workflow="other")
    strange = pending(store, workflow="strange")
    before = live(store)
    later = clock.advance(minutes=1)
    found = claim(store, workflows=("work", "other", "strange"), first_steps=FIRST_STEPS)
    assert [one.id for one in found] == [key, other, strange]
    began = {"state": "in_progress", "owner": ME, "started_at": later, "step_started_at": later}
    assert live(store) == {
        key: before[key] | began | {"running_step": "read"},
        other: before[other] | began | {"running_step": "fetch"},
        strange: before[strange] | began,
    }
    assert {(one.state, one.owner, one.started_at) for one in found} == {
        (ExecutionState.IN_PROGRESS, ME, later)
    }
    assert [one.running_step for one in found] == ["read", "fetch", None]


def test_what_was_sent_elsewhere_is_not_claimed(store: Store) -> None:
    pending(store, server="gpu")
    own = pending(store)
    assert [one.id for one in claim(store)] == [own]


def test_what_took_workers_along_is_claimed_by_their_number_and_without_a_step(
    store: Store,
) -> None:
    keys = [pending(store, crashes=crashes) for crashes in range(4)]
    assert claim(store, crashes=range(4, 9)) == []
    some = claim(store, first_steps=FIRST_STEPS, crashes=range(1, 3))
    assert [one.id for one in some] == keys[1:3]
    assert [one.running_step for one in some] == [None, None]
    rest = claim(store, first_steps=FIRST_STEPS)
    assert [(one.id, one.running_step) for one in rest] == [(keys[0], "read"), (keys[3], None)]


def test_what_waits_for_the_own_workers_is_known_by_how_many_it_took_along(store: Store) -> None:
    def waits(crashes: range) -> bool:
        with store.reading() as tx:
            return executions.has_pending(tx, crashes)

    pending(store, server="gpu", crashes=1)
    claimed = pending(store, crashes=1)
    with store.writing() as tx:
        executions.claim_one(tx, ME, claimed)
    assert not waits(range(9))
    pending(store, crashes=2)
    assert [waits(one) for one in (range(2), range(2, 3), range(3, 9))] == [False, True, False]


def test_a_lease_is_held_to_claim_what_waits_and_to_start_if_nothing_does(store: Store) -> None:
    with store.writing() as tx:
        process = ServerProcess(ME, "host", 1, ["executor"], ["work"], 1)
        leases.register(tx, process, timedelta(minutes=1))

    def held(owner: str = ME) -> tuple[bool, bool]:
        with store.writing() as tx:
            return executions.hold_to_claim(tx, owner), executions.hold_to_start(tx, owner)

    assert held() == (False, True)
    pending(store, server="gpu")
    assert held() == (False, True), "what is sent elsewhere is not waited for"
    pending(store)
    assert (held(), held(OTHER)) == ((True, False), (False, False))
    claim(store)
    assert held() == (False, True)


def test_what_waits_for_its_worker_is_stale_before_a_moment(store: Store, clock: Clock) -> None:
    def stale(before: Any) -> bool:
        with store.reading() as tx:
            return executions.has_stale_pending(tx, before)

    running = pending(store)
    claim(store)
    clock.advance(minutes=1)
    pending(store, server="gpu")
    assert not stale(clock.now)
    assert stale(clock.now + timedelta(microseconds=1))
    assert running in live(store)


# Noting


def test_steps_that_have_ended_are_noted_with_the_one_that_runs(store: Store) -> None:
    key = pending(store)
    claim(store)
    ended = [StepRun("read", NOON, 1.5)]
    with store.writing() as tx:
        assert executions.note_step(tx, ME, key, "write", ended) == ""
    [row] = rows_of(store, execution)
    [noted] = json.loads(row["steps"])
    assert row["running_step"] == "write"
    assert "read" in str(noted) and "1.5" in str(noted)


def test_a_run_that_is_to_stop_is_told_why_or_that_it_is(store: Store) -> None:
    first, second, other = (pending(store) for _ in range(3))
    claim(store)
    change(store, first, cancel_requested=True, cancel_reason="wrong day")
    change(store, second, cancel_requested=True)
    change(store, other, owner=OTHER)
    with store.writing() as tx:
        assert executions.note_step(tx, ME, second, "write") == "requested"
        owned = {one.execution_id: one for one in executions.owned_by_any(tx, [ME, OTHER])}
        assert len(executions.owned_by_any(tx, [OTHER])) == 1
    assert owned == {
        first: Owned(first, ME, "wrong day"),
        second: Owned(second, ME, "requested"),
        other: Owned(other, OTHER, None),
    }


def test_progress_is_noted_with_its_words_for_each_run(store: Store) -> None:
    first, second, untold = (pending(store) for _ in range(3))
    claim(store)
    reported = {second: Progress(0.25), first: Progress(0.5, "half"), NOBODY: Progress(1.0)}
    with store.writing() as tx:
        executions.note_progress(tx, ME, reported)
    told = {key: (row["progress"], row["progress_note"]) for key, row in live(store).items()}
    assert told == {first: (0.5, "half"), second: (0.25, None), untold: (None, None)}


# Watching


def test_what_runs_is_told_with_the_timeout_of_its_manifest(store: Store, clock: Clock) -> None:
    ids = declare(store, "plain", a_manifest("short", timeout=timedelta(minutes=5)), "waits")
    clock.advance(minutes=1)
    short = started(store, "short", OTHER)
    alone = pending(store)
    claim(store)
    plain = started(store, "plain")
    dispatched(store, "waits")
    change(store, plain.id, cancel_requested=True)
    moment = clock.now
    with store.reading() as tx:
        assert executions.running(tx) == [
            Running(short.id, ids["short"], moment, timedelta(minutes=5), False),
            Running(alone, None, moment, None, False),
            Running(plain.id, ids["plain"], moment, None, True),
        ]
        keys = (short.id, plain.id, alone, NOBODY)
        timeouts = [executions.timeout_of(tx, key) for key in keys]
    assert timeouts == [timedelta(minutes=5), None, None, None]


def test_a_timeout_beyond_every_calendar_is_a_hundred_years(store: Store) -> None:
    declare(store, "extract")
    run = started(store)
    change_manifest(store, "extract", timeout_seconds=2**62)
    with store.reading() as tx:
        assert executions.timeout_of(tx, run.id) == timedelta(seconds=LONGEST_TIMEOUT)


def test_a_run_is_asked_to_stop_once_and_counted_each_time(store: Store) -> None:
    first, second, other = (pending(store) for _ in range(3))
    claim(store)
    waits = pending(store)
    with store.writing() as tx:
        assert executions.request_cancel(tx, [second, waits], "timeout") == [second]
        chosen = execution.c.id.in_([first, second, waits])
        assert executions.ask_to_stop(tx, chosen, "wrong day") == 2
        assert executions.request_cancel(tx, [first, second], "late", wait=False) == []
    told = {key: row["cancel_reason"] for key, row in live(store).items()}
    assert told == {first: "wrong day", second: "timeout", other: None, waits: None}
    flagged = {key for key, row in live(store).items() if row["cancel_requested"]}
    assert flagged == {first, second}


# Counting and finding


def test_what_lives_is_counted_by_group_and_without_what_is_excluded(store: Store) -> None:
    etl = Group("etl")
    declare(store, *(a_manifest(name, group=etl) for name in ("a", "b")))
    started(store, "a")
    dispatched(store, "b")
    free = pending(store, workflow="free")
    pending(store, server="gpu")
    group = live(store)[free - 1]["group_id"]
    with store.reading() as tx:
        assert executions.count_active(tx, []).total == 4
        active = executions.count_active(tx, ["free"])
        assert executions.count_active(tx, [], free).total == 2
        assert executions.oldest_live(tx) == min(live(store))
    assert active == Active(3, {group: 2}, local=3, oldest=min(live(store)))


def test_nothing_lives_in_an_empty_store(store: Store) -> None:
    with store.reading() as tx:
        assert executions.oldest_live(tx) is None
        assert executions.count_active(tx, []).total == 0
        assert executions.find(tx, 1) is None
        assert executions.owned_by_any(tx, [ME]) == []
        assert executions.running(tx) == []


@pytest.mark.parametrize("ends", [False, True])
def test_an_execution_is_found_in_full_live_and_finished(
    store: Store, clock: Clock, ends: bool
) -> None:
    ids = declare(store, a_manifest(input="[1]"), groups=[Group("etl")])
    said: dict[str, Any] = {"scheduled_for": NOON, "priority": 7, "attempts": 2, "max_attempts": 5}
    said |= {"scheduled_at": NOON, "source": Source.TRIGGER}
    entry = queue(store, **said)
    clock.advance(minutes=1)
    with store.writing() as tx:
        [key] = work_queue.dispatch(tx, [entry]).values()
    clock.advance(minutes=1)
    with store.writing() as tx:
        run = executions.claim_one(tx, ME, key, FIRST_STEPS)
        executions.note_progress(tx, ME, {key: Progress(0.5, "half")})
        executions.request_cancel(tx, [key], "wrong day")
    assert run is not None
    expected = Execution(
        id=key,
        entry_id=entry,
        manifest_id=ids["extract"],
        external_id="extract",
        group_name="etl",
        workflow="work",
        input="[1]",
        source="trigger",
        priority=7,
        attempt=3,
        crashes=0,
        state=ExecutionState.IN_PROGRESS,
        scheduled_for=NOON,
        dispatched_at=NOON + timedelta(minutes=1),
        started_at=NOON + timedelta(minutes=2),
        finished_at=None,
        owner=ME,
        cancel_requested=False,
        running_step="read",
        step_started_at=NOON + timedelta(minutes=2),
        progress=None,
        progress_note=None,
        failure=None,
        output=None,
        task_server="local",
        parents_seen=run.parents_seen,
        max_attempts=5,
        queued_at=NOON,
    )
    assert run == expected
    expected = expected._replace(progress=0.5, progress_note="half", cancel_requested=True)
    if ends:
        [told] = finish(store, run, CANCELLED)
        expected = expected._replace(
            state=ExecutionState.CANCELLED,
            finished_at=clock.now,
            running_step=None,
            step_started_at=None,
        )
        assert told == expected
    with store.reading() as tx:
        assert executions.find(tx, key) == expected
