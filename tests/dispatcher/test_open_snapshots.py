"""What dispatchers do while somebody's snapshot keeps everything that was dispatched in their way.

A look at the whole queue is dear then, and what it found is remembered for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import psycopg
import pytest
from sqlalchemy import delete, text, update

from headway import Group
from headway.config import Settings
from headway.dispatcher.cycle import JobDispatcher
from headway.domain import front as fronts
from headway.domain.front import Front
from headway.domain.work_queue import NewEntry, Source
from headway.servers.local import LocalServer
from headway.store import executions, work_queue
from headway.store.dispatch_page import read_page
from headway.store.locks import Lock
from headway.store.tables import execution, manifest_group
from tests.builders import Scene
from tests.dispatcher.test_started_at_once import Workers, alive, dispatcher

pytestmark = pytest.mark.postgresql

PAGE = 50
GONE = 20_000


@pytest.fixture
def scene(postgres_url: str) -> Iterator[Scene]:
    with Scene(postgres_url) as scene:
        yield scene


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Every look is dear, and time passes when a test says so."""
    now = [0.0]
    monkeypatch.setattr(fronts, "DEAR", timedelta())
    monkeypatch.setattr(fronts, "WORTH", 1_000_000)
    monkeypatch.setattr("headway.store.dispatch_page.monotonic", lambda: now[0])
    return now


