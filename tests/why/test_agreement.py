"""What ``why`` says is what manager and dispatcher then do, whatever people and runs have done.

Before each cycle every manifest and every entry is asked about; what all gates let pass, and
nothing else, has to be queued or dispatched by the cycle that follows.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, update

from headway.definition.explaining import Explaining
from headway.dispatcher.cycle import JobDispatcher
from headway.domain.admission import Verdict as Admitted
from headway.domain.execution import ExecutionState
from headway.domain.gates import GateName, Stage, Why
from headway.errors import DefinitionError
from headway.manager.decide import Verdict
from headway.servers.local import LocalServer
from headway.store import leases
from headway.store.servers import ServerProcess
from headway.store.tables import manifest, manifest_state
from tests.builders import Scene
from tests.manager.test_oracle import (
    GROUPS,
    NAMES,
    Action,
    World,
    a_manifest,
    actions,
    declarations,
)
from tests.why.test_gates import the_gate

pytestmark = pytest.mark.long

LIVE = (ExecutionState.PENDING, ExecutionState.IN_PROGRESS)
FOR_EVER = timedelta(days=1000)
BOSS = ServerProcess("boss", "host", 1, ["manager", "dispatcher"], [], 0)


class Limits(NamedTuple):
    """How many may be queued in a cycle, be active in all, and be active in each group."""

    queued: int | None
    active: int | None
    caps: tuple[int | None, ...]


class ExplainedWorld(World):
    """A world in which every cycle is foretold."""

    def __init__(self, scene: Scene, wanted: Any, limits: Limits, *, living: bool) -> None:
        self.limits, self.living = limits, living
        super().__init__(scene, wanted, limits.queued)
        with scene.store.writing() as tx:
            leases.register(tx, BOSS, FOR_EVER)

    def deploy(self) -> None:
        super().deploy()
        app = self.scene.app
        app.settings = app.settings.model_copy(update={"max_active_jobs": self.limits.active})
        for number, cap in enumerate(self.limits.caps):
            self.runtime.set_group(f"group-{number}", max_active_jobs=cap)

    def why(self, external_id: str | None = None, **about: int) -> Why:
        app = self.scene.app
        explaining = Explaining(
            self.scene.store, app.settings, app.task_servers, to_own_workers=self.living
        )
        return explaining.why(external_id, **about)

    def do(self, action: Action) -> None:
        name, argument = action
        own: dict[str, Callable[[Any], None]] = {
            "dispatch": self.dispatch,
            "enqueue": self.enqueue,
            "worker": self.worker,
            "sleep": self.sleep,
        }
        if name in own:
            own[name](argument)
        else:
            super().do(action)

    def enqueue(self, _: object = None) -> None:
        self.runtime.enqueue("act")

    def sleep(self, external_id: str) -> None:
        """Somebody moves the time at which the manager looks at a manifest again."""
        with self.scene.store.writing() as tx:
            of_it = manifest_state.c.manifest_id.in_(
                select(manifest.c.id).where(manifest.c.external_id == external_id)
            )
            later = tx.now + timedelta(minutes=90)
            tx.connection.execute(update(manifest_state).where(of_it).values(wake_at=later))

    def worker(self, wanted: tuple[str, int] | None) -> None:
        """One worker that knows this workflow, in the place of the one before; or none."""
        with self.scene.store.writing() as tx:
            leases.leave(tx, "worker")
            if wanted is not None:
                workflow, slots = wanted
                process = ServerProcess("worker", "host", 2, ["worker"], [workflow], slots)
                leases.register(tx, process, FOR_EVER)

    def cycle(self) -> None:
        self.manage()
        self.dispatch()
        self.scene.run()

    def manage(self) -> None:
        declared = [one.external_id for one in self.scene.history.manifests.all()]
        said = {name: self.why(name) for name in declared}
        before, running = self._queued(), self._running()

        result = self.manager.run_once()

        given_up = {name for key, name in running.items() if key not in self._running()}
        put_off = {one.view.external_id for one in result.decisions if one.verdict is Verdict.DEFER}
        queued = {name for key, name in self._queued().items() if key not in before}
        for name in declared:
            if name in given_up:
                continue  # then it is not what it was when it was asked about
            waits = [gate.name for gate in said[name].waits_for if gate.stage is Stage.QUEUE]
            if waits == [GateName.SHARE]:
                in_turn = "in turn" in the_gate(said[name], GateName.SHARE).sentence
                assert name in put_off or (name in queued and (in_turn or given_up)), said[name]
            else:
                expected = name in queued or (bool(given_up) and name in put_off)
                assert said[name].passes(Stage.QUEUE) is expected, (name, said[name])

    def dispatch(self, _: object = None) -> None:
        said = {key: self.why(entry=key) for key in self._queued()}
        dispatcher = JobDispatcher(
            self.scene.store,
            self.scene.app.settings,
            self.scene.app.observer,
            LocalServer(lambda: None),
            to_own_workers=self.living,
        )

        result = dispatcher.run_once()

        dispatched = {one.entry.id for one in result.admissions if one.verdict is Admitted.DISPATCH}
        for key, answer in said.items():
            assert answer.passes(Stage.DISPATCH) is (key in dispatched), (key, answer)
            if [gate.name for gate in answer.waits_for] == [GateName.TURN]:
                assert dispatched, f"nobody went ahead of entry {key}"

    def _queued(self) -> dict[int, str | None]:
        return {one.id: one.external_id for one in self.scene.history.queue.all()}

    def _running(self) -> dict[int, str | None]:
        return {one.id: one.external_id for one in self.scene.history.executions.all(states=LIVE)}


more_actions: st.SearchStrategy[Action] = st.one_of(
    actions,
    st.tuples(st.sampled_from(["dispatch", "enqueue"]), st.none()),
    st.tuples(st.sampled_from(["trigger", "sleep"]), a_manifest),
    st.tuples(
        st.just("worker"),
        st.sampled_from([None, ("act", 1), ("act", 9), ("act", 9), ("another", 5)]),
    ),
)
limits = st.builds(
    Limits,
    st.sampled_from([None, None, 2]),
    st.sampled_from([None, 9, 2]),
    st.tuples(*[st.sampled_from([None, 1, 2])] * GROUPS),
)


@pytest.mark.timeout(600)
@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    wanted=declarations,
    limits=limits,
    living=st.booleans(),
    overlapping=st.sets(a_manifest),
    broken=st.sets(a_manifest),
    lived=st.lists(more_actions, min_size=5, max_size=15),
)
def test_what_passes_every_gate_is_queued_and_dispatched_and_nothing_else(
    scene: Scene,
    wanted: tuple[dict[str, Any], ...],
    limits: Limits,
    living: bool,
    overlapping: set[str],
    broken: set[str],
    lived: list[Action],
) -> None:
    declared = [
        {**one, "allow_overlap": NAMES[number] in overlapping} for number, one in enumerate(wanted)
    ]
    try:
        world = ExplainedWorld(scene, tuple(declared), limits, living=living)
    except DefinitionError:
        return  # declared nonsense: not about why
    world.worker(("act", 9))
    world.scene.failing |= broken
    for action in lived:
        world.do(action)
        world.manage()
        world.dispatch()
