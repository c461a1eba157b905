"""Dispatched and started in one transaction, for workers in the dispatcher's own process."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from threading import Thread
from typing import Any

import pytest
from sqlalchemy import text, update

from headway import Group, every
from headway.dispatcher import cycle
from headway.dispatcher.cycle import DispatchResult, JobDispatcher
from headway.domain.execution import Execution, ExecutionState
from headway.domain.starting import Hands
from headway.domain.work_queue import NewEntry, Source
from headway.servers.local import LocalServer
from headway.store import executions, leases, shut_groups
from headway.store.engine import Store
from headway.store.locks import Lock
from headway.store.servers import ServerProcess
from headway.store.tables import work_queue
from tests.builders import PATIENCE, Scene, eventually
from tests.dispatcher.test_poison import REFUSE_ONE

LEASE = timedelta(seconds=15)
PENDING, IN_PROGRESS = ExecutionState.PENDING, ExecutionState.IN_PROGRESS


class Workers:
    """Workers who have so many hands free, and note what they are given to run."""

    def __init__(self, owner: str = "me", free: int = 2, takes: Collection[str] = ("work",)):
        self.owner = owner
        self.free = free
        self.takes = takes
        self.reserved = 0
        self.given: list[list[Execution]] = []

    def reserve(self) -> Hands | None:
        self.reserved += 1
        return Hands(self.owner, self.free, self.takes, {"work": "work"}) if self.free else None

    def start_at_once(self, hands: Hands, started: Collection[Execution]) -> None:
        self.given.append(list(started))


def alive(scene: Scene, name: str = "me", slots: int = 2, **fields: Any) -> None:
    known = {"roles": ["dispatcher", "worker"], "workflows": ["work"]} | fields
    with scene.store.writing() as tx:
        leases.register(tx, ServerProcess(name, "host", 1, slots=slots, **known), LEASE)


def queue(scene: Scene, count: int) -> list[int]:
    return scene.enqueue(*(NewEntry("work", Source.AD_HOC, "null") for _ in range(count)))


def dispatcher(
    scene: Scene, workers: Workers, wake: Callable[[], None] = lambda: None
) -> JobDispatcher:
    return JobDispatcher(
        scene.store,
        scene.app.settings,
        scene.app.observer,
        LocalServer(wake),
        to_own_workers=True,
        own_workers=workers,
    )


def dispatch(scene: Scene, workers: Workers) -> DispatchResult:
    return dispatcher(scene, workers).run_once()


def states(scene: Scene) -> list[ExecutionState]:
    return [one.state for one in scene.history.executions.all()]


def test_what_is_given_to_them_is_on_record_as_if_it_had_been_claimed(scene: Scene) -> None:
    alive(scene)
    scene.app.schedule("work", "load", None, every(hours=1), group=Group("etl"))
    scene.apply()
    scene.manage()
    workers = Workers()

    result = dispatch(scene, workers)

    [[started]] = workers.given
    assert result.dispatched == (started.id,)
    assert started == scene.execution(started.id)
    assert (started.state, started.owner, started.external_id) == (IN_PROGRESS, "me", "load")
    assert started.running_step == "work"
    assert started.started_at == started.dispatched_at == scene.clock.now


def test_no_more_start_than_hands_are_free_and_the_best_do(scene: Scene) -> None:
    alive(scene, slots=4)
    ids = queue(scene, 3)
    [best] = scene.enqueue(NewEntry("work", Source.AD_HOC, "null", priority=9))
    workers = Workers(free=2)

    dispatch(scene, workers)

    [started] = workers.given
    assert [one.entry_id for one in started] == [best, ids[0]]
    assert states(scene) == [IN_PROGRESS, IN_PROGRESS]
    assert [one.id for one in scene.history.queue.all()] == ids[1:]


def test_alone_nothing_more_is_dispatched_than_there_are_slots(scene: Scene) -> None:
    """What they start themselves need not lie ready for others."""
    alive(scene, slots=2)
    queue(scene, 5)

    assert len(dispatch(scene, Workers(free=2)).dispatched) == 2
    assert dispatch(scene, Workers(free=2)).dispatched == ()


@pytest.mark.parametrize(
    ("others", "nobody_else"),
    [([], True), (["manager"], False), (["worker"], False), (["executor"], False)],
)
def test_whoever_dispatches_says_whether_there_is_anybody_else(
    scene: Scene, others: list[str], nobody_else: bool
) -> None:
    alive(scene)
    for role in others:
        alive(scene, "other", slots=int(role == "worker"), roles=[role])

    assert dispatch(scene, Workers()).nobody_else is nobody_else


def test_as_many_as_are_free_here_however_many_the_database_counts(scene: Scene) -> None:
    """Some have ended there, and not here yet: what was dispatched for them would lie pending."""
    alive(scene, slots=4)
    queue(scene, 3)

    assert dispatch(scene, Workers(free=0)).dispatched == ()
    assert len(dispatch(scene, Workers(free=1)).dispatched) == 1
    assert states(scene) == [IN_PROGRESS]


def test_half_of_many_workers_are_given_something_and_then_the_other_half(scene: Scene) -> None:
    scene.configure(max_active_jobs=None, max_queued_jobs_per_cycle=None, worker_count=400)
    alive(scene, slots=400)
    queue(scene, 700)
    workers = Workers(free=400)
    cycles = dispatcher(scene, workers)

    first = cycles.run_once()
    assert (len(first.dispatched), first.more) == (200, True)

    workers.free = 200
    second = cycles.run_once()
    assert (len(second.dispatched), second.more) == (200, False), "nobody is left"


def test_who_has_found_all_there_is_need_not_look_again(scene: Scene) -> None:
    alive(scene, slots=4)
    queue(scene, 3)

    result = dispatch(scene, Workers(free=4))

    assert (len(result.dispatched), result.more) == (3, False)


def test_nobody_is_told_to_claim_what_has_started(scene: Scene) -> None:
    alive(scene, slots=4)
    told: list[Any] = []
    cycles = dispatcher(scene, Workers(free=4), lambda: told.append(True))
    queue(scene, 1)
    cycles.run_once()
    assert told == []

    [crashed] = queue(scene, 1)
    with scene.store.writing() as tx:
        once = update(work_queue).where(work_queue.c.id == crashed).values(crashes=1)
        tx.connection.execute(once)
    cycles.run_once()
    assert told == [True]


def test_beside_other_workers_as_many_lie_ready_as_there_are_slots(scene: Scene) -> None:
    alive(scene, slots=2)
    alive(scene, "other", slots=1, roles=["worker"])
    queue(scene, 9)

    assert len(dispatch(scene, Workers(free=2)).dispatched) == 6


# Several processes that all dispatch: each for its own workers


def test_beside_others_who_dispatch_too_each_dispatches_for_itself(scene: Scene) -> None:
    alive(scene, slots=2)
    alive(scene, "other", slots=3)
    queue(scene, 9)
    me, other = Workers(free=2), Workers("other", free=3)

    result = dispatch(scene, me)
    assert (len(result.dispatched), result.for_itself, result.nobody_else) == (2, True, False)
    assert len(dispatch(scene, other).dispatched) == 3

    assert [len(one) for one in (*me.given, *other.given)] == [2, 3]
    assert states(scene) == [IN_PROGRESS] * 5


@pytest.mark.parametrize("other", [{"workflows": ["other"]}, {"roles": ["worker"]}])
def test_who_has_to_dispatch_for_others_does(scene: Scene, other: dict[str, Any]) -> None:
    """Others who take something else, or do not dispatch, would wait for ever."""
    alive(scene, slots=2)
    alive(scene, "other", slots=3, **other)
    queue(scene, 9)

    result = dispatch(scene, Workers(free=2))

    assert (len(result.dispatched), result.for_itself) == (9, False)


def test_who_dispatches_for_itself_waits_for_its_turn(postgres_url: str) -> None:
    with Scene(postgres_url) as scene:
        alive(scene)
        alive(scene, "other")
        workers = Workers()
        cycles = dispatcher(scene, workers)
        assert cycles.run_once().for_itself
        queue(scene, 1)
        first = Store(postgres_url, clock=scene.clock)
        results: list[DispatchResult] = []
        waiting = Thread(target=lambda: results.append(cycles.run_once()))
        with first.leading(Lock.DISPATCH) as tx:
            assert tx is not None
            waiting.start()
            waits = text(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            )
            eventually(lambda: tx.connection.execute(waits).scalar_one() == 1)
        waiting.join(PATIENCE)
        first.close()
        [result] = results
        assert (result.led, result.waited, len(result.dispatched)) == (True, True, 1)


def test_who_dispatches_for_others_does_not_wait(postgres_url: str) -> None:
    """Whoever has the lock does it for all."""
    with Scene(postgres_url) as scene:
        alive(scene)
        alive(scene, "other", roles=["worker"])
        cycles = dispatcher(scene, Workers())
        assert not cycles.run_once().for_itself
        queue(scene, 1)
        first = Store(postgres_url, clock=scene.clock)
        with first.leading(Lock.DISPATCH):
            result = cycles.run_once()
        first.close()
        assert (result.led, result.waited) == (False, False)


def test_with_full_hands_nobody_looks_again_until_a_moment_has_passed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive(scene, slots=2)
    queue(scene, 3)
    workers = Workers(free=2)
    cycles = dispatcher(scene, workers)
    assert len(cycles.run_once().dispatched) == 2
    workers.free = 0
    looks = counted_looks(monkeypatch)

    for _ in range(3):
        again = cycles.run_once()
        assert (again.led, again.nobody_else, again.dispatched) == (True, True, ())
    assert looks == []

    monkeypatch.setattr(cycle, "LOOK_AGAIN", 0.0)
    cycles.run_once()
    assert len(looks) == 1, "what nobody can run must fail, whoever is busy"


def test_with_full_hands_there_may_be_work_for_others(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive(scene, slots=2)
    alive(scene, "other", slots=1, roles=["worker"])
    queue(scene, 1)
    workers = Workers(free=0)
    cycles = dispatcher(scene, workers)
    cycles.run_once()
    looks = counted_looks(monkeypatch)
    cycles.run_once()
    assert len(looks) == 1


def counted_looks(monkeypatch: pytest.MonkeyPatch) -> list[Store]:
    """One for each time the lock is asked for from now on."""
    looks: list[Store] = []
    leading = Store.leading

    def noted(store: Store, *arguments: Any, **named: Any) -> Any:
        looks.append(store)
        return leading(store, *arguments, **named)

    monkeypatch.setattr(Store, "leading", noted)
    return looks


@pytest.mark.parametrize("lost", ["no lease", "an expired lease"])
def test_without_a_living_lease_nothing_starts(scene: Scene, lost: str) -> None:
    if lost == "an expired lease":
        alive(scene)
        scene.clock.advance(seconds=15)
    alive(scene, "other")
    queue(scene, 1)
    workers = Workers()

    dispatch(scene, workers)

    assert (workers.reserved, workers.given, states(scene)) == (0, [], [PENDING])


def test_what_waits_to_be_claimed_comes_first(scene: Scene) -> None:
    alive(scene, slots=4)
    scene.pending("work")
    queue(scene, 1)
    workers = Workers()

    dispatch(scene, workers)

    assert (workers.reserved, states(scene)) == (0, [PENDING, PENDING])


def test_whatever_has_crashed_before_waits_to_be_claimed(scene: Scene) -> None:
    """Beside whom it may run is asked there."""
    alive(scene)
    crashed, sound = queue(scene, 2)
    with scene.store.writing() as tx:
        once = update(work_queue).where(work_queue.c.id == crashed).values(crashes=1)
        tx.connection.execute(once)
    workers = Workers()

    dispatch(scene, workers)

    [started] = workers.given
    assert [one.entry_id for one in started] == [sound]
    assert sorted(states(scene)) == [IN_PROGRESS, PENDING]


def test_what_they_do_not_take_waits_for_those_who_do(scene: Scene) -> None:
    alive(scene)
    queue(scene, 1)
    workers = Workers(takes=["another"])

    dispatch(scene, workers)

    assert (workers.given, states(scene)) == ([[]], [PENDING])


def test_hands_that_got_another_name_meanwhile_start_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease that is held is the old one's."""
    alive(scene)
    queue(scene, 1)
    workers = Workers()
    hold = executions.hold_to_start

    def hold_and_change(*arguments: Any) -> bool:
        held = hold(*arguments)
        workers.owner = "again"
        return held

    monkeypatch.setattr(executions, "hold_to_start", hold_and_change)

    dispatch(scene, workers)

    assert (workers.given, states(scene)) == ([[]], [PENDING])


