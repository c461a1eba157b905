"""Looking only at manifests whose time has come decides what looking at all of them would.

Whatever people and runs do, in any order: before each cycle of the manager the same steps are gone
through for every manifest there is, in a transaction that is rolled back; the cycle itself, which
sees only what ``wake_at`` and the inbox lead it to, must then queue exactly the same.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, select

from headway import Item, Run, cron, every, exclude, once
from headway.definition.runtime import Runtime
from headway.domain.execution import ExecutionState, Failure, Outcome
from headway.domain.schedule import Schedule
from headway.errors import DefinitionError, HeadwayError
from headway.manager.cycle import MANIFEST_MANAGER, ManifestManager
from headway.manager.state import ManagerEnv, ManagerState
from headway.store import executions, manifests, outcomes
from headway.store.tables import manifest, schema, schema_version, work_queue
from headway.store.transaction import Transaction
from tests.builders import OWNER, START, Scene

pytestmark = pytest.mark.long

MANIFESTS = 6
GROUPS = 3
NAMES = [f"load-{number}" for number in range(MANIFESTS)]

Entry = tuple[Any, ...]
Action = tuple[str, Any]

schedules: st.SearchStrategy[Schedule | None] = st.sampled_from(
    [
        every(minutes=5),
        every(minutes=7, fixed_rate=True),
        every(hours=1),
        cron("*/10 * * * *"),
        cron("0 9 * * *", tz="Europe/Berlin"),
        once(at=START + timedelta(minutes=20)),
        None,
    ]
)
time_options = st.fixed_dictionaries(
    {},
    optional={
        "misfire": st.sampled_from(["fire_once_now", "do_nothing", "catch_up"]),
        "first_run": st.sampled_from(["at_once", "at_first_occurrence"]),
    },
)
spread_options = st.fixed_dictionaries(
    {},
    optional={
        "variance": st.just(timedelta(minutes=3)),
        "exclude": st.sampled_from(
            [
                [exclude.window("12:10", "12:40")],
                [exclude.window("12:30", "13:00", then="defer")],
                [exclude.weekends()],
            ]
        ),
    },
)


@st.composite
def declared(draw: st.DrawFn, number: int) -> dict[str, Any]:
    """What code says about one manifest: by time, or after some of those before it."""
    common = {
        "max_retries": draw(st.integers(1, 2)),
        "enabled": draw(st.sampled_from([True, True, True, False])),
    }
    parents = draw(st.sets(st.sampled_from(NAMES[:number]), max_size=2)) if number else set()
    if parents:
        dormant = draw(st.booleans()) and len(parents) == 1
        more: dict[str, Any] = {"dormant": True} if dormant else {}
        if not dormant and len(parents) > 1:
            more["join"] = draw(st.sampled_from(["all", "any"]))
        return common | more | {"parents": sorted(parents)}
    schedule = draw(schedules)
    options: dict[str, Any] = {}
    if schedule is not None:
        options |= draw(time_options)
        if schedule.kind != "once":
            options |= draw(spread_options)
    return common | options | {"schedule": schedule}


declarations = st.tuples(*(declared(number) for number in range(MANIFESTS)))
redeclared = st.integers(0, MANIFESTS - 1).flatmap(
    lambda number: st.tuples(st.just(number), declared(number))
)
a_manifest = st.sampled_from(NAMES)
minutes = st.sampled_from([1, 4, 5, 9, 15, 30, 61, 600])
actions: st.SearchStrategy[Action] = st.one_of(
    st.tuples(st.just("cycle"), st.none()),
    st.tuples(st.just("advance"), minutes),
    st.tuples(
        st.sampled_from(["manage", "dispatch", "run", "claim", "acknowledge", "requeue"]), st.none()
    ),
    st.tuples(st.just("finish"), st.sampled_from(["completed", "failed", "cancelled"])),
    st.tuples(st.sampled_from(["break or mend", "switch", "unschedule"]), a_manifest),
    st.tuples(st.sampled_from(["trigger", "trigger later", "activate"]), a_manifest),
    st.tuples(st.just("switch group"), st.integers(0, GROUPS - 1)),
    st.tuples(st.just("off for"), st.tuples(a_manifest, minutes)),
    st.tuples(st.just("group off for"), st.tuples(st.integers(0, GROUPS - 1), minutes)),
    st.tuples(st.just("fail until resolved"), st.tuples(a_manifest, st.booleans())),
    st.tuples(st.just("redeclare"), redeclared),
)


class World:
    """One application whose manifests live through some actions, on an emptied store."""

    def __init__(self, scene: Scene, wanted: tuple[dict[str, Any], ...], limit: int | None) -> None:
        self.scene = scene
        _empty(scene)
        scene.clock.now = START
        scene.failing = set()
        self.limit = limit
        self.wanted = list(wanted)
        self.activating: set[str] = set()
        self.switched_off: set[str] = set()
        self.deploy()

    def deploy(self) -> None:
        """A new deployment of everything in ``wanted``."""
        app = self.scene.new_app(
            max_work_queue_entries_per_cycle=self.limit, default_retry_delay="2m"
        )
        app.workflow("act")(self._act)
        chain = app.schedule("act", "root")
        for number, one in enumerate(self.wanted):
            options = dict(one)
            # Of two neighbours, so that no circle of groups can come about.
            group = f"group-{number // 2}"
            if parents := options.pop("parents", None):
                item = Item(number, None, depends_on=parents)
                chain.include_many("act", "load", [item], group=group, **options)
            else:
                schedule = options.pop("schedule")
                app.schedule("act", NAMES[number], None, schedule, group=group, **options)
        self.scene.apply()
        self.manager = ManifestManager(self.scene.store, app.settings, app.observer)
        self.runtime = Runtime(app.name, app.registry, self.scene.store)

    def _act(self, run: Run) -> None:
        if run.manifest in self.scene.failing:
            raise RuntimeError("told to fail")
        for name in sorted(self.activating):
            with suppress(HeadwayError):
                run.activate(name, None)

    def do(self, action: Action) -> None:
        name, argument = action
        VERBS[name](self, argument)

    def manage(self) -> None:
        """One cycle, compared with what the same steps say about all manifests."""
        expected, before = self._decided_for_all(), self._entries()
        self.manager.run_once()
        assert self._entries() - before == expected - before

    def cycle(self) -> None:
        self.manage()
        self.scene.dispatch()
        self.scene.run()

    def _decided_for_all(self) -> set[Entry]:
        with self.scene.store.writing() as tx:
            ids = list(tx.connection.execute(select(manifest.c.id)).scalars())
            views = {view.manifest_id: view for view in manifests.load_views(tx, ids)}
            after = self.manager._last_served
            env = ManagerEnv(tx, self.scene.app.settings, chunk=1000, last_served=after)
            state = ManagerState(views=views, candidates=tuple(ids))
            for step in MANIFEST_MANAGER.steps[1:]:
                state = step.function(state, env)
            entries = _entries_in(tx)
            tx.connection.rollback()
        return entries

    def _entries(self) -> set[Entry]:
        with self.scene.store.reading() as tx:
            return _entries_in(tx)

    def finish(self, how: str) -> None:
        """What was claimed and did not move ends now."""
        state = ExecutionState(how)
        failure = Failure("act", "RuntimeError", "late") if how == "failed" else None
        with self.scene.store.writing() as tx:
            owned = [run.execution_id for run in executions.owned_by_any(tx, [OWNER])]
            outcomes.finish(tx, OWNER, dict.fromkeys(owned, Outcome(state, failure)))

    def redeclare(self, change: tuple[int, dict[str, Any]]) -> None:
        number, one = change
        before, self.wanted[number] = self.wanted[number], one
        try:
            self.deploy()
        except DefinitionError:  # a schedule that could never run, for example
            self.wanted[number] = before
            self.deploy()

    def switch(self, name: str) -> None:
        """Off, and the next time on again, whatever the code says."""
        self.switched_off ^= {name}
        verb = self.runtime.disable if name in self.switched_off else self.runtime.enable
        self.quietly(verb, name)

    def switch_group(self, number: int) -> None:
        name = f"group-{number}"
        self.switched_off ^= {name}
        self.quietly(self.runtime.set_group, name, enabled=name not in self.switched_off)

    def off_for(self, switch: Callable[[Any], None], subject: Any, minutes: int) -> None:
        switch(subject)
        self.manage()
        self.scene.clock.advance(minutes=minutes)
        self.manage()
        switch(subject)

    def fail_until_resolved(self, name: str, again: bool) -> None:
        """It gets a dead letter, if it runs at all, and time passes before somebody looks."""
        self.scene.failing.add(name)
        for _ in range(3):
            self.cycle()
            self.scene.clock.advance(minutes=5)
        self.manage()
        self.scene.failing.discard(name)
        letters = self.runtime.dead_letters
        letters.requeue_all() if again else letters.acknowledge_all()

    def quietly(self, verb: Callable[..., Any], name: str, **options: Any) -> None:
        """What was unscheduled can be neither triggered nor switched."""
        with suppress(HeadwayError):
            verb(name, **options)


VERBS: dict[str, Callable[[World, Any], object]] = {
    "manage": lambda world, _: world.manage(),
    "dispatch": lambda world, _: world.scene.dispatch(),
    "run": lambda world, _: world.scene.run(),
    "cycle": lambda world, _: world.cycle(),
    "claim": lambda world, _: world.scene.claim(limit=2),
    "finish": World.finish,
    "advance": lambda world, minutes: world.scene.clock.advance(minutes=minutes),
    "break or mend": lambda world, name: world.scene.failing.symmetric_difference_update({name}),
    "switch": World.switch,
    "switch group": World.switch_group,
    "unschedule": lambda world, name: world.quietly(world.runtime.unschedule, name),
    "trigger": lambda world, name: world.quietly(world.runtime.trigger, name),
    "trigger later": lambda world, name: world.quietly(
        world.runtime.trigger, name, delay=timedelta(minutes=10)
    ),
    "activate": lambda world, name: world.activating.symmetric_difference_update({name}),
    "acknowledge": lambda world, _: world.runtime.dead_letters.acknowledge_all(),
    "requeue": lambda world, _: world.runtime.dead_letters.requeue_all(),
    "redeclare": World.redeclare,
    "off for": lambda world, what: world.off_for(world.switch, *what),
    "group off for": lambda world, what: world.off_for(world.switch_group, *what),
    "fail until resolved": lambda world, what: world.fail_until_resolved(*what),
}


def _entries_in(tx: Transaction) -> set[Entry]:
    columns = ("manifest_id", "source", "priority", "scheduled_at", "scheduled_for", "attempts")
    statement = select(*(work_queue.c[name] for name in columns), work_queue.c.parents_seen).where(
        work_queue.c.source.in_(["schedule", "dependent"]), work_queue.c.status == "queued"
    )
    return {tuple(row) for row in tx.connection.execute(statement)}


def _empty(scene: Scene) -> None:
    with scene.store.writing() as tx:
        for table in reversed(schema.sorted_tables):
            if table is not schema_version:
                tx.connection.execute(delete(table))


@pytest.mark.timeout(300)
@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    wanted=declarations,
    limit=st.sampled_from([None, None, 2]),
    broken=st.sets(a_manifest),
    lived=st.lists(actions, min_size=5, max_size=25),
)
def test_the_indexed_path_queues_what_a_look_at_everything_would(
    scene: Scene,
    wanted: tuple[dict[str, Any], ...],
    limit: int | None,
    broken: set[str],
    lived: list[Action],
) -> None:
    try:
        world = World(scene, wanted, limit)
    except DefinitionError:
        return  # declared nonsense: not about the manager
    world.scene.failing |= broken
    for action in lived:
        world.do(action)
        world.manage()
