"""A caller's transaction that stays open holds up no cycle, and a start only if it says so.

On PostgreSQL: SQLite has one writer at a time, and there everybody waits.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import OperationalError

from headway import Headway, Item, every, once
from headway.applying import apply_declarations
from headway.definition.runtime import Runtime
from headway.errors import CircularDependencyError, DatabaseUnavailable, StepFailed
from headway.store.declarations import Applied
from headway.store.tables import manifest, work_queue
from tests.builders import Recorder, Scene, eventually, names
from tests.runtime_verbs import HOURLY, VERBS, picture, runtime_of, set_the_scene
from tests.store.factories import at_once, rows_of

MINUTELY = every(minutes=1)
CYCLES = (1, 2, 3)


@pytest.fixture
def scene(postgres_url: str) -> Iterator[Scene]:
    with Scene(postgres_url) as scene:
        set_the_scene(scene)
        for minute in CYCLES:
            at = once(scene.clock.now + timedelta(minutes=minute))
            runtime_of(scene).schedule_once("work", f"due-{minute}", None, at)
        yield scene


@pytest.fixture
def runtime(scene: Scene) -> Runtime:
    return runtime_of(scene)


@pytest.fixture
def callers(scene: Scene) -> Iterator[Engine]:
    engine = create_engine(scene.store.url, pool_size=20)
    yield engine
    engine.dispose()


# Cycles. Each runs under its own lock_timeout and statement_timeout (Store.leading): one that had
# to wait for the caller would fail, as the last test of this part shows.


@pytest.mark.parametrize("name", VERBS)
def test_no_cycle_waits_for_a_verb_in_an_open_transaction(
    scene: Scene, runtime: Runtime, callers: Engine, name: str
) -> None:
    verb, before = VERBS[name], picture(scene)
    with callers.begin() as connection:
        verb.call(runtime, connection)
        for minute in CYCLES:
            scene.clock.advance(minutes=1)
            managed, dispatched = scene.manage(), scene.dispatch()
            assert managed.led and dispatched.led
            assert f"due-{minute}" in names(scene.claim()), "others go on as ever"
    kept = {one for one in verb.added if not one.startswith("queued")}
    assert kept <= (picture(scene) - before).keys()


def test_every_manifest_at_hand_is_decided_upon_beside_an_open_transaction(
    scene: Scene, runtime: Runtime, callers: Engine
) -> None:
    with callers.connect() as connection:
        for verb in VERBS.values():
            with connection.begin_nested() as savepoint:
                verb.call(runtime, connection)
                savepoint.rollback()
        VERBS["disable"].call(runtime, connection)
        managed = scene.manage()
        connection.rollback()
    looked_at = {one.view.external_id for one in managed.decisions}
    assert looked_at >= {"extract", "load", "report", "old-1", "old-2", "due-1"}


@pytest.mark.full
def test_a_cycle_that_has_to_wait_fails(scene: Scene, callers: Engine) -> None:
    with callers.begin() as connection:
        connection.execute(text(f"LOCK TABLE {work_queue} IN EXCLUSIVE MODE"))
        with pytest.raises(StepFailed) as failed:
            scene.manage()
    assert isinstance(failed.value.__cause__, OperationalError)


# Starts


def deployment(scene: Scene, *more: str, **settings: Any) -> Headway:
    """The application again, as a new process declares it, with *more* dependents of extract."""
    app = Headway("tests", database_url=scene.url, **settings)
    app.workflow("work")(scene._work)
    chain = app.schedule("work", "extract", None, HOURLY, group="loads")
    chain.include("work", "load", group="loads")
    app.schedule("work", "report", group="reports")
    app.schedule("work", "resting", enabled=False)
    for name in more:
        chain.include("work", name, group="loads")
    return app


@pytest.mark.parametrize("name", VERBS)
def test_a_restart_with_the_same_code_waits_for_nobody(
    scene: Scene, runtime: Runtime, callers: Engine, name: str
) -> None:
    with callers.begin() as connection:
        VERBS[name].call(runtime, connection)
        applied = apply_declarations(deployment(scene, seeding_attempts=1), scene.store)
    assert applied == Applied(unchanged=4)


@pytest.mark.parametrize(
    "name", [name for name in VERBS if "dependent" not in name and "changing" not in name]
)
def test_a_new_deployment_waits_only_for_changes_of_dependents(
    scene: Scene, runtime: Runtime, callers: Engine, name: str
) -> None:
    app = deployment(scene, seeding_attempts=1)
    app.schedule("work", "more", None, HOURLY)
    with callers.begin() as connection:
        VERBS[name].call(runtime, connection)
        applied = apply_declarations(app, scene.store)
    assert applied == Applied(created=1, unchanged=4)


@pytest.mark.parametrize(
    "name", [name for name in VERBS if "dependent" in name or "changing" in name]
)
def test_a_start_that_has_to_wait_says_so(
    scene: Scene, runtime: Runtime, callers: Engine, name: str
) -> None:
    app = deployment(scene, "more", seeding_attempts=1)
    events = Recorder(app.observer)
    with callers.begin() as connection:
        VERBS[name].call(runtime, connection)
        with pytest.raises(DatabaseUnavailable, match="a transaction is open"):
            apply_declarations(app, scene.store)
    assert len(events.named("declaration.waiting", application="tests")) == 1
    if "changing" not in name:
        assert apply_declarations(app, scene.store) == Applied(created=1, unchanged=4)


def test_a_start_that_changes_the_same_manifest_says_so_too(
    scene: Scene, runtime: Runtime, callers: Engine
) -> None:
    app = deployment(scene, seeding_attempts=1)
    app.schedule("work", "own", None, HOURLY, group="reports")
    apply_declarations(app, scene.store)
    changed = deployment(scene, seeding_attempts=1)
    changed.schedule("work", "own", None, MINUTELY, group="reports")
    events = Recorder(changed.observer)
    with callers.begin() as connection:
        runtime.disable("own", connection=connection)
        with pytest.raises(DatabaseUnavailable, match="the same manifests"):
            apply_declarations(changed, scene.store)
    assert len(events.named("declaration.waiting", application="tests")) == 1
    assert apply_declarations(changed, scene.store) == Applied(changed=1, unchanged=4)


# Two who declare at the same time


def waiting(scene: Scene) -> bool:
    """Whether a connection to this schema waits for a lock."""
    with scene.store.reading() as tx:
        asked = text(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            " AND datname = current_database()"
        )
        return bool(tx.connection.execute(asked).scalar_one())


def beside_an_open(
    scene: Scene, callers: Engine, first: Callable[[Any], Any], second: Callable[[], Any]
) -> Any:
    """What *second* does once the transaction of *first* has ended, for which it waited."""
    with ThreadPoolExecutor(1) as pool:
        with callers.begin() as connection:
            first(connection)
            other = pool.submit(second)
            eventually(lambda: waiting(scene))
        return other.result(30)


def test_two_cannot_close_a_circle_together(
    scene: Scene, runtime: Runtime, callers: Engine
) -> None:
    for name in ("a", "b"):
        runtime.schedule("work", name, None, HOURLY, group="loads")
    after = partial(runtime.schedule_dependent, "work", group="loads", input=None)
    with pytest.raises(CircularDependencyError, match=r"\[a, b\]"):
        beside_an_open(
            scene,
            callers,
            lambda own: after(external_id="a", depends_on="b", connection=own),
            lambda: after(external_id="b", depends_on="a"),
        )


def test_two_cannot_close_a_circle_of_groups_together(
    scene: Scene, runtime: Runtime, callers: Engine
) -> None:
    for name in ("a", "b", "c"):
        runtime.schedule("work", name, None, HOURLY, group=f"group-{name}")
    runtime.schedule_dependent("work", "d", None, "a", group="group-d")
    with pytest.raises(CircularDependencyError, match=r"\[group-a, group-d\]"):
        beside_an_open(
            scene,
            callers,
            lambda own: runtime.schedule_dependent(
                "work", "c", None, "b", group="group-a", connection=own
            ),
            lambda: runtime.schedule("work", "b", None, HOURLY, group="group-d"),
        )


@pytest.mark.parametrize("joined", [True, False])
def test_two_may_create_the_same_manifest(
    scene: Scene, runtime: Runtime, callers: Engine, joined: bool
) -> None:
    def second() -> None:
        with callers.begin() as own:
            given = own if joined else None
            runtime.schedule("work", "new", None, MINUTELY, connection=given)

    beside_an_open(
        scene,
        callers,
        lambda own: runtime.schedule("work", "new", None, HOURLY, connection=own),
        second,
    )
    [new] = [row for row in rows_of(scene.store, manifest) if row["external_id"] == "new"]
    assert new["interval_seconds"] == 60, "the later wins"


def test_many_who_write_the_same_batch_in_other_orders_do_not_deadlock(
    scene: Scene, runtime: Runtime, callers: Engine
) -> None:
    shuffled = random.Random(7)

    def write(name: str, turn: int) -> None:
        items = [Item(number, priority=turn) for number in shuffled.sample(range(300), 300)]
        with callers.begin() as own:
            given = None if turn % 2 else own
            # Of a group that exists: a new one would make them wait for one another at once.
            runtime.schedule_many("work", name, items, HOURLY, group="loads", connection=given)

    for name in ("one", "two", "three"):
        at_once(*(partial(write, name, turn) for turn in range(4)))
        rows = [row for row in rows_of(scene.store, manifest) if row["batch"] == name]
        assert len(rows) == 300
        assert len({row["priority"] for row in rows}) == 1, "each batch as a whole"
