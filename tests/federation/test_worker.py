"""The Manifest Scheduler Worker on a bad day: repeated, taken over, poisoned, kept waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from headway.domain.azolla.artifacts import (
    ArtifactType,
    ResponseStatus,
    SubstrateQuery,
)
from headway.domain.azolla.context import parse_prompt
from headway.domain.azolla.ids import workorder_of
from headway.federation import scheduling
from headway.federation.asking import Asked, ask_all
from headway.federation.tick import Tick, WorkerEnv
from headway.federation.worker import (
    MANIFEST_SCHEDULER_WORKER,
    ManifestSchedulerWorker,
    TickResult,
)
from headway.store import events, tables
from headway.store.claims import ClaimLost
from tests.federation.azolla import OWN, RULES, Azolla, answering, refusing

STEPS = [step.name for step in MANIFEST_SCHEDULER_WORKER.steps]
ONCE = (tables.workorder, tables.context_snapshot, tables.work_queue)


@pytest.fixture
def frozen(database_url: str) -> Iterator[Azolla]:
    """One whose clock the test moves; nothing is built in it."""
    with Azolla(database_url, virtual_time=True) as azolla:
        yield azolla


class Killed(BaseException):
    """As abrupt as a kill: nothing is cleaned up behind it."""


def killed_before(azolla: Azolla, step: str, owner: str) -> None:
    def before(name: str) -> None:
        if name == step:
            raise Killed

    with pytest.raises(Killed):
        ManifestSchedulerWorker(azolla.env(owner), before).run_once()


@pytest.mark.parametrize("step", STEPS[2:])
def test_whoever_takes_over_finishes_what_was_begun_and_makes_nothing_twice(
    frozen: Azolla, step: str
) -> None:
    event_id = frozen.request()
    killed_before(frozen, step, "first")
    waits = frozen.worker("second").run_once()
    over = step == "release_claim"
    assert waits.event_id is None, "the lease of the first still runs"
    frozen.clock.advance(seconds=30)
    result = frozen.worker("second").run_once()
    assert (result.event_id, result.waiting) == (None if over else event_id, False)
    for table in ONCE:
        assert len(frozen.rows(table)) == 1, table.name
    event = frozen.only(tables.event)
    assert (event["processed"], event["terminal_reason"]) == (True, "SCHEDULED")


def test_a_snapshot_that_stands_is_not_made_anew(frozen: Azolla) -> None:
    frozen.request()
    killed_before(frozen, "create_workorder", "first")
    before = frozen.only(tables.context_snapshot)
    frozen.clock.advance(minutes=1)
    frozen.pause("p1", "look at load-users", created_at=frozen.clock.now)
    frozen.worker("second").run_once()
    assert frozen.only(tables.context_snapshot) == before
    assert frozen.only(tables.workorder)["context_snapshot_id"] == before["snapshot_id"]


def test_whoever_wakes_up_after_a_takeover_writes_nothing(frozen: Azolla) -> None:
    """Stopped between any two steps, for longer than the lease."""
    event_id = frozen.request()
    env, tick, steps = frozen.env("zombie"), Tick(), list(MANIFEST_SCHEDULER_WORKER.steps)
    for step in steps[:2]:
        tick = step.function(*step.arguments(tick, env))
    frozen.clock.advance(minutes=1)
    frozen.worker("second").run_once()
    before = {table.name: frozen.rows(table) for table in (*ONCE, tables.event)}
    refused = []
    tick = replace(tick, local=None)
    for step in steps[2:]:
        try:
            tick = step.function(*step.arguments(tick, env))
        except Exception as error:
            refused.append((step.name, type(error).__name__))
    assert ("query_azollas", "ClaimLost") in refused and ("release_claim", "ClaimLost") in refused
    assert {table.name: frozen.rows(table) for table in (*ONCE, tables.event)} == before
    assert states(frozen)[event_id]["processed"]


@pytest.mark.parametrize(
    "name", ["query_azollas", "build_context_snapshot", "create_workorder", "mark_processed"]
)
def test_no_step_goes_on_after_a_takeover(frozen: Azolla, name: str) -> None:
    frozen.request()
    env, tick, steps = frozen.env("zombie"), Tick(), list(MANIFEST_SCHEDULER_WORKER.steps)
    while steps[0].name != name:
        step = steps.pop(0)
        tick = step.function(*step.arguments(tick, env))
    frozen.clock.advance(minutes=1)
    assert frozen.worker("second").run_once().processed
    with pytest.raises(ClaimLost):
        steps[0].function(*steps[0].arguments(tick, env))


def test_answers_that_come_before_a_takeover_are_not_kept_after_it(
    frozen: Azolla, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped for longer than the lease between the last answer and the time it is written."""
    event_id = frozen.request()

    def answered_and_stopped(*asked: Any) -> list[Asked]:
        answers = ask_all(*asked)
        monkeypatch.undo()
        frozen.clock.advance(minutes=1)
        assert frozen.worker("second").run_once().event_id == event_id
        kept.extend(answers_of(frozen))
        return answers

    kept: list[dict[str, Any]] = []
    monkeypatch.setattr(scheduling, "ask_all", answered_and_stopped)

    assert not frozen.worker("first").run_once().processed
    assert kept and answers_of(frozen) == kept
    [told] = frozen.events.named("azolla.claim_lost")
    assert told.fields["step"] == "query_azollas"


