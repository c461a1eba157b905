"""Limits hold on any number of servers: two dispatchers on PostgreSQL, on connections of their own.

Better entries arrive all the time, so that two who count at once would take different ones.
"""

import threading
from collections.abc import Callable
from functools import partial
from itertools import count

import pytest

from headway import Group, every
from headway.domain.execution import ExecutionState, Outcome
from headway.domain.work_queue import NewEntry, Source
from headway.store import executions, outcomes
from headway.store.engine import Store
from tests.builders import OWNER, Scene

ROUNDS = 30
PER_ROUND = 4
COMPLETED = Outcome(ExecutionState.COMPLETED)


class Race:
    """Four who start each round together, and the most that was ever seen active."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.most = 0
        self.together = threading.Barrier(4)
        self.manifest_ids = count(1)
        self.stores = [Store(scene.url, clock=scene.clock) for _ in range(2)]

    def run(self) -> None:
        dispatchers = [partial(self.dispatch, store) for store in self.stores]
        acts: list[Callable[[], None]] = [*dispatchers, self.enqueue, self.finish]
        threads = [threading.Thread(target=self.repeat, args=[act]) for act in acts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for store in self.stores:
            store.close()

    def repeat(self, act: Callable[[], None]) -> None:
        for _ in range(ROUNDS):
            self.together.wait(20)
            act()

    def dispatch(self, store: Store) -> None:
        for _ in range(PER_ROUND):
            self.scene.dispatch(store=store)
            with store.reading() as tx:
                self.most = max(self.most, executions.count_active(tx, ()).total)

    def enqueue(self) -> None:
        for priority in range(PER_ROUND):
            key = next(self.manifest_ids)
            self.scene.enqueue(
                NewEntry("work", Source.TRIGGER, "null", "", priority, manifest_id=key, group_id=1)
            )

    def finish(self) -> None:
        self.scene.claim()
        with self.scene.store.writing() as tx:
            owned = [run.execution_id for run in executions.owned_by_any(tx, [OWNER])]
            outcomes.finish(tx, OWNER, dict.fromkeys(owned, COMPLETED))


@pytest.mark.story(18)
@pytest.mark.parametrize("cap", [1, 3])
def test_two_dispatchers_racing_never_exceed_a_groups_cap(postgres_url: str, cap: int) -> None:
    with Scene(postgres_url) as scene:
        group = Group("users", max_active_jobs=cap)
        for number in range(ROUNDS * PER_ROUND):
            scene.app.schedule("work", f"load-{number}", None, every(hours=1), group=group)
        scene.apply()
        race = Race(scene)

        race.run()

        assert 1 <= race.most <= cap
        assert scene.ended(ExecutionState.COMPLETED), "and work went on meanwhile"


def test_two_dispatchers_racing_never_exceed_the_global_limit(postgres_url: str) -> None:
    with Scene(postgres_url, max_active_jobs=2) as scene:
        for number in range(ROUNDS * PER_ROUND):
            scene.app.schedule("work", f"load-{number}", None, every(hours=1), group="users")
        scene.apply()
        race = Race(scene)

        race.run()

        assert 1 <= race.most <= 2
