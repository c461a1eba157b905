"""The dead letter of a manifest that is no longer declared waits for nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import select, update

from headway import every
from headway.definition.interventions import DeadLetters, Resolution
from headway.history.retention import Retention
from headway.store import dead_letters, outcomes
from headway.store.dead_letters import NewDeadLetter
from headway.store.gauges import read_gauges
from headway.store.tables import dead_letter, manifest
from tests.builders import Scene
from tests.runtime_verbs import runtime_of

WORDS = "dead letter 1 cannot be requeued: its manifest 'load' was removed; "


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url) as scene:
        yield scene


@pytest.fixture
def dead(scene: Scene) -> Scene:
    """A manifest ``load`` with a dead letter, beside one that is well."""
    scene.app.schedule("work", "load", None, every(hours=1), max_retries=1, group="etl")
    scene.app.schedule("work", "other", None, every(hours=1), group="etl")
    scene.failing.add("load")
    scene.apply()
    scene.cycle()
    scene.manage()
    assert len(scene.history.dead_letters.awaiting()) == 1
    return scene


def no_longer_declared(scene: Scene) -> None:
    scene.new_app()
    scene.app.schedule("work", "other", None, every(hours=1), group="etl")
    scene.apply()


def unscheduled(scene: Scene) -> None:
    runtime_of(scene).unschedule("load")


def left_by_an_earlier_version(scene: Scene) -> None:
    with scene.store.writing() as tx:
        gone = update(manifest).where(manifest.c.external_id == "load")
        tx.connection.execute(gone.values(removed_at=tx.now))


def letters(scene: Scene) -> DeadLetters:
    return DeadLetters(scene.store, scene.app.registry)


def counted(scene: Scene) -> dict[str, int]:
    """Every number of dead letters that headway shows."""
    history = scene.history
    with scene.store.reading() as tx:
        gauge = read_gauges(tx, 10).dead_letters
    return {
        "summary": history.overview.summary().dead_letters,
        "navigation": history.overview.waiting().dead_letters,
        "group": history.groups.detail("etl").overview.dead_letters,
        "attention": sum(one.kind == "dead_letter" for one in history.overview.attention()),
        "metrics": gauge,
        "awaiting": len(history.dead_letters.awaiting()),
    }


WAYS = {
    "declaration": (no_longer_declared, "the manifest is no longer declared"),
    "unschedule": (unscheduled, "the manifest was unscheduled"),
}
ALL_WAYS = [*(way for way, _ in WAYS.values()), left_by_an_earlier_version]


def test_a_dead_letter_that_waits_is_counted(dead: Scene) -> None:
    assert set(counted(dead).values()) == {1}


@pytest.mark.parametrize(("remove", "reason"), WAYS.values(), ids=WAYS)
def test_removal_resolves_the_dead_letter_with_a_reason(
    dead: Scene, remove: Callable[[Scene], None], reason: str
) -> None:
    dead.clock.advance(minutes=5)
    remove(dead)
    [letter] = dead.history.dead_letters.page().items
    assert (letter.status, letter.resolved_at) == ("acknowledged", dead.clock())
    assert letter.resolution_note == reason


@pytest.mark.parametrize("remove", ALL_WAYS)
def test_the_letter_of_a_removed_manifest_is_not_counted(
    dead: Scene, remove: Callable[[Scene], None]
) -> None:
    remove(dead)
    assert set(counted(dead).values()) == {0}


@pytest.mark.parametrize("remove", ALL_WAYS)
def test_requeueing_it_is_refused_with_a_sentence(
    dead: Scene, remove: Callable[[Scene], None]
) -> None:
    remove(dead)
    told = WORDS + "if it is declared again, trigger it: headway trigger load"
    assert letters(dead).requeue(1) == Resolution(False, told, removed=True)
    assert letters(dead).requeue(1, input=None) == Resolution(False, told, removed=True)
    assert letters(dead).requeue_all().count == 0
    assert dead.history.queue.all() == []


def test_a_letter_left_by_an_earlier_version_is_resolved_by_the_clean_up(dead: Scene) -> None:
    left_by_an_earlier_version(dead)
    retention = Retention(dead.store, dead.app.settings, dead.app.observer)
    while retention.run_once().more:
        pass
    [letter] = dead.history.dead_letters.page().items
    assert (letter.status, letter.resolution_note) == ("acknowledged", "the manifest was removed")


def test_a_manifest_declared_again_starts_without_the_letter_of_the_old_one(dead: Scene) -> None:
    no_longer_declared(dead)
    dead.failing.clear()
    dead.new_app()
    for name in ("load", "other"):
        dead.app.schedule("work", name, None, every(hours=1), max_retries=1, group="etl")
    dead.apply()
    dead.cycle()
    assert dead.history.executions.page().items[0].external_id == "load"
    assert dead.history.executions.page().items[0].state == "completed"


def test_a_removed_manifest_gets_no_dead_letter(scene: Scene) -> None:
    """A run that was going on at the removal may still take its last worker along."""
    scene.app.schedule("work", "load", None, every(hours=1))
    scene.apply()
    scene.manage()
    scene.dispatch()
    scene.claim()
    key, _ = scene.ids_of("load")
    runtime_of(scene).unschedule("load")
    with scene.store.writing() as tx:
        ended, lettered = outcomes.end_orphans(tx, max_crashes=1)
        assert (len(ended), lettered) == (1, [])
        assert dead_letters.create(tx, [NewDeadLetter(key, "max retries exceeded", 3)]) == []
        assert tx.connection.execute(select(dead_letter)).all() == []