def answers_of(azolla: Azolla) -> list[dict[str, Any]]:
    asked, answered = tables.substrate_query, tables.substrate_query_response
    return azolla.rows(asked) + azolla.rows(answered)


def test_a_lost_claim_is_told_and_ends_the_tick(frozen: Azolla) -> None:
    frozen.request()

    def sleep_through_the_lease(query: SubstrateQuery) -> Any:
        frozen.clock.advance(minutes=1)
        return frozen.ask(query)

    env = frozen.env(ask=sleep_through_the_lease)
    assert not ManifestSchedulerWorker(env).run_once().processed
    [told] = frozen.events.named("azolla.claim_lost")
    assert told.fields["step"] == "query_azollas" and "LEASE_LOST" in told.fields["error"]
    assert frozen.rows(tables.substrate_query) == []
    assert frozen.only(tables.event)["last_error"] is None, "somebody else's to say"


def test_a_poison_event_is_parked_and_blocks_nobody(frozen: Azolla) -> None:
    poison = frozen.request()
    frozen.clock.advance(seconds=1)
    other = frozen.request()

    def fail(order: Any) -> Any:
        raise ValueError("an order nobody can write\x00")

    def env_of(owner: str) -> WorkerEnv:
        return frozen.env(owner, entry_of=fail)

    failed = ManifestSchedulerWorker(env_of("first")).run_once()
    assert failed.failed and not failed.processed
    assert frozen.worker("second").run_once().event_id == other, "the line goes on at once"
    frozen.end_order(other)
    for number in range(RULES.max_attempts - 1):
        frozen.clock.advance(minutes=1)
        ManifestSchedulerWorker(env_of(f"again-{number}")).run_once()
    frozen.clock.advance(minutes=1)
    result = frozen.worker("last").run_once()
    assert (result.parked, result.event_id, result.worked) == (1, None, True)
    row = states(frozen)[poison]
    assert (row["processed"], row["attempts"]) == (False, RULES.max_attempts)
    assert row["parked_at"] == frozen.clock.now
    assert row["last_error"] == r"create_workorder: ValueError: an order nobody can write\x00"
    [parked] = frozen.events.named("azolla.parked")
    assert parked.fields == {
        "event": poison,
        "attempts": RULES.max_attempts,
        "error": row["last_error"],
    }
    assert not frozen.worker().run_once().worked, "it stays out of the line"