@pytest.fixture
def held(postgres_url: str) -> Iterator[None]:
    """A snapshot that stays open."""
    url = postgres_url.replace("postgresql+psycopg:", "postgresql:")
    with psycopg.connect(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT count(*) FROM headway_manifest")
        yield


def a_dispatcher(scene: Scene, at_once: int = PAGE) -> JobDispatcher:
    settings = Settings(max_active_jobs=at_once)
    return JobDispatcher(scene.store, settings, scene.app.observer, LocalServer(lambda: None))


def jobs(count: int, priority: int = 0, group_id: int | None = None) -> list[NewEntry]:
    one = NewEntry("work", Source.AD_HOC, "null", priority=priority, group_id=group_id)
    return [one] * count


def end_all(scene: Scene) -> None:
    with scene.store.writing() as tx:
        tx.connection.execute(delete(execution))


def leave_dead_rows(scene: Scene) -> None:
    """What was queued, dispatched and ended while the snapshot is open."""
    with scene.store.writing() as tx:
        work_queue.dispatch(tx, work_queue.enqueue(tx, jobs(GONE)))
    end_all(scene)


def dispatched(scene: Scene, dispatcher: JobDispatcher) -> list[int]:
    """The entries one cycle dispatches, whose executions then end."""
    ids = dispatcher.run_once().dispatched
    found = [scene.execution(one).entry_id for one in ids]
    end_all(scene)
    return [one for one in found if one is not None]


def test_cycle_after_cycle_goes_on_in_order_and_leaves_nothing(
    scene: Scene, moment: list[float]
) -> None:
    entries = scene.enqueue(*jobs(6 * PAGE + 7))
    dispatcher = a_dispatcher(scene)
    found = [one for _ in range(7) for one in dispatched(scene, dispatcher)]
    assert found == entries


def test_what_comes_in_ahead_waits_for_the_next_whole_look(
    scene: Scene, moment: list[float]
) -> None:
    entries = scene.enqueue(*jobs(10 * PAGE))
    dispatcher = a_dispatcher(scene)
    dispatched(scene, dispatcher)
    urgent = scene.enqueue(*jobs(1, priority=9))
    assert dispatched(scene, dispatcher) == entries[PAGE : 2 * PAGE]
    moment[0] += fronts.LONGEST.total_seconds()
    assert urgent[0] in dispatched(scene, dispatcher)


def test_a_page_that_is_not_filled_is_looked_for_everywhere(
    scene: Scene, moment: list[float]
) -> None:
    scene.enqueue(*jobs(2 * PAGE))
    dispatcher = a_dispatcher(scene)
    dispatched(scene, dispatcher)
    urgent = scene.enqueue(*jobs(1, priority=9))
    assert urgent[0] in dispatched(scene, dispatcher)


def in_groups(scene: Scene, **caps: int | None) -> dict[str, int]:
    """Groups with so many jobs at once, and their ids."""
    for name, cap in caps.items():
        scene.app.schedule("work", f"one-of-{name}", group=Group(name, max_active_jobs=cap))
    scene.apply()
    return {name: scene.ids_of(f"one-of-{name}")[1] for name in caps}


def test_caps_are_kept_and_what_they_leave_free_is_used(scene: Scene, moment: list[float]) -> None:
    ids = in_groups(scene, narrow=3, wide=None)
    narrow = scene.enqueue(*jobs(PAGE, group_id=ids["narrow"]))
    scene.enqueue(*jobs(10 * PAGE, group_id=ids["wide"]))
    dispatcher = a_dispatcher(scene)
    for cycle in range(4):
        ended = dispatched(scene, dispatcher)
        assert [one for one in ended if one in narrow] == narrow[3 * cycle : 3 * cycle + 3]
        assert len(ended) == PAGE
    kept = dispatcher.run_once().dispatched
    again = dispatcher.run_once().dispatched
    assert len(kept) == PAGE and not again


def test_a_group_that_has_become_full_meanwhile_hides_no_other(
    scene: Scene, moment: list[float]
) -> None:
    """However much of it waits, and though a page is no longer than what the workers can take."""
    scene.configure(max_active_jobs=None)
    alive(scene, slots=2 * PAGE)
    ids = in_groups(scene, narrow=PAGE, wide=None)
    narrow = scene.enqueue(*jobs(3 * PAGE, priority=9, group_id=ids["narrow"]))
    wide = scene.enqueue(*jobs(3 * PAGE, group_id=ids["wide"]))
    workers = Workers(free=PAGE)
    cycles = dispatcher(scene, workers)
    first = cycles.run_once().dispatched
    assert [scene.execution(one).entry_id for one in first] == narrow[:PAGE]
    workers.free = 2

    then = cycles.run_once().dispatched

    assert [scene.execution(one).entry_id for one in then] == wide[:2]


def test_a_group_that_is_disabled_meanwhile_is_left_alone(
    scene: Scene, moment: list[float]
) -> None:
    ids = in_groups(scene, off=None, on=None)
    of_both = [scene.enqueue(*jobs(5 * PAGE, group_id=one)) for one in ids.values()]
    dispatcher = a_dispatcher(scene)
    assert set(dispatched(scene, dispatcher)) <= set(of_both[0])
    with scene.store.writing() as tx:
        shut = update(manifest_group).where(manifest_group.c.id == ids["off"])
        tx.connection.execute(shut.values(enabled=False))
    assert dispatched(scene, dispatcher) == of_both[1][:PAGE]


def test_what_falls_due_meanwhile_is_not_overlooked(scene: Scene, moment: list[float]) -> None:
    scene.enqueue(*jobs(10 * PAGE))
    due_at = scene.clock.now + timedelta(minutes=1)
    urgent = jobs(1, priority=9)[0]._replace(scheduled_at=due_at)
    [delayed] = scene.enqueue(urgent)
    dispatcher = a_dispatcher(scene)
    assert delayed not in dispatched(scene, dispatcher)
    scene.clock.advance(minutes=1)
    assert delayed in dispatched(scene, dispatcher)


def blocks_of(scene: Scene, *tables: str) -> Callable[[], int]:
    """How many blocks of the live tables, or of these, will have been read since now."""
    names = tables or ("headway_work_queue", "headway_execution")
    counted = text(
        "SELECT sum(heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read)::bigint"
        " FROM pg_statio_user_tables WHERE schemaname = current_schema()"
        " AND relname = ANY (:names)"
    )

    def count() -> int:
        with scene.store.writing() as tx:
            tx.connection.execute(text("SELECT pg_stat_force_next_flush()"))
        with scene.store.writing() as tx:
            return int(tx.connection.execute(counted, {"names": list(names)}).scalar_one())

    before = count()
    return lambda: count() - before


def test_what_was_dispatched_while_a_snapshot_is_open_is_passed_once(
    scene: Scene, held: None, moment: list[float]
) -> None:
    leave_dead_rows(scene)
    scene.enqueue(*jobs(10 * PAGE))
    front, settings = Front(), Settings(max_active_jobs=PAGE)

    def look() -> int:
        read = blocks_of(scene)
        with scene.store.leading(Lock.DISPATCH) as tx:
            assert tx is not None
            assert read_page(tx, settings, None, (), front=front).full
            executions.count_active(tx, (), front.live_from)
        return read()

    scene.pending("work")
    whole = look()
    with scene.store.reading() as tx:
        front.count_from(executions.count_active(tx, ()).oldest)
    onward = look()
    assert onward < whole / 5


def test_whoever_begins_beside_an_open_snapshot_passes_what_is_gone_less_often(
    scene: Scene, held: None, moment: list[float]
) -> None:
    leave_dead_rows(scene)
    entries = scene.enqueue(*jobs(10 * PAGE))
    settings = Settings(max_active_jobs=PAGE)

    def first_look(front: Front | None) -> tuple[int, list[int]]:
        read = blocks_of(scene)
        with scene.store.leading(Lock.DISPATCH) as tx:
            assert tx is not None
            page = read_page(tx, settings, None, (), front=front)
            assert executions.count_active(tx, (), page.live_from).total == 0
        return read(), [one.id for one in page.entries]

    plain, found = first_look(None)
    ahead, found_ahead = first_look(Front())
    assert found_ahead == found == entries[: len(found)]
    assert ahead < 0.7 * plain


def test_what_starts_where_nothing_lived_is_counted_in_the_next_cycle(
    scene: Scene, moment: list[float]
) -> None:
    scene.enqueue(*jobs(10 * PAGE))
    dispatcher = a_dispatcher(scene)
    assert len(dispatcher.run_once().dispatched) == PAGE
    assert dispatcher.run_once().dispatched == ()


def test_what_others_start_where_nothing_lived_is_counted_too(
    scene: Scene, moment: list[float]
) -> None:
    scene.enqueue(*jobs(10 * PAGE))
    looking, other = a_dispatcher(scene), a_dispatcher(scene)
    dispatched(scene, looking)
    assert len(other.run_once().dispatched) == PAGE
    assert looking.run_once().dispatched == ()


def test_the_last_of_a_queue_is_not_looked_for_again_where_nothing_else_stands(
    scene: Scene, held: None, moment: list[float]
) -> None:
    leave_dead_rows(scene)
    entries = scene.enqueue(*jobs(PAGE // 2))
    settings = Settings(max_active_jobs=PAGE)

    def whole_look() -> tuple[int, list[int]]:
        read = blocks_of(scene)
        with scene.store.leading(Lock.DISPATCH) as tx:
            assert tx is not None
            page = read_page(tx, settings, None, (), front=Front())
            assert not page.full
        return read(), [one.id for one in page.entries]

    plain, found = whole_look()
    assert found == entries
    other = scene.enqueue(*jobs(1, priority=3))
    with_another_lane, found = whole_look()
    assert found == other + entries
    assert plain < 0.8 * with_another_lane


def test_the_last_of_several_lanes_and_capped_groups_are_all_found(
    scene: Scene, moment: list[float]
) -> None:
    ids = in_groups(scene, narrow=3, wide=None)
    high = scene.enqueue(*jobs(4, priority=5))
    low = scene.enqueue(*jobs(4))
    narrow = scene.enqueue(*jobs(5, group_id=ids["narrow"]))
    wide = scene.enqueue(*jobs(4, group_id=ids["wide"]))
    assert set(dispatched(scene, a_dispatcher(scene))) == {*high, *low, *narrow[:3], *wide}
