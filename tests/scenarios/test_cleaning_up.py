"""Retention at work while jobs are: history is a record, never a state anything depends on."""

from __future__ import annotations

from collections import Counter

import pytest
from sqlalchemy import delete

from headway import every
from headway.domain.execution import ExecutionState
from headway.history import Retention
from headway.store.tables import execution_history
from tests.builders import START, Scene, names

CHAIN = ["extract", "clean", "load", "publish"]


def clean_up(scene: Scene) -> None:
    """Let everything that has ended be a day old, and delete what may be deleted."""
    scene.clock.advance(days=1)
    retention = Retention(scene.store, scene.app.settings, scene.app.observer)
    while retention.run_once().more:
        pass


def declare_chain(scene: Scene) -> None:
    first, *others = CHAIN
    chain = scene.app.schedule("work", first, None, every(days=1000))
    for name in others:
        chain = chain.then_include("work", name, None)
    scene.apply()


@pytest.mark.story(22)
def test_story_22_cleaning_up_during_a_chain_lets_it_complete(scene: Scene) -> None:
    scene.configure(retention_period="1s", delete_batch_size=1, default_retry_delay="0s")
    declare_chain(scene)
    scene.failing = {"clean"}
    finished: Counter[str | None] = Counter()
    for _ in range(8):
        for act in (scene.manage, scene.dispatch, scene.run):
            act()
            finished.update(names(scene.ended(ExecutionState.COMPLETED)))
            clean_up(scene)
        scene.failing = set()

    assert set(finished) == set(CHAIN), "each has completed, whatever was deleted in between"
    assert scene.history.dead_letters.awaiting() == []
    assert scene.history.queue.all() == []
    kept = scene.ended(ExecutionState.COMPLETED)
    assert sorted(filter(None, names(kept))) == sorted(CHAIN), "the newest success of each"
    assert scene.clock.now > START


@pytest.mark.story(22)
def test_story_22_a_chain_completes_even_if_all_of_history_is_gone(scene: Scene) -> None:
    declare_chain(scene)
    done: list[str | None] = []
    for _ in CHAIN:
        scene.cycle()
        done += names(scene.ended(ExecutionState.COMPLETED))
        with scene.store.writing() as tx:
            tx.connection.execute(delete(execution_history))
    assert done == CHAIN


def test_cleaning_up_never_touches_what_is_queued_pending_or_running(scene: Scene) -> None:
    scene.configure(retention_period="1s")
    for name in ("running", "pending", "queued"):
        scene.app.schedule("work", name, None)
    scene.apply()
    scene.trigger("running")
    scene.dispatch()
    scene.claim()
    scene.trigger("pending")
    scene.dispatch()
    scene.trigger("queued")
    clean_up(scene)
    states = {one.external_id: one.state for one in scene.history.executions.all()}
    assert states == {
        "running": ExecutionState.IN_PROGRESS,
        "pending": ExecutionState.PENDING,
    }
    assert names(scene.history.queue.all()) == ["queued"]
