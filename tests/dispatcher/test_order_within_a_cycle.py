"""Within one cycle, executions are created, handed over and claimed in the order of dispatch."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from headway import Group, every
from headway.dispatcher.cycle import JobDispatcher
from headway.domain.work_queue import NewEntry, Source
from headway.relay import Relay
from headway.servers.inline import InlineServer
from headway.servers.local import LocalServer
from headway.store import work_queue
from tests.builders import Scene, names
from tests.dispatcher.test_started_at_once import Workers, alive, dispatcher

IN_ORDER = ["urgent", "aside", "early", "late", "low"]


class Inbox:
    """A task server that keeps what it is given."""

    def __init__(self) -> None:
        self.given: list[int] = []

    def submit(self, execution_ids: Sequence[int]) -> None:
        self.given += execution_ids


class Relayed:
    """A task server that is told through the outbox, and keeps what it is told."""

    def __init__(self) -> None:
        self.given: list[int] = []

    def publish(self, execution_id: int) -> None:
        self.given.append(execution_id)

    def reach(self) -> None: ...


def queue_worst_first(scene: Scene) -> None:
    """Entries whose ids stand in the opposite order: group priority, own priority, age."""
    groups = {
        "low": Group("low", priority=1),
        "late": Group("mid", priority=5),
        "early": Group("mid", priority=5),
        "aside": Group("mid", priority=5),
        "urgent": Group("high", priority=9),
    }
    for name, group in groups.items():
        scene.app.schedule("work", name, None, every(hours=1), group=group)
    scene.apply()
    scene.trigger("low", priority=20)
    scene.clock.advance(seconds=-1)
    scene.trigger("late", priority=3)
    scene.clock.advance(seconds=-1)
    scene.trigger("early", priority=3)
    scene.trigger("aside", priority=4)
    scene.trigger("urgent", priority=0)
    scene.clock.advance(seconds=3)


def created(scene: Scene) -> list[str | None]:
    return names(sorted(scene.history.executions.all(), key=lambda one: one.id))


def ran(scene: Scene, given: Sequence[int]) -> list[str | None]:
    return names([scene.execution(key) for key in given])


def test_executions_are_created_and_handed_over_best_first(scene: Scene) -> None:
    queue_worst_first(scene)
    inbox = Inbox()
    scene.dispatch(inbox)
    assert created(scene) == IN_ORDER
    assert ran(scene, inbox.given) == IN_ORDER


def test_a_server_that_runs_them_at_once_runs_the_best_first(scene: Scene) -> None:
    queue_worst_first(scene)
    given: list[int] = []
    scene.dispatch(InlineServer(given.append))
    assert ran(scene, given) == IN_ORDER


def test_a_server_told_through_the_outbox_is_told_of_the_best_first(scene: Scene) -> None:
    broker = Relayed()
    scene.app.task_servers.add("broker", broker, workflows=["work"])
    queue_worst_first(scene)
    JobDispatcher(
        scene.store,
        scene.app.settings,
        scene.app.observer,
        LocalServer(lambda: None),
        task_servers=scene.app.task_servers,
    ).run_once()
    Relay(scene.store, scene.app.registry, scene.app.task_servers, scene.app.observer).run_once()
    assert ran(scene, broker.given) == IN_ORDER


def test_of_equal_priority_workers_claim_in_the_order_of_dispatch(scene: Scene) -> None:
    """A claim goes by the entry's priority; the group's counts by the order of creation."""
    for name, priority in (("low", 1), ("high", 9)):
        group = Group(name, priority=priority)
        scene.app.schedule("work", name, None, every(hours=1), group=group)
    scene.apply()
    scene.trigger("low", priority=3)
    scene.trigger("high", priority=3)
    scene.dispatch()
    assert names([scene.claim(limit=1)[0], scene.claim(limit=1)[0]]) == ["high", "low"]


def test_those_that_start_in_the_cycle_are_started_best_first(scene: Scene) -> None:
    alive(scene, slots=9)
    queue_worst_first(scene)
    workers = Workers(free=9)
    dispatcher(scene, workers).run_once()
    [started] = workers.given
    assert names(started) == IN_ORDER


def test_one_that_has_waited_too_long_is_handed_over_first(scene: Scene) -> None:
    """Ageing puts an entry ahead of better ones, and the hand-over keeps to that."""
    scene.configure(max_active_jobs=3, starvation_after=timedelta(minutes=10))
    new = NewEntry("work", Source.AD_HOC, '"new"', priority=9)
    scene.enqueue(new, new, new, new)
    scene.clock.advance(minutes=-20)
    scene.enqueue(NewEntry("work", Source.AD_HOC, '"old"'))
    scene.clock.advance(minutes=20)
    inbox = Inbox()
    scene.dispatch(inbox)
    order = [scene.execution(key).input for key in inbox.given]
    assert order == ['"old"', '"new"', '"new"']


def test_entries_without_a_manifest_are_created_best_first(scene: Scene) -> None:
    entries = [NewEntry("work", Source.AD_HOC, str(n), priority=n) for n in (1, 9, 5)]
    scene.enqueue(*entries)
    scene.dispatch()
    assert [one.input for one in scene.history.executions.all()] == ["9", "5", "1"]


def test_the_statement_alone_keeps_the_order(scene: Scene) -> None:
    queue_worst_first(scene)
    ids = [one.id for one in scene.history.queue.all()]
    with scene.store.writing() as tx:
        work_queue.dispatch(tx, sorted(ids))
    assert created(scene) == IN_ORDER
