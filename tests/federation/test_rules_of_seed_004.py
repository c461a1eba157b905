"""Rules of seed 004 and of its protocol that no other test is about."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from sqlalchemy import update

from headway import Run, cron
from headway.domain.azolla.artifacts import (
    Artifact,
    Event,
    EventType,
    ResourceType,
    ResponseStatus,
)
from headway.domain.azolla.context import parse_prompt
from headway.domain.work_queue import NewEntry, Source
from headway.federation.membrane import Membrane
from headway.federation.participation import Participation
from headway.federation.registry import Registry
from headway.federation.tick import Tick
from headway.federation.worker import MANIFEST_SCHEDULER_WORKER, ManifestSchedulerWorker
from headway.observe import Observer
from headway.store import claims, events, tables
from headway.store.engine import Store
from tests.builders import START
from tests.federation.azolla import OWN, RULES, Azolla, answering, pause, refusing
from tests.federation.sites import (
    a_query,
    add_objective,
    add_pause_state,
    asking,
    migrated,
    write_registry,
)

PICK, CLAIM, *_ = MANIFEST_SCHEDULER_WORKER.steps
REGISTRY = """
version = 1
[azolla]
id = "warehouse"
blueprint = "{blueprint}"
[blueprints.task-management]
cross_azolla_reads = ["pause_state", "objective"]
stores = ["pause_state", "objective", "blocker_ref"]
[blueprints.code-patch]
cross_azolla_reads = []
stores = ["pause_state", "objective", "blocker_ref"]
"""


@pytest.fixture
def frozen(database_url: str) -> Iterator[Azolla]:
    """One whose clock the test moves."""
    with Azolla(database_url, virtual_time=True) as azolla:
        yield azolla


def announce(azolla: Azolla, event_id: str, **changes: Any) -> None:
    fields: dict[str, Any] = {"type": EventType.MANIFEST_REQUESTED, "created_at": START}
    new = Event(event_id=event_id, resource_id=OWN, azolla_id=OWN, **fields | changes)
    with azolla.store.writing() as tx:
        assert events.announce(tx, new)


def page_of(azolla: Azolla) -> str:
    """Have the request that waits dealt with, and read the newest page."""
    assert azolla.worker().run_once().processed
    azolla.execute()
    newest = max(azolla.rows(tables.output_bundle), key=lambda row: row["created_at"])
    return str(newest["content"])


@pytest.mark.parametrize("kind", [EventType.TICKET_READY, EventType.CAPTURE_READY])
def test_other_events_are_none_of_its_business(frozen: Azolla, kind: EventType) -> None:
    announce(frozen, "other", type=kind)
    assert not frozen.worker().run_once().worked
    assert frozen.asked == [] and frozen.rows(tables.claim_record) == []
    row = frozen.only(tables.event)
    assert (row["processed"], row["attempts"]) == (False, 0)


def test_the_oldest_request_comes_first_and_one_in_each_tick(frozen: Azolla) -> None:
    for age in (1, 4, 2, 5, 3):
        announce(frozen, f"{age} h", created_at=START - timedelta(hours=age))
    done = []
    for _ in range(5):
        result = frozen.worker().run_once()
        assert result.event_id is not None
        done.append(result.event_id)
        frozen.end_order(result.event_id)
    assert done == ["5 h", "4 h", "3 h", "2 h", "1 h"]


def test_three_requests_at_most_are_worked_on_side_by_side(frozen: Azolla) -> None:
    for number in range(4):
        announce(frozen, f"e{number}", created_at=START + timedelta(seconds=number))
    taken = []
    for owner in ("a", "b", "c", "d"):
        tick = PICK.function(*PICK.arguments(Tick(), frozen.env(owner)))
        tick = CLAIM.function(*CLAIM.arguments(tick, frozen.env(owner)))
        taken.append(tick.event and tick.event.event_id)
    assert taken == ["e0", "e1", "e2", None]


def test_poison_at_the_front_holds_the_line_up_until_it_is_parked_and_no_longer(
    frozen: Azolla,
) -> None:
    for number in range(4):
        announce(frozen, f"e{number}", created_at=START + timedelta(seconds=number))

    def fail(order: Any) -> Any:
        raise ValueError(f"poison: {order.work_order_id}")

    for _ in range(RULES.max_attempts):
        for owner in ("a", "b", "c", "d"):
            ManifestSchedulerWorker(frozen.env(owner, entry_of=fail)).run_once()
        frozen.clock.now += RULES.lease
    attempts = {row["event_id"]: row["attempts"] for row in frozen.rows(tables.event)}
    assert attempts == dict.fromkeys(("e0", "e1", "e2"), RULES.max_attempts) | {"e3": 0}
    assert frozen.worker().run_once().parked == 3
    assert frozen.worker().run_once().event_id == "e3"


def test_a_processed_event_is_not_worked_on_again_by_one_who_picked_it_before(
    frozen: Azolla,
) -> None:
    frozen.request()
    late = PICK.function(*PICK.arguments(Tick(), frozen.env("late")))
    assert len(late.candidates) == 1
    assert frozen.worker("early").run_once().processed
    asked = len(frozen.asked)
    late = CLAIM.function(*CLAIM.arguments(late, frozen.env("late")))
    assert (late.event, late.claim) == (None, None)
    assert frozen.only(tables.claim_record)["lease_expires_at"] <= frozen.clock.now, "released"
    assert frozen.only(tables.event)["attempts"] == 1
    assert not frozen.worker("third").run_once().worked
    assert len(frozen.asked) == asked


@pytest.mark.parametrize("blueprint", ["task-management", "code-patch", None])
def test_a_deployment_of_any_blueprint_may_run_it(
    azolla: Azolla, tmp_path: Path, blueprint: str | None
) -> None:
    file = tmp_path / "azolla.toml"
    file.write_text(REGISTRY.format(blueprint=blueprint))
    azolla.configure(**({"azolla_registry": str(file)} if blueprint else {}))
    azolla.request()
    result = Participation(azolla.app, azolla.store).tick("me")
    assert (result.processed, result.answered, result.silent) == (True, (OWN,), ())


def test_the_budget_of_a_workorder_is_the_configured_one(azolla: Azolla) -> None:
    azolla.configure(azolla_manifest_budget="90s")
    azolla.request()
    assert Participation(azolla.app, azolla.store).tick("me").processed
    assert azolla.only(tables.workorder)["budget_ms"] == 90_000


def test_a_process_goes_by_the_settings_and_in_its_own_name(azolla: Azolla) -> None:
    azolla.configure(azolla_claim_lease="45s", azolla_max_attempts=1)
    azolla.request()
    with azolla.store.writing() as tx:
        tx.connection.execute(tables.objective.delete())
    participation = Participation(azolla.app, azolla.store)
    assert participation.tick("process-7").failed
    claim = azolla.only(tables.claim_record)
    assert claim["owner_id"] == "process-7"
    lasts = claim["lease_expires_at"] - claim["heartbeat_at"]
    assert abs(lasts - timedelta(seconds=45)) < timedelta(seconds=1)
    with azolla.store.writing() as tx:
        tx.connection.execute(update(tables.claim_record).values(lease_expires_at=tx.now))
    assert participation.tick("process-8").parked == 1, "one attempt is all"


def test_this_deployment_and_every_peer_of_the_registry_is_asked(
    azolla: Azolla, tmp_path: Path
) -> None:
    urls = {"sales": "http://127.0.0.1:9", "patches": "http://127.0.0.1:9"}
    azolla.configure(azolla_registry=str(write_registry(tmp_path, urls=urls)))
    azolla.request()
    result = Participation(azolla.app, azolla.store).tick("me")
    assert (result.answered, result.silent) == ((OWN,), ("patches", "sales"))
    asked = azolla.rows(tables.substrate_query)
    assert sorted({row["target_azolla_id"] for row in asked}) == ["patches", "sales", OWN]
    metadata = json.loads(azolla.only(tables.context_snapshot)["metadata"])
    assert metadata["asked"] == [OWN, "patches", "sales"]


def test_workorder_and_queue_entry_are_written_both_or_neither(azolla: Azolla) -> None:
    event_id = azolla.request()

    def refused_by_the_database(order: Any) -> NewEntry:
        return NewEntry("headway.manifest-builder", Source.AD_HOC, "null", priority=-1)

    env = azolla.env(entry_of=refused_by_the_database)
    assert ManifestSchedulerWorker(env).run_once().failed
    assert azolla.rows(tables.workorder) == [] and azolla.rows(tables.work_queue) == []
    assert not azolla.only(tables.event)["processed"]
    assert "create_workorder" in azolla.only(tables.event)["last_error"]
    with azolla.store.writing() as tx:
        tx.connection.execute(update(tables.claim_record).values(lease_expires_at=tx.now))
    assert azolla.worker("next").run_once().event_id == event_id
    assert azolla.only(tables.workorder)["entry_id"] == azolla.only(tables.work_queue)["id"]


def test_it_asks_everybody_for_what_still_waits(frozen: Azolla) -> None:
    frozen.peers = {"sales": answering()}
    frozen.request()
    frozen.worker().run_once()
    asked = {(one.target_azolla_id, str(one.artifact_type)): one.filter for one in frozen.asked}
    week_ago = (frozen.clock.now - timedelta(days=7)).isoformat()
    for name in (OWN, "sales"):
        assert asked[name, "pause_state"] == {"created_after": week_ago, "unsettled": True}
        assert asked[name, "objective"] == {"status": ["NEW", "TODO", "IN_PROGRESS", "BLOCKED"]}
    assert len(asked) == 4


def test_what_was_settled_and_earlier_pages_are_not_on_the_next_page(azolla: Azolla) -> None:
    azolla.configure(default_max_retries=1)
    azolla.failing.add("load-users")
    azolla.app.schedule("work", "load-users", None)
    azolla.apply()
    azolla.app.trigger("load-users")
    azolla.cycle()
    azolla.manage()
    azolla.request()
    first = page_of(azolla)
    [letter] = azolla.history.dead_letters.awaiting()
    assert f"1. {OWN}: look at dead letter {letter.id} of load-users" in first
    azolla.app.dead_letters.acknowledge(letter.id, "known")
    azolla.request()
    second = page_of(azolla)
    assert f"1. {OWN}: carry on; nothing waits anywhere" in second
    reasons = sorted(row["reason"] for row in azolla.rows(tables.pause_state))
    assert reasons == ["GATE_FAILED", "RUN_COMPLETE", "RUN_COMPLETE"], "they are left out, not gone"


def test_only_captures_that_wait_are_counted(azolla: Azolla) -> None:
    for name in ("c1", "c2", "c3"):
        azolla.capture(name)
    assert azolla.app.azolla.mark_processed("c2") == 1
    azolla.request()
    azolla.worker().run_once()
    prompt = azolla.only(tables.context_snapshot)["full_prompt_text"]
    assert parse_prompt(prompt).pending_captures == 2


def test_everybody_is_asked_before_the_workorder_and_nobody_while_it_is_built(
    azolla: Azolla,
) -> None:
    azolla.peers = {"sales": answering(pause("sales", "requeue load-orders"))}
    azolla.request()
    azolla.worker().run_once()
    asked = len(azolla.asked)
    assert asked == 4
    azolla.peers = {"sales": refusing(ResponseStatus.TARGET_UNAVAILABLE, "gone since")}
    azolla.execute()
    assert "1. sales: requeue load-orders" in azolla.only(tables.output_bundle)["content"]
    assert len(azolla.asked) == asked


def test_when_nobody_answers_there_is_no_page(azolla: Azolla) -> None:
    azolla.request()
    deny = refusing(ResponseStatus.DENIED, "not today")
    assert ManifestSchedulerWorker(azolla.env(ask=deny)).run_once().silent == (OWN,)
    azolla.execute()
    record = azolla.only(tables.run_record)
    assert record["gate_result"] == "FAIL"
    assert "no deployment answered" in record["gate_reason"]
    assert azolla.only(tables.pause_state)["reason"] == "GATE_FAILED"
    assert azolla.rows(tables.session_manifest) == []


def test_a_run_that_is_repeated_asks_for_one_page(azolla: Azolla) -> None:
    run = Run(execution_id=7, workflow="headway.request-manifest", idempotency_key="entry-7")
    assert azolla.app.request_manifest(run) == azolla.app.request_manifest(run)
    assert len(azolla.rows(tables.event)) == 1
    azolla.request()
    assert len(azolla.rows(tables.event)) == 2, "who asks by hand means it"


def test_every_morning_at_eight_is_one_line(frozen: Azolla) -> None:
    frozen.app.schedule(frozen.app.request_manifest, "morning-page", None, cron("0 8 * * *"))
    frozen.apply()
    frozen.cycle()
    assert len(frozen.rows(tables.event)) == 1, "a new manifest runs at once"
    for days in (1, 2):
        frozen.clock.now = START.replace(hour=7, minute=59) + timedelta(days=days)
        frozen.cycle()
        assert len(frozen.rows(tables.event)) == days
        frozen.clock.advance(minutes=1)
        frozen.cycle()
        assert len(frozen.rows(tables.event)) == 1 + days
    assert {row["type"] for row in frozen.rows(tables.event)} == {"MANIFEST_REQUESTED"}
    assert frozen.worker().run_once().processed


def test_a_type_the_target_does_not_store_is_denied(database_url: str, tmp_path: Path) -> None:
    file = write_registry(tmp_path)
    declared = 'stores = ["pause_state", "objective"]'
    assert declared in file.read_text()
    file.write_text(file.read_text().replace(declared, 'stores = ["objective"]'))
    store: Store = migrated(database_url)
    try:
        add_pause_state(store)
        add_objective(store)
        membrane = Membrane(store, Registry.load(file), Observer())
        found = {
            kind: json.loads(
                membrane.answer(*asking(a_query(artifact_type=kind, filter={})).parts).body
            )
            for kind in ("pause_state", "objective")
        }
    finally:
        store.close()
    assert (found["pause_state"]["status"], found["pause_state"]["results"]) == ("DENIED", [])
    assert found["objective"]["status"] == "OK" and len(found["objective"]["results"]) == 1


@pytest.mark.parametrize("kind", Artifact.__subclasses__(), ids=lambda kind: kind.__name__)
def test_no_artifact_takes_a_field_the_protocol_does_not_name(kind: type[Artifact]) -> None:
    with pytest.raises(ValidationError) as refused:
        kind.model_validate({"surprise": 1})
    kinds = {one["type"] for one in refused.value.errors() if one["loc"] == ("surprise",)}
    assert kinds == {"extra_forbidden"}


def test_a_claim_is_released_with_the_work_durable(azolla: Azolla) -> None:
    """Killed before the last step: everything stands, only the claim has to expire."""
    azolla.request()

    class Killed(BaseException):
        pass

    def before(step: str) -> None:
        if step == "release_claim":
            raise Killed

    with pytest.raises(Killed):
        ManifestSchedulerWorker(azolla.env(), before).run_once()
    assert azolla.only(tables.event)["processed"]
    assert len(azolla.rows(tables.workorder)) == 1
    with azolla.store.reading() as tx:
        held = claims.held(tx, ResourceType.EVENT, tables.event.c.event_id)
        assert tx.connection.execute(tables.event.select().where(held)).first() is not None