def test_a_parked_event_can_be_put_back(frozen: Azolla) -> None:
    event_id = frozen.request()
    for number in range(RULES.max_attempts):
        killed_before(frozen, "query_azollas", f"victim-{number}")
        frozen.clock.advance(minutes=1)
    assert frozen.worker().run_once().parked == 1, "an event that kills its worker is poison too"
    with frozen.store.writing() as tx:
        assert events.unpark(tx, event_id)
        assert not events.unpark(tx, event_id)
    assert frozen.worker().run_once().processed


def test_one_manifest_is_built_at_a_time_and_the_next_waits_uncharged(azolla: Azolla) -> None:
    first, second = azolla.request(), azolla.request()
    assert azolla.worker().run_once().event_id == first
    for _ in range(RULES.max_attempts + 1):
        assert azolla.worker().run_once().event_id is None
    assert states(azolla)[second]["attempts"] == 0
    azolla.execute()
    assert azolla.worker().run_once().event_id == second
    azolla.execute()
    assert len(azolla.rows(tables.session_manifest)) == 2


def test_two_at_once_order_one_manifest_and_the_other_waits(azolla: Azolla) -> None:
    """Both have picked before either ordered: the database lets one order stand."""
    both = azolla.request(), azolla.request()
    barrier = threading.Barrier(2)

    def meet(name: str) -> None:
        if name == "create_workorder":
            barrier.wait(20)

    def run(owner: str) -> None:
        ManifestSchedulerWorker(azolla.env(owner), meet).run_once()

    threads = [threading.Thread(target=run, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(azolla.rows(tables.workorder)) == 1
    assert sorted(states(azolla)[one]["processed"] for one in both) == [False, True]
    assert sorted(states(azolla)[one]["attempts"] for one in both) == [0, 1]
    azolla.execute()
    assert azolla.worker().run_once().processed, "released, not left to expire"


def test_queries_run_side_by_side_and_the_claim_is_renewed_meanwhile(azolla: Azolla) -> None:
    azolla.peers = {f"peer-{number}": answering() for number in range(4)}
    azolla.request()
    together = threading.Barrier(10)  # five deployments, two questions each

    def ask(query: SubstrateQuery) -> Any:
        together.wait(20)
        return azolla.ask(query)

    env = azolla.env(ask=ask)
    assert ManifestSchedulerWorker(env).run_once().processed
    [claim] = azolla.rows(tables.claim_record)
    assert claim["claim_version"] >= 2, "one renewal at least, and the release"


def test_whoever_never_answers_is_unavailable_and_holds_up_nobody(azolla: Azolla) -> None:
    hanging = threading.Event()

    def hang(query: SubstrateQuery) -> Any:
        hanging.wait(60)
        return refusing(ResponseStatus.DENIED, "too late")(query)

    azolla.peers = {"slow": hang, "quick": answering()}
    azolla.request()
    rules = replace(RULES, query_budget=timedelta(seconds=0.5))
    began = time.monotonic()
    result = ManifestSchedulerWorker(azolla.env(rules=rules)).run_once()
    took = time.monotonic() - began
    hanging.set()
    assert result.processed and took < 30, "far from the minute it hangs"
    assert (result.answered, result.silent) == (("quick", OWN), ("slow",))
    statuses = {
        row["target_azolla_id"]: row["status"]
        for row in azolla.rows(tables.substrate_query_response)
    }
    assert statuses["slow"] == "TARGET_UNAVAILABLE"
    azolla.execute()
    bundle = azolla.only(tables.output_bundle)
    assert "slow did not answer: TARGET_UNAVAILABLE (no answer within 0.5 s)" in bundle["notes"]


def test_a_client_that_breaks_is_one_unavailable_deployment(azolla: Azolla) -> None:
    def break_down(query: SubstrateQuery) -> Any:
        raise RuntimeError("out of sockets")

    azolla.peers = {"broken": break_down}
    azolla.request()
    assert azolla.worker().run_once().silent == ("broken",)
    azolla.execute()
    assert (
        "TARGET_UNAVAILABLE (RuntimeError: out of sockets)"
        in azolla.only(tables.output_bundle)["notes"]
    )


def test_without_a_standing_objective_the_failure_says_what_to_do(azolla: Azolla) -> None:
    azolla.request()
    with azolla.store.writing() as tx:
        tx.connection.execute(tables.objective.delete())
    assert azolla.worker().run_once().failed
    [told] = azolla.events.named("azolla.failed")
    assert told.fields == {
        "step": "read_local_state",
        "error": "HeadwayError: this deployment has no standing objective yet; start its manager "
        "once: headway run",
    }
    noted = azolla.only(tables.event)["last_error"]
    assert noted == f"read_local_state: {told.fields['error']}"


def test_a_tick_tells_what_it_did_and_nothing_if_there_was_nothing(azolla: Azolla) -> None:
    def in_part(query: SubstrateQuery) -> Any:
        if query.artifact_type is ArtifactType.OBJECTIVE:
            return refusing(ResponseStatus.DENIED, "not those")(query)
        return answering()(query)

    azolla.peers = {
        "sales": in_part,
        "shop": refusing(ResponseStatus.DENIED, "not today"),
        "mill": refusing(ResponseStatus.TARGET_UNAVAILABLE, "connection refused"),
    }
    event_id = azolla.request()
    order = workorder_of(event_id)
    result = azolla.worker().run_once()
    assert result == TickResult(
        event_id, order, processed=True, answered=("sales", OWN), silent=("mill", "shop")
    )
    azolla.request()
    assert azolla.worker().run_once() == TickResult(waiting=True)
    azolla.execute()
    assert azolla.worker().run_once().processed
    azolla.execute()
    assert azolla.worker().run_once() == TickResult()
    told, _ = azolla.events.named("azolla.tick")
    assert told.fields == {
        "event": event_id,
        "workorder": order,
        "parked": 0,
        "answered": ["sales", OWN],
        "silent": ["mill", "shop"],
    }


def test_what_is_parked_leaves_the_same_tick_to_the_next_in_line(frozen: Azolla) -> None:
    poison = frozen.request()
    for number in range(RULES.max_attempts):
        killed_before(frozen, "query_azollas", f"victim-{number}")
        frozen.clock.advance(minutes=1)
    other = frozen.request()
    result = frozen.worker().run_once()
    assert (result.parked, result.event_id, result.processed) == (1, other, True)
    assert states(frozen)[poison]["parked_at"] == frozen.clock.now
    [told] = frozen.events.named("azolla.tick")
    assert (told.fields["parked"], told.fields["event"]) == (1, other)


def test_an_event_that_was_parked_meanwhile_is_left_to_a_person(frozen: Azolla) -> None:
    event_id = frozen.request()
    pick, claim, *_ = MANIFEST_SCHEDULER_WORKER.steps
    late = pick.function(*pick.arguments(Tick(), frozen.env("late")))
    with frozen.store.writing() as tx:
        events.park(tx, event_id)
    late = claim.function(*claim.arguments(late, frozen.env("late")))
    assert (late.event, late.claim) == (None, None)
    assert frozen.only(tables.event)["attempts"] == 0
    assert frozen.only(tables.claim_record)["lease_expires_at"] <= frozen.clock.now, "released"


def test_objectives_that_are_done_are_none_of_what_is_urgent_here(azolla: Azolla) -> None:
    azolla.app.azolla.objective("done", status="DONE", urgency=4)
    azolla.app.azolla.objective("waits", status="BLOCKED", urgency=3)
    azolla.request()
    azolla.worker().run_once()
    context = parse_prompt(azolla.only(tables.context_snapshot)["full_prompt_text"])
    assert sorted(one.urgency for one in context.local_urgency) == [1, 3]
    assert context.queried_urgency == (), "it does not ask itself twice"


def states(azolla: Azolla) -> dict[str, dict[str, Any]]:
    return {row["event_id"]: row for row in azolla.rows(tables.event)}
