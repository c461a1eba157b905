"""Seed 002, "What Happens When…": the table row by row, through the real manager and runner.

``extract`` is the parent, ``load`` its dependent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select, update

from headway import Run, every
from headway.domain.dead_letter import DeadLetterStatus
from headway.store.tables import dead_letter, dependency, manifest_state, work_queue
from tests.builders import Scene, names, reasons

NEW_SUCCESS = "new success of 'extract'"
CONSUMED = "waits for the next success of 'extract'"


def declare(scene: Scene, *, parent: dict[str, Any] | None = None, **child: Any) -> None:
    chain = scene.app.schedule("work", "extract", None, every(hours=1), **parent or {})
    chain.then_include("work", "load", None, **child)
    scene.apply()


def parent_succeeds(scene: Scene) -> None:
    """An hour passes and ``extract`` runs; ``load`` runs as well if it is due by then."""
    scene.clock.advance(hours=1)
    scene.cycle()


def dependent_never_ran(scene: Scene) -> None:
    declare(scene)
    parent_succeeds(scene)


def dependent_ran_afterwards(scene: Scene) -> None:
    declare(scene)
    parent_succeeds(scene)
    scene.cycle()
    assert scene.manifest("load").last_success_at is not None


def parent_never_succeeded(scene: Scene) -> None:
    scene.failing = {"extract"}
    declare(scene)
    parent_succeeds(scene)


def parent_disabled(scene: Scene) -> None:
    declare(scene)
    parent_succeeds(scene)
    scene.new_app()
    declare(scene, parent={"enabled": False})


def dead_lettered(scene: Scene) -> None:
    scene.failing = {"load"}
    declare(scene, max_retries=1)
    parent_succeeds(scene)
    scene.cycle()
    assert reasons(scene.manage())["load"] == "dead-lettered in this cycle"
    parent_succeeds(scene)


def active_execution(scene: Scene) -> None:
    declare(scene)
    parent_succeeds(scene)
    scene.manage()
    scene.dispatch()
    assert len(scene.claim()) == 1
    scene.trigger("extract")
    scene.dispatch()
    scene.run()


def queued_entry(scene: Scene) -> None:
    declare(scene)
    parent_succeeds(scene)
    scene.manage()


def parent_deleted(scene: Scene) -> None:
    declare(scene)
    parent_succeeds(scene)
    scene.remove("extract")
    with scene.store.reading() as tx:
        assert tx.connection.execute(select(dependency.c.parent_id)).scalars().all() == [None]


def dormant_dependent(scene: Scene) -> None:
    declare(scene, dormant=True)
    parent_succeeds(scene)


ROWS: dict[str, tuple[Callable[[Scene], None], bool, str]] = {
    "parent succeeds, dependent never ran": (dependent_never_ran, True, NEW_SUCCESS),
    "dependent already ran after parent's last success": (
        dependent_ran_afterwards,
        False,
        CONSUMED,
    ),
    "parent never succeeded": (
        parent_never_succeeded,
        False,
        "waits for the first success of 'extract'",
    ),
    "parent disabled": (parent_disabled, False, "parent disabled: 'extract'"),
    "dependent has a dead letter": (dead_lettered, False, "a dead letter awaits intervention"),
    "dependent has an active execution": (active_execution, False, "already running"),
    "dependent has a queued entry": (queued_entry, False, "already queued"),
    "parent deleted": (parent_deleted, False, "a parent was removed"),
    "parent succeeds, dormant dependent exists": (
        dormant_dependent,
        False,
        "dormant: runs only when its parent activates it",
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_what_happens_when(scene: Scene, row: str) -> None:
    arrange, queued, reason = ROWS[row]
    arrange(scene)
    before = names(scene.history.queue.all()).count("load")
    scene.wake("load")
    result = scene.manage()
    assert reasons(result)["load"] == reason
    assert names(scene.history.queue.all()).count("load") == before + queued


class Activating:
    """``extract`` activates ``load`` with each of *inputs* while it runs."""

    def __init__(self, scene: Scene, *inputs: int) -> None:
        self.scene, self.inputs, self.given = scene, inputs, list[int]()
        scene.app.workflow("activate")(self.activate)
        scene.app.workflow("take")(self.take)
        chain = scene.app.schedule("activate", "extract", None, every(hours=1))
        chain.then_include("take", "load", 0, dormant=True)
        scene.apply()

    def activate(self, run: Run) -> None:
        for number in self.inputs:
            run.activate("load", number)

    def take(self, number: int) -> None:
        self.given.append(number)

    def entries(self) -> list[tuple[str, str]]:
        with self.scene.store.reading() as tx:
            columns = (work_queue.c.source, work_queue.c.input)
            return [(row.source, row.input) for row in tx.connection.execute(select(*columns))]


def test_an_activated_dormant_dependent_gets_an_entry_with_the_runtime_input(scene: Scene) -> None:
    activating = Activating(scene, 7)
    scene.cycle()
    assert activating.entries() == [("activation", "7")]
    scene.dispatch()
    scene.run()
    assert activating.given == [7]


def test_an_activation_is_skipped_while_the_dependent_is_queued(scene: Scene) -> None:
    activating = Activating(scene, 7, 8)
    scene.cycle()
    assert activating.entries() == [("activation", "7")]


def test_an_activation_is_skipped_while_the_dependent_is_active(scene: Scene) -> None:
    activating = Activating(scene, 7)
    scene.cycle()
    scene.dispatch()
    assert [one.external_id for one in scene.claim()] == ["load"]
    parent_succeeds(scene)
    assert activating.entries() == []


def test_a_resolved_dead_letter_lets_the_dependent_run_again(scene: Scene) -> None:
    dead_lettered(scene)
    scene.failing = set()
    with scene.store.writing() as tx:
        resolved = {"status": DeadLetterStatus.ACKNOWLEDGED.value, "resolved_at": tx.now}
        tx.connection.execute(update(dead_letter).values(**resolved))
        newest = max(one.id for one in scene.history.executions.all())
        tx.connection.execute(update(manifest_state).values(failures_after=newest))
    scene.wake("load")
    assert reasons(scene.manage())["load"] == NEW_SUCCESS


def test_every_row_is_decided_without_being_asked(scene: Scene) -> None:
    """Nothing but what happened wakes the dependent: no wake-up is needed for these rows."""
    declare(scene)
    assert reasons(scene.manage())["load"] == "waits for the first success of 'extract'"
    scene.dispatch()
    scene.run()
    assert reasons(scene.manage())["load"] == NEW_SUCCESS
    scene.dispatch()
    scene.run()
    assert reasons(scene.manage())["load"] == CONSUMED
    scene.remove("extract")
    assert reasons(scene.manage())["load"] == "a parent was removed"
