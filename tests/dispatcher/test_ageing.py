"""Nobody starves, on a real store; test_ageing_model.py plays a thousand cycles on paper."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select, text

from headway import Group, every
from headway.domain.execution import Execution, ExecutionState, Outcome
from headway.domain.work_queue import NewEntry, Source
from headway.store import executions, outcomes
from headway.store.tables import manifest_group
from tests.builders import OWNER, START, Scene
from tests.dispatcher.test_poison import REFUSE_ONE

BOUND = timedelta(minutes=10)


class Crowd:
    """A hot group that always has more to do than there are slots, on a real store."""

    def __init__(self, scene: Scene, **options: object) -> None:
        self.scene = scene
        scene.configure(max_active_jobs=2, **options)
        hot, low = Group("hot", priority=31), Group("low", max_active_jobs=1)
        for number in range(4):
            scene.app.schedule("work", f"hot-{number}", None, every(days=9), group=hot)
        for name in ("low", "blocker"):
            scene.app.schedule("work", name, None, every(days=9), group=low)
        scene.apply()

    def minutes_until(self, external_id: str, most: int = 40) -> int | None:
        """How many cycles of a minute it takes until this manifest has run."""
        for minute in range(most):
            waiting = {one.external_id for one in self.scene.history.queue.all()}
            for number in range(4):
                if f"hot-{number}" not in waiting:
                    self.scene.trigger(f"hot-{number}", priority=31)
            self.scene.dispatch()
            self.finish({"blocker"})
            if external_id in {one.external_id for one in self.completed()}:
                return minute
            self.scene.clock.advance(minutes=1)
        return None

    def completed(self) -> list[Execution]:
        return list(self.scene.ended(ExecutionState.COMPLETED))

    def finish(self, but: set[str]) -> None:
        """Let all that runs end well, except these."""
        self.scene.claim()
        live = self.scene.history.executions.all(states=[ExecutionState.IN_PROGRESS])
        done = [one.id for one in live if one.external_id not in but]
        with self.scene.store.writing() as tx:
            outcomes.finish(tx, OWNER, dict.fromkeys(done, Outcome(ExecutionState.COMPLETED)))


def test_on_a_real_store_a_low_entry_goes_after_the_bound(scene: Scene) -> None:
    crowd = Crowd(scene)
    scene.trigger("low")

    assert crowd.minutes_until("low") == 10


def test_on_a_real_store_nothing_goes_ahead_before_the_bound(scene: Scene) -> None:
    crowd = Crowd(scene, starvation_after=timedelta(days=1))
    scene.trigger("low")

    assert crowd.minutes_until("low") is None


def test_an_entry_queued_for_later_ages_from_that_time(scene: Scene) -> None:
    crowd = Crowd(scene)
    scene.trigger("low", scheduled_at=START + timedelta(minutes=15))

    assert crowd.minutes_until("low") == 25


def test_waiting_for_room_in_the_own_group_is_not_starving(scene: Scene) -> None:
    crowd = Crowd(scene)
    blocker = scene.trigger("blocker")
    scene.dispatch()
    scene.trigger("low")

    assert crowd.minutes_until("low", most=20) is None, "its group is full"
    with scene.store.reading() as tx:
        chosen = select(manifest_group.c.last_shut_at).where(manifest_group.c.name == "low")
        noted = tx.connection.execute(chosen).scalar_one()
        assert noted is not None and scene.clock.now - noted <= BOUND / 10 + timedelta(minutes=1)
        assert executions.count_active(tx, ()).total >= 1
    crowd.finish(set())

    assert [
        one.entry_id for one in scene.history.executions.all() if one.external_id == "blocker"
    ] == [blocker]
    minutes = crowd.minutes_until("low")
    assert minutes is not None and 8 <= minutes <= 10


@pytest.mark.parametrize("enabled", [True, False])
def test_a_disabled_group_does_not_age_either(scene: Scene, enabled: bool) -> None:
    crowd = Crowd(scene)
    scene.trigger("low")
    with scene.store.writing() as tx:
        tx.connection.execute(
            manifest_group.update().where(manifest_group.c.name == "low").values(enabled=enabled)
        )
    waited = crowd.minutes_until("low", most=15)
    assert waited == (10 if enabled else None)


def test_on_a_real_store_a_group_that_is_refused_every_time_delays_nobody(scene: Scene) -> None:
    scene.app.workflow("refused")(lambda: None)
    crowd = Crowd(scene)
    top = Group("top", priority=31)
    scene.app.schedule("refused", "top", None, every(days=9), group=top)
    scene.apply()
    with scene.store.writing() as tx:
        for statement in REFUSE_ONE["postgresql" if tx.on_postgresql else "sqlite"]:
            tx.connection.execute(text(statement))
    _, group_id = scene.ids_of("top")
    for number in range(3):
        unfit = NewEntry("refused", Source.AD_HOC, "null", priority=31, group_id=group_id)
        scene.enqueue(*[unfit] * 3)
        for name in ("hot-0", "hot-1"):
            scene.trigger(name, priority=31)

        result = scene.dispatch()
        crowd.finish(set())

        assert len(result.dispatched) == 2, f"both slots are used in cycle {number}"
        assert len(result.failed) >= 2
    assert len(crowd.completed()) == 6
