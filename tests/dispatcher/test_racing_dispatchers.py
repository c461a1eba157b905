"""Limits hold on any number of servers: two dispatchers on PostgreSQL, on connections of their own.

Better entries arrive all the time, so that two who count at once would take different ones.
"""

import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import count

import pytest

from headway import Group, every
from headway.dispatcher import at_once
from headway.dispatcher.cycle import JobDispatcher
from headway.domain.execution import ExecutionState, Outcome
from headway.domain.work_queue import NewEntry, Source
from headway.history import History
from headway.servers.local import LocalServer
from headway.store import executions, notifications, outcomes
from headway.store.engine import Store
from tests.builders import OWNER, Scene, tried_again
from tests.dispatcher.test_started_at_once import Workers, alive
from tests.pgbouncer import in_front

ROUNDS = 30
NAMES = ("one", "other")
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
            self.enqueue_one(priority)

    def enqueue_one(self, priority: int) -> None:
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


class RaceToStart(Race):
    """The same where each dispatches for workers of its own, and starts at once what it can."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self.started = 0
        self.reasons: Counter[str] = Counter()  # why others did not
        self.stores = [Store(scene.url) for _ in NAMES]
        self.heard = [notifications.listen(store, seconds=0.001) for store in self.stores]
        self.dispatchers = [self.dispatcher(*one) for one in zip(self.stores, NAMES, strict=True)]

    def dispatcher(self, store: Store, name: str) -> JobDispatcher:
        alive(self.scene, name, slots=9)
        settings, observer = self.scene.app.settings, self.scene.app.observer
        server, workers = LocalServer(lambda: None), Workers(name, free=9)
        return JobDispatcher(
            store, settings, observer, server, to_own_workers=True, own_workers=workers
        )

    def dispatch(self, store: Store) -> None:
        mine = self.stores.index(store)
        for _ in range(PER_ROUND):
            heard = next(self.heard[mine], None)  # behind a pooler nobody hears anything
            if heard is not None and self.dispatchers[mine].start_all(heard.line):
                self.started += 1
            else:
                self.reasons[self.reason(self.dispatchers[mine], heard)] += 1
                tried_again(self.dispatchers[mine].run_once)
            with store.reading() as tx:
                self.most = max(self.most, executions.count_active(tx, ()).total)

    def reason(self, dispatcher: JobDispatcher, heard: notifications.Heard | None) -> str:
        if heard is None:
            return "nothing is heard"
        if not heard.line.is_free:
            return "the line is not free"
        at_rest = dispatcher._at_rest
        return f"for themselves: {sorted(at_rest.for_themselves)}" if at_rest else "not at rest"

    def enqueue(self) -> None:
        """One after another, so that there is room for both at times, and at times for one.

        None where some wait: whatever is left of a slow round would leave no room for all again.
        """
        for _ in range(0 if History(self.scene.store).queue.all() else 2):
            self.enqueue_one(0)

    def finish(self) -> None:
        with self.scene.store.writing() as tx:
            for name in NAMES:
                owned = [run.execution_id for run in executions.owned_by_any(tx, [name])]
                outcomes.finish(tx, name, dict.fromkeys(owned, COMPLETED))


@pytest.mark.story(18)
@pytest.mark.parametrize("limit", ["global", "group"])
def test_two_who_start_at_once_what_they_hear_of_never_exceed_a_limit(
    postgres_url: str, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(at_once, "MOST_PASSED", 0)  # however often it is in vain
    most = {"max_active_jobs": 2} if limit == "global" else {}
    with Scene(postgres_url, virtual_time=False, **most) as scene:
        group = Group("users", max_active_jobs=2 if limit == "group" else None)
        for number in range(ROUNDS * PER_ROUND):
            scene.app.schedule("work", f"load-{number}", None, every(days=9), group=group)
        scene.apply()
        race = RaceToStart(scene)

        race.run()
        for one in race.heard:
            one.close()

        assert 1 <= race.most <= 2
        assert race.started or in_front(), f"none started at once: {race.reasons}"
        assert scene.ended(ExecutionState.COMPLETED)
