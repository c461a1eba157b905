"""The deadline monitor on real databases: one pause for each neglected objective, however often."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headway.definition.azolla import Azolla
from headway.domain.azolla.artifacts import PauseReason
from headway.domain.azolla.filters import PauseStateFilter
from headway.domain.azolla.pausing import Pause
from headway.federation import deadlines
from headway.federation.deadlines import DeadlineMonitor
from headway.history import Retention
from headway.store import pause_states, substrate
from headway.store.engine import Store
from tests.builders import Scene
from tests.store.factories import at_once


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url) as scene:
        yield scene


@pytest.fixture
def desk(scene: Scene) -> Azolla:
    return Azolla("tests", scene.store)


def look(scene: Scene) -> int:
    return DeadlineMonitor(scene.store).run_once()


def paused(desk: Azolla) -> list[str]:
    return sorted(one.objective_id for one in desk.pause_states())


def test_what_is_overdue_leaves_one_pause_however_often_one_looks(
    scene: Scene, desk: Azolla
) -> None:
    desk.objective("urgent", objective_id="urgent", urgency=3)
    desk.objective("whenever", objective_id="whenever")
    assert look(scene) == 0
    scene.clock.advance(days=1)
    assert [look(scene) for _ in range(3)] == [1, 1, 1]
    [pause] = desk.pause_states()
    assert (pause.objective_id, pause.azolla_id) == ("urgent", "tests")
    assert (pause.reason, pause.created_at) == (PauseReason.RUN_COMPLETE, scene.clock.now)
    scene.clock.advance(days=29)
    assert look(scene) == 2
    assert paused(desk) == ["urgent", "whenever"]


def test_who_touches_it_begins_anew(scene: Scene, desk: Azolla) -> None:
    desk.objective("urgent", objective_id="urgent", urgency=3)
    scene.clock.advance(days=1)
    look(scene)
    desk.update("urgent", importance=2)
    assert look(scene) == 0
    scene.clock.advance(days=1)
    look(scene)
    assert paused(desk) == ["urgent", "urgent"]


def test_the_page_does_not_hear_of_what_somebody_has_touched_since(
    scene: Scene, desk: Azolla
) -> None:
    for name in ("neglected", "done"):
        desk.objective(name, objective_id=name, urgency=3)
    scene.clock.advance(days=1)
    look(scene)
    with scene.store.writing() as tx:
        pause_states.leave(tx, [Pause("run-1", PauseReason.RUN_COMPLETE, ("publish",))])
    assert unsettled(scene) == ["done", "neglected", "standing"]
    scene.clock.advance(minutes=1)
    desk.update("done", status="DONE")
    desk.update("standing", urgency=1)
    assert unsettled(scene) == ["neglected", "standing"]
    assert paused(desk) == ["done", "neglected", "standing"], "facts stay"


def unsettled(scene: Scene) -> list[str]:
    with scene.store.reading() as tx:
        found = substrate.pause_states(tx, PauseStateFilter(unsettled=True))
    return sorted(one.objective_id for one in found)


def test_nobody_is_reminded_of_what_is_done_or_first_anyway(scene: Scene, desk: Azolla) -> None:
    desk.objective("done", status="DONE", urgency=3)
    desk.objective("now", urgency=4)
    scene.clock.advance(days=400)
    assert look(scene) == 0
    assert paused(desk) == []


def test_more_than_a_page(scene: Scene, desk: Azolla, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "PAGE", 2)
    names = [f"job-{number}" for number in range(5)]
    for name in names:
        desk.objective(name, objective_id=name, urgency=3)
    scene.clock.advance(days=2)
    assert look(scene) == 5
    assert paused(desk) == names


def test_two_processes_that_look_at_once_write_it_once(scene: Scene, desk: Azolla) -> None:
    for number in range(20):
        desk.objective("neglected", objective_id=f"job-{number}", urgency=3)
    scene.clock.advance(days=2)
    other = Store(scene.url, clock=scene.clock, durable=False)
    try:
        at_once(*(DeadlineMonitor(store).run_once for store in (scene.store, other)))
    finally:
        other.close()
    assert len(paused(desk)) == 20


def test_cleaning_up_does_not_let_it_be_written_again(scene: Scene, desk: Azolla) -> None:
    """Kept as long as nobody touches the objective; else there would be a new one each month."""
    desk.objective("urgent", objective_id="urgent", urgency=3)
    scene.clock.advance(days=1)
    look(scene)
    [first] = desk.pause_states()
    for _ in range(3):
        scene.clock.advance(days=40)
        clean_up(scene)
        look(scene)
    assert desk.pause_states() == [first]
    desk.update("urgent", status="DONE")
    clean_up(scene)
    assert desk.pause_states() == []


def clean_up(scene: Scene) -> None:
    retention = Retention(scene.store, scene.app.settings, scene.app.observer)
    while retention.run_once().more:
        pass


def test_a_pause_of_a_touched_objective_goes_in_its_time(scene: Scene, desk: Azolla) -> None:
    desk.objective("urgent", objective_id="urgent", urgency=3)
    scene.clock.advance(days=1)
    look(scene)
    scene.clock.advance(hours=1)
    desk.update("urgent", urgency=4)
    clean_up(scene)
    assert paused(desk) == ["urgent"]
    scene.clock.advance(days=31)
    clean_up(scene)
    assert paused(desk) == []
