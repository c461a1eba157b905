"""Entries that cannot be dispatched, or whose input no workflow takes, end visibly and alone.

The row "input payload" of the bad-input matrix, and of "rows edited by hand" what is about one
queue entry, each as a row that was written past every check, on both databases. Which of
``POISONS`` tries which cell:

| Input payload | Tried here as |
|---|---|
| 10 MB, depth 10,000, NaN, NUL, lone surrogate, int 10^5000 | the poison of that name |
| 10^6 keys, duplicate keys | the poison of that name |
| unserialisable, cycle, set, Decimal, bytes | no JSON text can hold these: "not JSON" and "empty" \
here, the values themselves in tests/definition/test_inputs.py |

| Rows edited by hand | Tried here as |
|---|---|
| unknown state | "unknown state", "unknown source", "priority 99" |
| type name os.system | "type name os.system" |
| input not matching schema | "not matching its schema", "no such field" |
| future created_at | "created in the future", "created in the year 1" |
| group removed | "group removed", "no group" |
| orphan FK | "no such manifest" |
| NULL lease, epoch lowered, parent loop, slot row deleted | tests/dispatcher/test_edited_rows.py |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel
from sqlalchemy import insert, select, text, update
from sqlalchemy.exc import DBAPIError, StatementError

from headway import every
from headway.domain import front as fronts
from headway.domain.execution import ExecutionState, FailureCode
from headway.store import resolution
from headway.store.tables import dead_letter, execution_history, manifest, work_queue
from tests.builders import START, Scene

REFUSED, NEVER_RAN, FAILED, RAN = "refused", "failed in the queue", "failed as a run", "ran"
NOBODY = 10**9

REFUSE_ONE = {
    "postgresql": (
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE EXCEPTION 'not this one'; END $$",
        "CREATE TRIGGER refusing BEFORE INSERT ON headway_execution FOR EACH ROW "
        "WHEN (NEW.workflow = 'refused') EXECUTE FUNCTION refuse()",
    ),
    "sqlite": (
        "CREATE TRIGGER refusing BEFORE INSERT ON headway_execution "
        "WHEN NEW.workflow = 'refused' BEGIN SELECT RAISE(ABORT, 'not this one'); END",
    ),
}


class Table(BaseModel):
    name: str


@dataclass(frozen=True)
class Poison:
    """A row, what becomes of it, and words of the reason."""

    values: Mapping[str, Any]
    fate: str
    reason: str = ""
    on_sqlite: str = ""
    name: str = field(default="")


def given(text: str) -> dict[str, str]:
    return {"workflow": "typed", "input": text}


POISONS = {
    "10 MB": Poison(given('{"name": "' + "x" * 10_000_000 + '"}'), NEVER_RAN, "more than 256000"),
    "nested 10,000 deep": Poison(given("[" * 10_000 + "]" * 10_000), FAILED),
    "not JSON": Poison(given("{name"), FAILED),
    "empty": Poison(given(""), FAILED),
    "raw NUL": Poison(given('{"name": "\x00"}'), REFUSED, on_sqlite=FAILED),
    "escaped NUL": Poison(given('{"name": "\\u0000"}'), RAN),
    "lone surrogate": Poison(given('{"name": "\\ud800"}'), RAN),
    "NaN": Poison(given('{"name": NaN}'), FAILED, "NaN"),
    "infinity": Poison(given('{"name": -Infinity}'), FAILED, "infinity"),
    "10^6 keys": Poison(
        given("{" + ",".join(f'"k{number}":0' for number in range(10**6)) + "}"),
        NEVER_RAN,
        "more than 256000",
    ),
    "20,000 keys": Poison(
        given("{" + ",".join(f'"k{number}":0' for number in range(20_000)) + "}"), FAILED, "name"
    ),
    "duplicate keys": Poison(given('{"name": "x", "name": "y"}'), FAILED, "only one of them"),
    "an integer of 5,000 digits": Poison(given('{"name": 1' + "0" * 5000 + "}"), FAILED),
    "no such field": Poison(given('{"other": "x"}'), FAILED),
    "not matching its schema": Poison(given('{"name": [1]}'), FAILED),
    "type name os.system": Poison(given('{"name": "x"}') | {"input_type": "os.system"}, RAN),
    "unknown state": Poison({"status": "lost"}, REFUSED),
    "unknown source": Poison({"source": "nowhere"}, REFUSED),
    "priority 99": Poison({"priority": 99}, REFUSED),
    "created in the future": Poison({"created_at": datetime(9999, 1, 1, tzinfo=UTC)}, RAN),
    "created in the year 1": Poison({"created_at": datetime(1, 1, 2, tzinfo=UTC)}, RAN),
    "group removed": Poison({"group_id": NOBODY}, NEVER_RAN, f"group {NOBODY}"),
    "no group": Poison({"group_id": None}, NEVER_RAN, "group it belongs to"),
    "no such manifest": Poison({"manifest_id": NOBODY}, NEVER_RAN, f"manifest {NOBODY}"),
    "too many attempts to count": Poison(
        {"attempts": 2**31 - 1}, NEVER_RAN, "out of range", on_sqlite=RAN
    ),
    "refused by the database": Poison({"workflow": "refused"}, NEVER_RAN, "not this one"),
}


@pytest.fixture
def busy(scene: Scene) -> Scene:
    """A scene with a typed workflow, a table that refuses some rows, and neighbours."""

    def typed(table: Table) -> None: ...

    def refused() -> None: ...

    scene.app.workflow("typed")(typed)
    scene.app.workflow("refused")(refused)
    scene.configure(max_active_jobs=None)
    for name in ("poisoned", "before", "behind"):
        scene.app.schedule("work", name, None, every(days=1), group="all")
    scene.apply()
    with scene.store.writing() as tx:
        for statement in REFUSE_ONE["postgresql" if tx.on_postgresql else "sqlite"]:
            tx.connection.execute(text(statement))
    return scene


def write(scene: Scene, values: Mapping[str, Any]) -> int | None:
    """The row as somebody with a database client would write it; None if it is refused."""
    manifest_id, group_id = scene.ids_of("poisoned")
    row = {
        "manifest_id": manifest_id,
        "group_id": group_id,
        "workflow": "work",
        "input": "null",
        "input_type": "",
        "source": "trigger",
        "created_at": START,
        **values,
    }
    try:
        with scene.store.writing() as tx:
            written = insert(work_queue).values(row).returning(work_queue.c.id)
            return int(tx.connection.execute(written).scalar_one())
    except (DBAPIError, StatementError, ValueError):
        return None


def fate_of(scene: Scene, entry_id: int | None) -> tuple[str, str]:
    if entry_id is None:
        return REFUSED, ""
    with scene.store.reading() as tx:
        chosen = select(work_queue.c.status, work_queue.c.ended_reason)
        row = tx.connection.execute(chosen.where(work_queue.c.id == entry_id)).one_or_none()
    if row is not None:
        return (NEVER_RAN if row.status == "failed" else row.status), row.ended_reason or ""
    [one] = [run for run in scene.history.executions.all() if run.entry_id == entry_id]
    told = one.failure.message if one.failure else ""
    return (RAN if one.state is ExecutionState.COMPLETED else FAILED), told


@pytest.mark.parametrize("name", POISONS)
def test_a_poisoned_entry_ends_visibly_and_its_neighbours_run(busy: Scene, name: str) -> None:
    poison = POISONS[name]
    busy.trigger("before")
    entry_id = write(busy, poison.values)
    busy.trigger("behind")

    busy.dispatch()
    busy.run()

    fate, reason = fate_of(busy, entry_id)
    on_sqlite = not busy.store.on_postgresql
    assert fate == (poison.on_sqlite if on_sqlite and poison.on_sqlite else poison.fate)
    assert poison.reason in reason or fate == RAN
    assert reason or fate in (RAN, REFUSED), "it says why"
    done = {one.external_id for one in busy.ended(ExecutionState.COMPLETED)}
    assert {"before", "behind"} <= done
    assert busy.history.queue.all() == [], "nothing is tried again for ever"


@pytest.mark.full
@pytest.mark.parametrize("count", [1, 3])
def test_all_poisons_at_once_cost_nobody_anything(busy: Scene, count: int) -> None:
    ids = []
    for _ in range(count):
        for number, poison in enumerate(POISONS.values()):
            # Each of a manifest of its own, or one would wait for the other.
            if not {"manifest_id", "status", "source"} & set(poison.values):
                values = {"manifest_id": None, "source": "ad_hoc", "group_id": None}
                ids.append(write(busy, values | dict(poison.values) | {"priority": number % 32}))
    good = [busy.trigger(name) for name in ("before", "behind")]

    result = busy.dispatch()
    busy.run()

    assert len(result.failed) >= count
    assert [fate_of(busy, key)[0] for key in good] == [RAN, RAN]
    assert "queued" not in {fate_of(busy, key)[0] for key in ids}


def test_a_failed_entry_counts_once_and_its_manifest_is_dead_lettered(busy: Scene) -> None:
    with busy.store.writing() as tx:
        poisoned = manifest.c.external_id == "poisoned"
        tx.connection.execute(update(manifest).where(poisoned).values(input="x" * 300_000))

    for attempt in range(1, 4):
        busy.manage()
        assert len(busy.dispatch().failed) == 1
        assert busy.dispatch().failed == ()
        busy.run()
        failed = busy.ended(ExecutionState.FAILED)
        assert [one.external_id for one in failed] == ["poisoned"] * attempt
        busy.clock.advance(hours=2)
    busy.manage()

    [letter] = busy.history.dead_letters.awaiting()
    assert (letter.external_id, letter.failures) == ("poisoned", 3)
    last = busy.ended(ExecutionState.FAILED)[-1]
    assert last.failure is not None
    assert (last.failure.type, last.failure.step) == (FailureCode.NOT_DISPATCHABLE, "DispatchJobs")
    assert last.started_at is None
    assert busy.history.queue.all() == []


def test_failures_of_entries_and_of_runs_are_counted_in_one_order(busy: Scene) -> None:
    write(busy, {"group_id": NOBODY})
    busy.dispatch()
    busy.trigger("before")
    busy.dispatch()
    busy.run()
    write(busy, {"group_id": NOBODY})
    busy.dispatch()

    with busy.store.reading() as tx:
        states = select(execution_history.c.state).order_by(execution_history.c.id)
        assert list(tx.connection.execute(states).scalars()) == ["failed", "completed", "failed"]


def test_an_entry_held_behind_a_failed_one_is_released(busy: Scene) -> None:
    manifest_id, group_id = busy.ids_of("poisoned")
    write(busy, {"workflow": "refused"})
    held = write(busy, {"source": "activation", "status": "held"})

    busy.dispatch()
    busy.dispatch()

    assert [one.entry_id for one in busy.history.executions.all() if one.failure is None] == [held]
    assert (manifest_id, group_id) == busy.ids_of("poisoned")


def test_a_dead_letter_names_the_execution_that_retries_it(busy: Scene) -> None:
    busy.failing.add("before")
    for _ in range(3):
        busy.trigger("before")
        busy.dispatch()
        busy.run()
    busy.manage()
    [letter] = busy.history.dead_letters.awaiting()
    with busy.store.writing() as tx:
        resolution.requeue(tx, [letter.id], None)

    busy.dispatch()

    [again] = [one for one in busy.history.executions.all() if one.source == "requeue"]
    with busy.store.reading() as tx:
        chosen = select(dead_letter.c.retry_execution_id)
        assert list(tx.connection.execute(chosen).scalars()) == [again.id]


def test_after_a_refusal_executions_of_the_same_cycle_hold_their_slots(
    busy: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cycle has seen that nothing was live, and must not go by that any more."""
    monkeypatch.setattr(fronts, "DEAR", timedelta())
    busy.configure(max_active_jobs=2)
    refused = {"workflow": "refused", "manifest_id": None, "group_id": None, "source": "ad_hoc"}
    bad = write(busy, refused | {"priority": 9})
    for _ in range(3):
        write(busy, refused | {"workflow": "work"})

    result = busy.dispatch()

    assert result.failed == (bad,)
    assert len(result.dispatched) == 2
    assert len(busy.history.queue.all()) == 1
