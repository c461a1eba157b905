"""What is queued on an idle server starts in one go, or takes a cycle as if nothing had been tried.

Whatever starts so is what a cycle would have dispatched, all of it. Only on PostgreSQL, and only by
the database's clock: SQLite is no way away.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise
from threading import Thread
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, func, select, text, update
from sqlalchemy.exc import DBAPIError

from headway import Group, every
from headway.dispatcher.at_once import IN_A_ROW, MOST_PASSED
from headway.dispatcher.cycle import JobDispatcher
from headway.domain.work_queue import NewEntry, Source
from headway.store import executions, notifications, work_queue
from headway.store.engine import Store
from headway.store.glance import FEW
from headway.store.locks import Lock
from headway.store.tables import execution, server
from headway.store.tables import work_queue as entries
from headway.store.together import Line
from tests.builders import PATIENCE, Scene, eventually
from tests.dispatcher.test_poison import REFUSE_ONE
from tests.dispatcher.test_started_at_once import (
    IN_PROGRESS,
    PENDING,
    Workers,
    alive,
    dispatcher,
    queue,
    states,
)
from tests.dispatcher.world import (
    HOUR,
    KINDS,
    KNOWN,
    LIMITED,
    QUEUED,
    Limited,
    Queued,
    World,
    made_world,
    put_in,
)
from tests.pgbouncer import in_front
from tests.statements import sent_statements

pytestmark = [
    pytest.mark.postgresql,
    pytest.mark.skipif(in_front(), reason="behind a pooler nobody hears of anything"),
]

# Of all kinds, those that nothing but room is asked of.
USUAL = {
    "ad hoc",
    "outside the limit",
    "in an open group",
    "by time, in an open group",
    "in another open group",
    "in a group with room",
    "also in the group with room",
    "asked for, of a disabled manifest",
    "asked for, of a dead-lettered manifest",
    "asked for, at rest",
}


@pytest.fixture
def scene(postgres_url: str) -> Iterator[Scene]:
    with Scene(postgres_url, virtual_time=False) as scene:
        yield scene


@pytest.fixture
def world(scene: Scene) -> World:
    return made_world(scene)


@pytest.fixture
def line(scene: Scene) -> Iterator[Line]:
    heard = notifications.listen(scene.store, seconds=0.01)
    yield next(heard).line
    heard.close()


def at_rest(scene: Scene, workers: Workers) -> JobDispatcher:
    """A dispatcher that has just found nothing."""
    made = dispatcher(scene, workers)
    assert made.run_once().dispatched == ()
    return made


def expecting_manifests(scene: Scene, workers: Workers) -> JobDispatcher:
    """One that knows of runs of manifests, and has just found nothing."""
    made = at_rest(scene, workers)
    assert made._at_once is not None
    runs = scene.history.executions.all()
    made._at_once.learn([one for one in runs if one.manifest_id is not None])
    return made


@contextmanager
def nothing_changes(scene: Scene) -> Iterator[None]:
    before = everything(scene)
    yield
    assert everything(scene) == before


def everything(scene: Scene) -> list[Any]:
    with scene.store.reading() as tx:
        live = select(execution.c.id, execution.c.entry_id, execution.c.state)
        return [
            *tx.connection.execute(select(*entries.c).order_by(entries.c.id)).all(),
            *tx.connection.execute(live.order_by(execution.c.id)).all(),
        ]


def test_what_starts_is_on_record_as_if_it_had_been_claimed(scene: Scene, line: Line) -> None:
    alive(scene)
    workers = Workers()
    dispatching = at_rest(scene, workers)
    ids = queue(scene, 2)

    assert dispatching.start_all(line)

    [started] = workers.given
    assert [one.entry_id for one in started] == ids
    assert started == [scene.execution(one.id) for one in started]
    assert {(one.state, one.owner, one.running_step) for one in started} == {
        (IN_PROGRESS, "me", "work")
    }
    assert {one.started_at == one.dispatched_at for one in started} == {True}
    assert scene.history.queue.all() == []


def test_the_best_is_started_first(scene: Scene, line: Line) -> None:
    alive(scene)
    workers = Workers()
    dispatching = at_rest(scene, workers)
    for priority in (1, 9):
        scene.enqueue(NewEntry("work", Source.AD_HOC, "null", priority=priority))

    assert dispatching.start_all(line)

    [started] = workers.given
    assert [one.priority for one in started] == [9, 1]
    assert started[0].id < started[1].id


def test_a_run_of_a_manifest_has_all_that_a_cycle_gives_it(world: World, line: Line) -> None:
    workers = Workers(free=4, takes=KNOWN)
    by_cycle = dispatcher(world.scene, workers)
    world.queue("in a group with room")
    by_cycle.run_once()
    [[usual]] = workers.given
    with world.scene.store.writing() as tx:
        tx.connection.execute(delete(execution).where(execution.c.id == usual.id))
    assert by_cycle.run_once().dispatched == ()
    workers.given.clear()
    world.queue("in a group with room")

    assert by_cycle.start_all(line)

    [[started]] = workers.given
    assert started == world.scene.execution(started.id)
    own = ("id", "entry_id", "queued_at", "dispatched_at", "started_at", "step_started_at")
    ours = {name: getattr(started, name) for name in own}
    assert usual._replace(**ours) == started


@pytest.mark.parametrize("kind", ["ad hoc", "in an open group"])
def test_it_is_told_as_a_cycle_tells_it(world: World, line: Line, kind: str) -> None:
    scene, workers = world.scene, Workers(free=9, takes=KNOWN)
    dispatching = expecting_manifests(scene, workers)
    world.queue(kind)
    assert dispatching.start_all(line)
    with scene.store.writing() as tx:
        ours = execution.c.id.in_([one.id for one in workers.given.pop()])
        tx.connection.execute(delete(execution).where(ours))
    [queued] = world.queue(kind)
    assert len(dispatching.run_once().dispatched) == 1

    at_once, by_cycle = (one.fields for one in scene.events.named("execution.dispatched"))
    assert at_once.keys() == by_cycle.keys()
    differing = {name for name in by_cycle if at_once[name] != by_cycle[name]}
    assert differing <= {"execution_id", "entry_id", "queued_at", "ready_at", "dispatched_at"}
    assert by_cycle["entry_id"] == queued
    cycles = [one.fields for one in scene.events.named("dispatcher.cycle")[-2:]]
    assert [one["dispatched"] for one in cycles] == [1, 1]
    assert cycles[0].keys() == cycles[1].keys()


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_it_is_it_starts_with_all_others_or_nothing_does(
    world: World, line: Line, kind: str
) -> None:
    workers = Workers(free=4, takes=KNOWN)
    dispatching = expecting_manifests(world.scene, workers)
    queued = [*world.queue(kind), *world.queue("ad hoc")]
    foreseen = world.foresee(workers)

    if kind in USUAL:
        assert dispatching.start_all(line)
        [started] = workers.given
        assert [one.entry_id for one in started] == queued == sorted(foreseen.admitted)
        assert world.left() == foreseen.left == []
    else:
        with nothing_changes(world.scene):
            assert not dispatching.start_all(line)
        result = dispatching.run_once()
        assert list(result.failed) == foreseen.failed
        assert world.left() == foreseen.left


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    limited=LIMITED,
    mixture=st.lists(QUEUED, min_size=1, max_size=4),
    usual=st.booleans(),
)
def test_of_any_queue_all_that_a_cycle_would_dispatch_starts_or_nothing(
    world: World, line: Line, limited: Limited, mixture: list[Queued], usual: bool
) -> None:
    scene = world.scene
    scene.configure(max_active_jobs=limited.active, exclude_from_max_active_jobs=limited.excluded)
    workers = Workers(free=3 if limited.free is None else limited.free, takes=KNOWN)
    with scene.store.writing() as tx:
        lease = {"slots": limited.slots, "expires_at": tx.now + HOUR}
        tx.connection.execute(update(server).values(lease))
        before = tx.connection.execute(select(func.max(execution.c.id))).scalar_one()
    dispatching = expecting_manifests(scene, workers)
    if usual:
        mixture = [one for one in mixture if one.kind in USUAL]
    with scene.store.writing() as tx:
        put_in(tx, world, limited, mixture)
    queued = [one.id for one in world.left()]
    foreseen = world.foresee(workers)
    try:
        if dispatching.start_all(line):
            [started] = workers.given
            assert sorted(one.entry_id for one in started) == queued == sorted(foreseen.admitted)
            assert [one.id for one in started] == sorted(one.id for one in started)
            assert world.left() == []
        else:
            assert workers.given in ([], [[]])
            assert [one.id for one in world.left()] == queued
            all_usual = {one.kind for one in mixture} <= USUAL
            assert not (all_usual and queued and sorted(foreseen.admitted) == queued)
    finally:
        with scene.store.writing() as tx:
            tx.connection.execute(delete(entries))
            tx.connection.execute(delete(execution).where(execution.c.id > before))


@pytest.mark.parametrize("cap", [1, 2])
def test_a_group_of_which_nothing_runs_starts_no_more_than_its_cap(
    world: World, line: Line, cap: int
) -> None:
    scene, workers = world.scene, Workers(free=4, takes=KNOWN)
    for name in ("idle-1", "idle-2"):
        group = Group("idle", max_active_jobs=cap)
        scene.app.schedule("work", name, None, every(days=9), group=group)
    scene.apply()
    dispatching = expecting_manifests(scene, workers)
    for name in ("idle-1", "idle-2"):
        scene.trigger(name)

    assert dispatching.start_all(line) is (cap == 2)

    assert len(workers.given.pop()) == (2 if cap == 2 else 0)


# Who takes a cycle


def test_the_first_look_is_a_cycle(scene: Scene, line: Line) -> None:
    alive(scene)
    queue(scene, 1)
    with nothing_changes(scene):
        assert not dispatcher(scene, Workers()).start_all(line)


def test_while_another_dispatcher_has_its_turn_nothing_starts(scene: Scene, line: Line) -> None:
    alive(scene)
    dispatching = at_rest(scene, Workers())
    queue(scene, 1)
    other = Store(scene.url)
    with other.leading(Lock.DISPATCH) as tx:
        assert tx is not None
        with nothing_changes(scene):
            assert not dispatching.start_all(line)
    other.close()
    assert dispatching.start_all(line)


def test_while_one_decides_no_other_does(scene: Scene) -> None:
    """The one has counted, and waits for its lease; what comes in now would be one too many."""
    scene.configure(max_active_jobs=1)
    stores = [scene.store, Store(scene.url)]
    heard = [notifications.listen(store, seconds=0.01) for store in stores]
    for name in ("one", "other"):
        alive(scene, name)
    one, other = (at_rest(scene, Workers(name)) for name in ("one", "other"))
    waits = text("SELECT 1 FROM pg_locks WHERE NOT granted")
    begun: list[bool] = []
    starting = Thread(target=lambda: begun.append(one.start_all(next(heard[0]).line)))
    queue(scene, 1)
    with stores[1].writing() as tx:
        own = select(server.c.id).where(server.c.id == "one").with_for_update()
        tx.connection.execute(own)
        starting.start()
        eventually(lambda: tx.connection.execute(waits).first() is not None)
        queue(scene, 1)
        assert not other.start_all(next(heard[1]).line)
    starting.join()

    assert begun == [True]
    assert states(scene) == [IN_PROGRESS]
    for listening in heard:
        listening.close()
    stores[1].close()


def test_while_its_own_cycle_is_under_way_nobody_waits_for_it(scene: Scene, line: Line) -> None:
    alive(scene)
    dispatching = at_rest(scene, Workers())
    with dispatching._turn:
        assert not dispatching.start_all(line)


@pytest.mark.parametrize("others", [["worker"], ["manager"]])
def test_who_has_come_is_looked_at_first(scene: Scene, line: Line, others: list[str]) -> None:
    alive(scene)
    dispatching = at_rest(scene, Workers())
    alive(scene, "other", slots=1, roles=others)
    queue(scene, 1)
    with nothing_changes(scene):
        assert not dispatching.start_all(line)


@pytest.mark.parametrize("with_another", [True, False])
def test_without_a_living_lease_nothing_starts(
    scene: Scene, line: Line, with_another: bool
) -> None:
    alive(scene)
    if with_another:
        alive(scene, "other")
    dispatching = at_rest(scene, Workers())
    queue(scene, 1)
    with scene.store.writing() as tx:
        expired = update(server).where(server.c.id == "me")
        tx.connection.execute(expired.values(expires_at=tx.now - timedelta(seconds=1)))
    with nothing_changes(scene):
        assert not dispatching.start_all(line)


def test_the_lease_is_held_until_it_has_committed(scene: Scene, line: Line) -> None:
    """Whoever would bury this process waits, or is through before."""
    alive(scene)
    dispatching = at_rest(scene, Workers())
    queue(scene, 1)
    other = Store(scene.url)
    with other.writing() as tx:
        own = select(server.c.id).where(server.c.id == "me").with_for_update()
        assert tx.connection.execute(own).scalar_one() == "me"
        line.connection.exec_driver_sql("SET lock_timeout = '200ms'")
        with nothing_changes(scene):
            assert not dispatching.start_all(line)
    other.close()
    assert dispatching.start_all(line)


def test_what_waits_to_be_claimed_comes_first(scene: Scene, line: Line) -> None:
    alive(scene, slots=4)
    dispatching = at_rest(scene, Workers())
    scene.pending("work")
    queue(scene, 1)
    with nothing_changes(scene):
        assert not dispatching.start_all(line)
    assert states(scene) == [PENDING]


def test_what_is_delayed_is_known_of_before(scene: Scene, line: Line) -> None:
    """The loop has to know when it is due, and it is dispatched in its order."""
    alive(scene, slots=9)
    dispatching = at_rest(scene, Workers())
    with scene.store.writing() as tx:
        later = NewEntry("work", Source.AD_HOC, "null", scheduled_at=tx.now + HOUR)
        [delayed] = work_queue.enqueue(tx, [later])
    queue(scene, 1)
    assert not dispatching.start_all(line)
    assert len(dispatching.run_once().dispatched) == 1
    queue(scene, 1)
    assert dispatching.start_all(line)
    with scene.store.writing() as tx:
        due = update(entries).where(entries.c.id == delayed).values(scheduled_at=tx.now)
        tx.connection.execute(due)
    queue(scene, 1)
    with nothing_changes(scene):
        assert not dispatching.start_all(line)


@pytest.mark.parametrize(("count", "fits"), [(FEW, True), (FEW + 1, False)])
def test_only_a_few_start_without_a_cycle(scene: Scene, line: Line, count: int, fits: bool) -> None:
    scene.configure(max_active_jobs=None)
    alive(scene, slots=100)
    dispatching = at_rest(scene, Workers(free=100))
    queue(scene, count)
    assert dispatching.start_all(line) is fits
    assert len(states(scene)) == (count if fits else 0)


def test_more_of_a_group_than_a_cycle_takes_are_left_to_it(scene: Scene, line: Line) -> None:
    scene.configure(max_queued_jobs_per_cycle=2)
    alive(scene, slots=9)
    dispatching = at_rest(scene, Workers(free=9))
    queue(scene, 3)
    with nothing_changes(scene):
        assert not dispatching.start_all(line)
    assert len(dispatching.run_once().dispatched) == 2


@pytest.mark.parametrize("limit", ["hands", "slots", "jobs"])
def test_one_too_many_leaves_all_to_a_cycle(scene: Scene, line: Line, limit: str) -> None:
    scene.configure(max_active_jobs=3 if limit == "jobs" else None)
    alive(scene, slots=3 if limit == "slots" else 9)
    workers = Workers(free=3 if limit == "hands" else 9)
    dispatching = at_rest(scene, workers)
    queue(scene, 1)
    assert dispatching.start_all(line)
    queue(scene, 3)
    if limit == "hands":
        workers.free = 2
    with nothing_changes(scene):
        assert not dispatching.start_all(line)
    assert len(dispatching.run_once().dispatched) == 2
    assert states(scene) == [IN_PROGRESS] * 3


def test_with_no_hand_free_nothing_is_asked(scene: Scene, line: Line) -> None:
    alive(scene)
    workers = Workers()
    dispatching = at_rest(scene, workers)
    workers.free = 0
    queue(scene, 1)
    assert not dispatching.start_all(line)
    assert workers.given == []


def test_what_somebody_is_changing_waits_and_holds_up_nobody(scene: Scene, line: Line) -> None:
    alive(scene)
    dispatching = at_rest(scene, Workers())
    held, other = queue(scene, 2)
    with scene.store.writing() as tx:
        changed = update(entries).where(entries.c.id == held).values(priority=3)
        tx.connection.execute(changed)
        assert dispatching.start_all(line)
    assert [one.entry_id for one in scene.history.executions.all()] == [other]
    assert [one.id for one in scene.history.queue.all()] == [held]


def test_one_that_the_database_refuses_is_left_to_a_cycle(scene: Scene, line: Line) -> None:
    @scene.app.workflow("refused")
    def refused() -> None: ...

    alive(scene, workflows=["work", "refused"])
    workers = Workers(takes=("work", "refused"))
    dispatching = at_rest(scene, workers)
    with scene.store.writing() as tx:
        for statement in REFUSE_ONE["postgresql"]:
            tx.connection.execute(text(statement))
    [bad] = scene.enqueue(NewEntry("refused", Source.AD_HOC, "null"))
    [good] = queue(scene, 1)

    with nothing_changes(scene):
        assert not dispatching.start_all(line)
    result = dispatching.run_once()

    assert result.failed == (bad,)
    assert [one.entry_id for one in scene.history.executions.all() if not one.failure] == [good]
    queue(scene, 1)
    assert dispatching.start_all(line)


def test_whoever_is_listened_to_takes_a_cycle(scene: Scene, line: Line) -> None:
    alive(scene)
    dispatching = at_rest(scene, Workers())
    queue(scene, 1)
    with sent_statements():
        assert not dispatching.start_all(line)
    assert dispatching.start_all(line)


def test_in_virtual_time_everything_takes_a_cycle(postgres_url: str) -> None:
    with Scene(postgres_url) as scene:
        heard = notifications.listen(scene.store, seconds=0.01)
        alive(scene)
        dispatching = at_rest(scene, Workers())
        queue(scene, 1)
        assert not dispatching.start_all(next(heard).line)
        heard.close()


def test_a_session_that_was_ended_is_told_of_and_given_up(scene: Scene) -> None:
    """Whoever listens by it has to do that by another one."""
    alive(scene)
    workers = Workers()
    dispatching = at_rest(scene, workers)
    queue(scene, 1)
    heard = notifications.listen(scene.store, seconds=0.01)
    line = next(heard).line
    end_session(scene, line)

    with pytest.raises(DBAPIError) as raised, nothing_changes(scene):
        dispatching.start_all(line)

    assert raised.value.connection_invalidated
    assert workers.given == [[]], "the slots are free again"
    heard.close()

    heard = notifications.listen(scene.store, seconds=0.01)
    assert dispatching.start_all(next(heard).line)
    heard.close()


def end_session(scene: Scene, line: Line) -> None:
    driver: Any = line.connection.connection.driver_connection
    waiting = {"pid": driver.info.backend_pid, "milliseconds": round(PATIENCE * 1000)}
    with scene.store.writing() as tx:
        ended = text("SELECT pg_terminate_backend(:pid, :milliseconds)")
        assert tx.connection.execute(ended, waiting).scalar_one()


def test_an_entry_that_has_crashed_is_left_to_a_cycle(scene: Scene, line: Line) -> None:
    """Workers claim it by themselves, because it must not start beside other suspects."""
    alive(scene)
    dispatching = at_rest(scene, Workers())
    _, crashed = queue(scene, 2)
    with scene.store.writing() as tx:
        once = update(entries).where(entries.c.id == crashed).values(crashes=1)
        tx.connection.execute(once)

    with nothing_changes(scene):
        assert not dispatching.start_all(line)

    dispatching.run_once()
    assert sorted(states(scene)) == [IN_PROGRESS, PENDING]


# What it goes by


def test_what_it_asks_goes_by_what_came_last(world: World, line: Line) -> None:
    """Manifests take longer to ask for, and nobody asks for them where there are none."""
    workers = Workers(free=9, takes=KNOWN)
    dispatching = at_rest(world.scene, workers)
    world.queue("in an open group")
    assert not dispatching.start_all(line), "nobody expected a manifest"
    assert len(dispatching.run_once().dispatched) == 1
    world.queue("in another open group")
    assert dispatching.start_all(line)
    world.scene.configure(max_active_jobs=None)
    for _ in range(IN_A_ROW):
        world.queue("ad hoc")
        assert dispatching.start_all(line)
        with world.scene.store.writing() as tx:
            ours = execution.c.id.in_([one.id for one in workers.given.pop()])
            tx.connection.execute(delete(execution).where(ours))
    world.queue("in a group with room")
    assert not dispatching.start_all(line)


def test_the_more_often_in_vain_the_more_seldom_it_is_tried(scene: Scene, line: Line) -> None:
    alive(scene)
    workers = Workers()
    dispatching = at_rest(scene, workers)
    scene.enqueue(NewEntry("unheard-of", Source.AD_HOC, "null"))
    tried = []
    for number in range(1000):
        before = workers.reserved
        assert not dispatching.start_all(line)
        if workers.reserved > before:
            tried.append(number)
    assert tried[:5] == [0, 1, 3, 6, 10]
    apart = {later - earlier for earlier, later in pairwise(tried)}
    assert max(apart) <= MOST_PASSED + 1
    with scene.store.writing() as tx:
        tx.connection.execute(delete(entries))
    queue(scene, 1)
    for _ in range(MOST_PASSED + 1):
        if dispatching.start_all(line):
            break
    queue(scene, 1)
    assert dispatching.start_all(line), "once it was not in vain, it is tried at once"


def test_a_group_that_is_full_keeps_its_limit(scene: Scene, line: Line) -> None:
    group = Group("narrow", max_active_jobs=2)
    for number in range(4):
        scene.app.schedule("work", f"load-{number}", None, every(days=9), group=group)
    scene.apply()
    alive(scene, slots=9)
    dispatching = at_rest(scene, Workers(free=9))
    assert [scene.trigger("load-0") is not None, dispatching.start_all(line)] == [True, False]
    dispatching.run_once()
    scene.trigger("load-1")
    assert dispatching.start_all(line)
    scene.trigger("load-2")
    with nothing_changes(scene):
        assert not dispatching.start_all(line)
    with scene.store.reading() as tx:
        assert sum(executions.count_active(tx, ()).by_group.values()) == 2