def test_a_cycle_that_fails_gives_the_hands_back_empty(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive(scene)
    queue(scene, 1)
    workers = Workers()

    def fail(*_: Any) -> int:
        raise RuntimeError("no")

    with monkeypatch.context() as broken:
        broken.setattr(shut_groups, "note_shut_groups", fail)
        with pytest.raises(RuntimeError):
            dispatch(scene, workers)

    assert (workers.given, states(scene)) == ([[]], [])
    dispatch(scene, workers)
    assert [len(one) for one in workers.given] == [0, 1]


def test_one_the_database_refuses_costs_no_other_its_start(scene: Scene) -> None:
    alive(scene, slots=4)
    first, bad, last = queue(scene, 3)
    with scene.store.writing() as tx:
        broken = update(work_queue).where(work_queue.c.id == bad).values(attempts=2**31 - 1)
        tx.connection.execute(broken)
    workers = Workers(free=4)

    dispatch(scene, workers)

    started = {one.entry_id for batch in workers.given for one in batch}
    if scene.store.on_postgresql:  # SQLite's numbers have no such end
        assert started == {first, last}
        assert scene.history.queue.all() == []
    else:
        assert started == {first, bad, last}


def test_what_takes_the_place_of_a_refused_one_is_left_to_be_claimed(scene: Scene) -> None:
    """The slots that were free have been given away before."""
    scene.app.workflow("refused")(lambda: None)
    scene.configure(max_active_jobs=3)
    alive(scene, workflows=["work", "refused"])
    alive(scene, "other", slots=8, roles=["worker"])
    with scene.store.writing() as tx:
        for statement in REFUSE_ONE["postgresql" if tx.on_postgresql else "sqlite"]:
            tx.connection.execute(text(statement))
    first, second = queue(scene, 2)
    scene.enqueue(NewEntry("refused", Source.AD_HOC, "null"))
    [last] = queue(scene, 1)
    workers = Workers(free=2)

    dispatch(scene, workers)

    assert [one.entry_id for one in workers.given[-1]] == [first, second]
    [waiting] = scene.history.executions.all(states=[PENDING])
    assert waiting.entry_id == last
