"""What an explanation reads: the entry that comes next, how it stands, and what came before it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import insert, update

from headway.domain.entry_gates import NAMED_HOLDERS, Refusal
from headway.domain.execution import Execution, FailureCode
from headway.domain.gates import GateName
from headway.domain.manifest import Group
from headway.domain.routing import Share
from headway.domain.work_queue import EntryStatus, Source
from headway.store import executions, explaining, failed_entries, outcomes, work_queue
from headway.store.engine import Store
from headway.store.explaining import Ended
from headway.store.tables import dead_letter, execution, manifest_group
from headway.store.tables import work_queue as queue_table
from tests.store.factories import (
    FAILED,
    ME,
    NOBODY,
    NOON,
    Clock,
    a_manifest,
    change_group,
    change_manifest,
    dead_letter_for,
    declare,
    dispatched,
    finish,
    manifest_ids,
    queue,
    queue_ad_hoc,
    ran,
    rows_of,
    started,
)

SOON, LATER = NOON + timedelta(minutes=5), NOON + timedelta(hours=1)


def ask(store: Store, question: Any, *arguments: Any) -> Any:
    with store.reading() as tx:
        return question(tx, *arguments)


def answers(store: Store, entry: int, taken: list[Share] | None = None) -> set[GateName]:
    """The gates that hold an entry up."""
    standing = ask(store, explaining.standing_of, entry, taken)
    return {name for name, holds in standing.answers.items() if not holds}


def test_a_manifest_is_found_by_its_name_until_it_is_removed(store: Store) -> None:
    ids = declare(store, "extract", "removed", groups=[Group("etl", 4)])
    change_manifest(store, "removed", removed_at=NOON)
    found = [
        ask(store, explaining.manifest_id_of, name) for name in ("extract", "removed", "unknown")
    ]
    assert found == [ids["extract"], None, None]
    [group] = rows_of(store, manifest_group)
    assert ask(store, explaining.group_cap_of, group["id"]) == 4
    assert ask(store, explaining.group_cap_of, NOBODY) is None


def test_the_best_that_is_due_comes_next_and_else_what_is_due_first(
    store: Store, clock: Clock
) -> None:
    ids = declare(store, "extract", "other")

    def next_entry() -> int | None:
        found: int | None = ask(store, explaining.next_entry_of, ids["extract"])
        return found

    def asked_for(**changes: Any) -> int:
        return queue(store, "extract", source=Source.TRIGGER, **changes)

    assert next_entry() is None
    queue(store, "other", priority=31)
    late = asked_for(scheduled_at=LATER, priority=31)
    soon = asked_for(scheduled_at=SOON)
    assert next_entry() == soon
    plain = asked_for(priority=1)
    assert next_entry() == plain
    best = asked_for(priority=2)
    assert next_entry() == best
    with store.writing() as tx:
        failed_entries.fail(tx, {best: "why", plain: "why"}, FailureCode.NOT_DISPATCHABLE)
    assert next_entry() == soon
    clock.now = LATER
    assert next_entry() == late


def test_an_entry_that_waits_for_nothing_passes_every_gate(store: Store) -> None:
    declare(store, "extract")
    entry = queue(store, attempts=2, scheduled_at=NOON)
    standing = ask(store, explaining.standing_of, entry, None)
    assert set(standing.answers) == {
        GateName.DECLARED,
        GateName.ENABLED,
        GateName.GROUP_ENABLED,
        GateName.NO_DEAD_LETTER,
        GateName.DELAY_OVER,
        GateName.SINGLE_FLIGHT,
        GateName.TURN,
        GateName.WORKER,
    }
    assert all(standing.answers.values())
    assert (standing.entry.id, standing.entry.external_id) == (entry, "extract")
    assert (standing.scheduled_at, standing.attempts) == (NOON, 2)
    assert (standing.held, standing.refusal) == (False, None)
    assert ask(store, explaining.standing_of, NOBODY, None) is None


def test_every_gate_holds_up_an_entry_by_itself(store: Store) -> None:
    names = ("removed", "disabled", "dead", "delayed", "runs", "turn", "shut")
    manifests = [a_manifest(name, group=Group(name)) for name in names]
    declare(store, *manifests)
    started(store, "runs")
    dead_letter_for(store, "dead")
    better = queue(store, "turn", source=Source.TRIGGER, priority=9)
    entries = {
        name: queue(store, name, scheduled_at=SOON if name == "delayed" else None) for name in names
    }
    change_manifest(store, "removed", removed_at=NOON)
    change_manifest(store, "disabled", enabled=False)
    change_group(store, "shut", enabled=False)
    assert {name: answers(store, key) for name, key in entries.items()} == {
        "removed": {GateName.DECLARED},
        "disabled": {GateName.ENABLED},
        "dead": {GateName.NO_DEAD_LETTER},
        "delayed": {GateName.DELAY_OVER},
        "runs": {GateName.SINGLE_FLIGHT},
        "turn": {GateName.TURN},
        "shut": {GateName.GROUP_ENABLED},
    }
    assert answers(store, better) == set()
    assert answers(store, better, [Share(frozenset({"work"}))]) == set()
    assert answers(store, better, [Share(frozenset({"other"}))]) == {GateName.WORKER}


def test_a_trigger_passes_switch_and_dead_letter_of_its_manifest(
    store: Store,
) -> None:
    declare(store, "extract")
    change_manifest(store, "extract", enabled=False)
    dead_letter_for(store)
    asked = queue(store, source=Source.TRIGGER)
    assert answers(store, asked) == set()


def test_an_entry_that_is_held_stands_as_held_and_one_that_ended_no_more(store: Store) -> None:
    declare(store, "extract", "ended")
    held, ended = queue(store, source=Source.ACTIVATION), queue(store, "ended")
    with store.writing() as tx:
        this = queue_table.c.id == held
        tx.connection.execute(update(queue_table).where(this).values(status="held"))
        failed_entries.fail(tx, {ended: "why"}, FailureCode.NOT_DISPATCHABLE)
    assert ask(store, explaining.standing_of, held, None).held is True
    assert ask(store, explaining.standing_of, ended, None) is None


def test_the_last_refusal_of_an_entry_is_told_with_its_number(store: Store) -> None:
    entry = queue_ad_hoc(store)
    for reason in ("no route", "still no route"):
        with store.writing() as tx:
            made = work_queue.dispatch(tx, [entry], {entry: "gpu"})
            outcomes.take_back(tx, made.values(), 5, reason)
    standing = ask(store, explaining.standing_of, entry, None)
    assert standing.refusal == Refusal("gpu", 2, "still no route")
    with store.writing() as tx:
        [execution_id] = work_queue.dispatch(tx, [entry]).values()
        executions.claim_one(tx, ME, execution_id)
        outcomes.hand_back(tx, ME, [execution_id])
    assert ask(store, explaining.standing_of, entry, None).refusal is None


def test_an_entry_that_never_started_says_how_it_ended(store: Store, clock: Clock) -> None:
    ids = declare(store, "extract")
    failed, cancelled = queue_ad_hoc(store, workflow="other"), queue(store)
    clock.now = SOON
    with store.writing() as tx:
        failed_entries.fail(tx, {failed: "nobody knows it"}, FailureCode.UNKNOWN_WORKFLOW)
        work_queue.cancel_queued(tx, [ids["extract"]], "not today")
    told = [ask(store, explaining.ended_entry, key) for key in (failed, cancelled, NOBODY)]
    assert told == [
        Ended(None, "other", EntryStatus.FAILED, SOON, "nobody knows it"),
        Ended("extract", "work", EntryStatus.CANCELLED, SOON, "not today"),
        None,
    ]


def again(store: Store, entry: int) -> Execution:
    with store.writing() as tx:
        one = executions.claim_one(tx, ME, work_queue.dispatch(tx, [entry])[entry])
    assert one is not None
    return one


def test_the_last_run_of_an_entry_is_found_while_it_lives_and_afterwards(store: Store) -> None:
    entry, other = queue_ad_hoc(store, max_attempts=3), queue_ad_hoc(store)
    assert ask(store, explaining.last_execution_of, entry) is None
    first = again(store, entry)
    again(store, other)
    assert ask(store, explaining.last_execution_of, entry).id == first.id
    finish(store, first, FAILED)
    second = again(store, entry)
    assert ask(store, explaining.last_execution_of, entry).id == second.id


def test_the_newest_live_run_of_a_manifest_is_found_whether_it_may_overlap_or_not(
    store: Store,
) -> None:
    ids = declare(store, "alone", a_manifest("beside", allow_overlap=True), "over")
    ran(store, "over")
    alone = dispatched(store, "alone")
    dispatched(store, "beside", source=Source.TRIGGER)
    newest = started(store, "beside", source=Source.TRIGGER)
    found = {name: ask(store, explaining.live_execution_of, key) for name, key in ids.items()}
    assert {name: one and one.id for name, one in found.items()} == {
        "alone": alone,
        "beside": newest.id,
        "over": None,
    }


def test_the_longest_running_of_a_group_are_named(store: Store) -> None:
    names = [f"m{number}" for number in range(NAMED_HOLDERS + 1)]
    declare(store, *names, a_manifest("other", group=Group("x")))
    dispatched(store, "other")
    for name in reversed(names):
        dispatched(store, name, source=Source.TRIGGER)
    [_, *live] = rows_of(store, execution)
    group = live[0]["group_id"]
    assert ask(store, explaining.holders_of, group) == tuple(reversed(names))[:NAMED_HOLDERS]
    with store.writing() as tx:
        this = execution.c.id == live[0]["id"]
        tx.connection.execute(update(execution).where(this).values(external_id=None))
    assert ask(store, explaining.holders_of, group)[0] == "work"


def test_only_what_the_own_workers_run_counts_as_running_here(store: Store) -> None:
    declare(store, "runs", "waits", "elsewhere")
    started(store, "runs")
    dispatched(store, "waits")
    entry = queue(store, "elsewhere")
    with store.writing() as tx:
        [key] = work_queue.dispatch(tx, [entry], {entry: "gpu"}).values()
        executions.claim_one(tx, ME, key)
    assert ask(store, explaining.running_here) == 1


def test_the_dead_letter_that_waits_is_told_with_its_reason(store: Store) -> None:
    ids = declare(store, "dead", "resolved")
    over = {"status": "acknowledged", "resolved_at": NOON, "reason": "old", "failures": 1}
    with store.writing() as tx:
        for key in ids.values():
            row = over | {"manifest_id": key, "dead_lettered_at": NOON}
            tx.connection.execute(insert(dead_letter).values(row))
    dead_letter_for(store, "dead")
    newest = rows_of(store, dead_letter)[-1]["id"]
    found = [ask(store, explaining.dead_letter_of, key) for key in manifest_ids(store).values()]
    assert found == [(newest, "max retries exceeded"), None]
