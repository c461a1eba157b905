"""One row with a value that cannot be read holds up no other row, in whatever table it is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, text

from headway import every
from headway.domain.execution import ExecutionState, Outcome
from headway.store import executions, outcomes, tables
from headway.store.tables import server
from headway.store.tables.base import schema
from headway.store.types import Instant
from tests.builders import OWNER, Scene
from tests.dispatcher.test_edited_rows import ALIVE, LEASE, change

QUEUED, PENDING, RUNNING = "queued", "pending", "in progress"
# Where a row of each table is found by the manifest it is about.
KEYS = {
    tables.work_queue.name: ("manifest_id", [QUEUED]),
    tables.execution.name: ("manifest_id", [PENDING, RUNNING]),
    tables.manifest.name: ("id", [QUEUED, RUNNING]),
    tables.manifest_state.name: ("manifest_id", [QUEUED, RUNNING]),
}
MOMENTS = [
    (table, column.name, stage)
    for table, (_, stages) in KEYS.items()
    for column in schema.tables[table].c
    for stage in stages
    # A manifest with the one is refused by a check, and with the other it is removed.
    if isinstance(column.type, Instant) and column.name not in ("once_at", "removed_at")
]
PLACES = [*MOMENTS, (tables.execution.name, "steps", RUNNING)]


@pytest.fixture
def shop(scene: Scene) -> Scene:
    """Two manifests that are due, one of them called odd."""
    for name in ("odd", "sound"):
        scene.app.schedule("work", name, None, every(hours=1))
    scene.apply()
    change(scene, insert(server).values(ALIVE | LEASE | {"roles": '["worker"]'}))
    scene.manage()
    return scene


def advance(shop: Scene, stage: str) -> None:
    if stage in (PENDING, RUNNING):
        assert len(shop.dispatch().dispatched) == 2
    if stage == RUNNING:
        assert len(shop.claim()) == 2


def edit(shop: Scene, table: str, column: str, value: str) -> None:
    manifest_id, _ = shop.ids_of("odd")
    key, _ = KEYS[table]
    change(shop, text(f"UPDATE {table} SET {column} = {value} WHERE {key} = {manifest_id}"))


def finish(shop: Scene) -> None:
    """End what is in progress, as its worker does."""
    with shop.store.writing() as tx:
        owned = executions.owned_by_any(tx, [OWNER])
        done = dict.fromkeys((one.execution_id for one in owned), COMPLETED)
        outcomes.finish(tx, OWNER, done)


COMPLETED = Outcome(ExecutionState.COMPLETED)


def names_of(shop: Scene, *states: ExecutionState) -> set[str | None]:
    return {one.external_id for one in shop.history.executions.all(states=states)}


@pytest.mark.parametrize("place", PLACES, ids=lambda place: " ".join(place))
@pytest.mark.parametrize("early", [False, True], ids=["far ahead", "long ago"])
def test_a_value_that_cannot_be_read_holds_up_no_other_row(
    shop: Scene, place: tuple[str, str, str], early: bool
) -> None:
    table, column, stage = place
    advance(shop, stage)
    values = odd_moments(shop) if column != "steps" else ["'[{'", "'7'"]
    edit(shop, table, column, values[early])

    for act in (finish, Scene.manage, Scene.dispatch, Scene.run, Scene.manage):
        act(shop)

    assert "sound" in names_of(shop, ExecutionState.COMPLETED)
    assert {one.external_id for one in shop.history.manifests.all()} == {"odd", "sound"}
    assert all(one.external_id for one in shop.history.queue.all())


def odd_moments(shop: Scene) -> list[str]:
    if shop.store.on_postgresql:
        return ["'infinity'", "'0044-03-15 BC'"]
    return ["'soon'", str(-(2**62))]


ENDS: dict[str, Callable[[Any], Any]] = {
    "orphans": lambda tx: outcomes.end_orphans(tx, 3),
    "stale": lambda tx: outcomes.fail_stale_in_progress(tx, [1, 2]),
    "hand back": lambda tx: outcomes.hand_back(tx, OWNER, [1, 2]),
}


@pytest.mark.parametrize("column", ["queued_at", "started_at", "step_started_at", "steps"])
@pytest.mark.parametrize("how", ENDS)
def test_a_run_that_cannot_be_read_ends_beside_the_others(
    shop: Scene, how: str, column: str
) -> None:
    advance(shop, RUNNING)
    value = "'[{'" if column == "steps" else odd_moments(shop)[0]
    edit(shop, tables.execution.name, column, value)
    if how == "orphans":
        change(shop, text("DELETE FROM headway_server"))

    with shop.store.writing() as tx:
        ENDS[how](tx)

    ended = names_of(shop, ExecutionState.FAILED, ExecutionState.HANDED_BACK)
    assert ended == {"odd", "sound"}


@pytest.mark.parametrize("seconds", [2**62, int(timedelta.max.total_seconds()) - 1])
def test_a_timeout_beyond_the_calendar_holds_up_no_other_run(shop: Scene, seconds: int) -> None:
    advance(shop, RUNNING)
    edit(shop, tables.manifest.name, "timeout_seconds", str(seconds))
    shop.clock.advance(days=2)

    shop.manage()

    assert names_of(shop, ExecutionState.FAILED) == {"sound"}
    assert names_of(shop, ExecutionState.IN_PROGRESS) == {"odd"}
