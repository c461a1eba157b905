"""Why a task server does not take a job is on record, for every process to read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from headway import every
from headway.definition.explaining import Explaining
from headway.definition.task_servers import TaskServers
from headway.dispatcher.cycle import JobDispatcher
from headway.domain.execution import ExecutionState, FailureCode
from headway.domain.gates import GateName, Why
from headway.history import History
from headway.relay import Relay
from headway.servers.local import LocalServer
from headway.store import leases
from headway.store.engine import Store
from headway.store.servers import ServerProcess
from tests.builders import Scene

NO_ROUTE = "ConnectionError('no route to the machine')"


class Broken:
    """A task server that takes nothing while it is broken."""

    def __init__(self) -> None:
        self.broken = True

    def submit(self, execution_ids: Sequence[int]) -> None:
        if self.broken:
            raise ConnectionError("no route to the machine")


class Away:
    """A task server told through the outbox, which does not answer while it is away."""

    def __init__(self) -> None:
        self.away = True

    def publish(self, execution_id: int) -> None:
        self.reach()

    def reach(self) -> None:
        if self.away:
            raise ConnectionRefusedError("broker:5672")


def dispatch(scene: Scene) -> None:
    JobDispatcher(
        scene.store,
        scene.app.settings,
        scene.app.observer,
        LocalServer(lambda: None),
        to_own_workers=True,
        task_servers=scene.app.task_servers,
    ).run_once()


def declared(scene: Scene) -> None:
    scene.app.schedule("work", "load", None, every(hours=1), group="etl")
    scene.apply()
    scene.manage()
    process = ServerProcess("boss", "host", 1, ["manager", "dispatcher"], (), 0)
    with scene.store.writing() as tx:
        leases.register(tx, process, timedelta(days=1))


def elsewhere(scene: Scene, **about: int) -> Why:
    """What another process of the same application answers, which has asked no task server."""
    servers = TaskServers(scene.app.registry)
    for name in (*scene.app.task_servers.relayed, *scene.app.task_servers._servers):
        servers.add(name, Away() if name == "celery" else Broken(), workflows=["work"])
    store = Store(scene.url, clock=scene.clock, durable=False)
    try:
        explaining = Explaining(store, scene.app.settings, servers)
        return explaining.why(None if about else "load", **about)
    finally:
        store.close()


def test_the_reason_of_a_refused_hand_over_is_told_by_why(scene: Scene) -> None:
    scene.app.task_servers.add("gpu", Broken(), workflows=["work"])
    declared(scene)
    dispatch(scene)

    answer = elsewhere(scene)

    refused = f"task server 'gpu' refused it once, with: {NO_ROUTE}"
    assert str(answer) == (
        f"load does not run because {refused}; it waits until 2030-01-07 12:00:05 UTC; it can then"
    )
    [gate] = [one for one in answer.waits_for if one.name is GateName.DELAY_OVER]
    assert gate.at == scene.clock() + timedelta(seconds=5)


def test_after_several_refusals_the_last_reason_is_told_with_their_number(scene: Scene) -> None:
    scene.app.task_servers.add("gpu", Broken(), workflows=["work"])
    declared(scene)
    for _ in range(2):
        dispatch(scene)
        scene.clock.advance(seconds=5)

    answer = elsewhere(scene)

    told = f"task server 'gpu' refused it 2 times, last with: {NO_ROUTE}"
    assert f"{told}; it waits until 2030-01-07 12:00:15 UTC" in str(answer)
    scene.clock.advance(seconds=10)
    [gate] = [one for one in elsewhere(scene).gates if one.name is GateName.DELAY_OVER][-1:]
    assert (gate.passed, gate.sentence) == (True, f"{told}; its pause is over")


def test_the_refused_attempt_keeps_the_reason(scene: Scene) -> None:
    scene.app.task_servers.add("gpu", Broken(), workflows=["work"])
    declared(scene)
    dispatch(scene)

    [run] = History(scene.store).executions.page().items

    assert (run.state, run.task_server) == (ExecutionState.HANDED_BACK, "gpu")
    assert run.failure == f"DispatchJobs: {FailureCode.REFUSED}: {NO_ROUTE}"
    assert NO_ROUTE in str(elsewhere(scene, execution=run.id))


def test_a_refusal_is_no_failure_of_the_manifest(scene: Scene) -> None:
    server = Broken()
    scene.app.task_servers.add("gpu", server, workflows=["work"])
    declared(scene)
    for _ in range(4):
        dispatch(scene)
        scene.clock.advance(minutes=1)
        scene.manage()
    assert scene.history.dead_letters.awaiting() == []
    assert scene.manifest("load").external_id == "load"
    server.broken = False
    dispatch(scene)
    assert [
        one.task_server for one in scene.history.executions.all(states=[ExecutionState.PENDING])
    ] == ["gpu"]


def relayed(scene: Scene) -> tuple[Away, Relay]:
    server = Away()
    scene.app.task_servers.add("celery", server, workflows=["work"])
    declared(scene)
    dispatch(scene)
    ask_at = iter(range(0, 1000, 10))
    relay = Relay(
        scene.store,
        scene.app.registry,
        scene.app.task_servers,
        scene.app.observer,
        clock=lambda: float(next(ask_at)),
    )
    return server, relay


def test_a_task_server_that_does_not_answer_is_known_to_other_processes(scene: Scene) -> None:
    _, relay = relayed(scene)
    relay.run_once()

    answer = elsewhere(scene)

    assert str(answer) == (
        "load does not run because task server 'celery' does not answer "
        "(ConnectionRefusedError: broker:5672); it can when it does"
    )
    [run] = History(scene.store).executions.page().items
    assert run.failure is not None
    assert run.failure.endswith(
        "task server 'celery' does not answer: ConnectionRefusedError: broker:5672"
    )


def test_once_it_answers_again_nothing_is_said_of_it(scene: Scene) -> None:
    server, relay = relayed(scene)
    relay.run_once()
    server.away = False
    relay.run_once()
    assert str(elsewhere(scene)).endswith("the next cycle of the dispatcher dispatches it")


def test_what_a_process_that_is_gone_has_noted_counts_no_more(scene: Scene) -> None:
    _, relay = relayed(scene)
    relay.run_once()
    scene.clock.advance(minutes=1)
    assert str(elsewhere(scene)).endswith("the next cycle of the dispatcher dispatches it")


def test_a_run_that_was_sent_says_that_its_server_does_not_answer(scene: Scene) -> None:
    server, relay = relayed(scene)
    server.away = False
    relay.run_once()
    [run] = scene.history.executions.all()
    server.away = True
    scene.clock.advance(hours=1)
    relay.run_once()

    told = "task server 'celery' does not answer (ConnectionRefusedError: broker:5672)"
    assert f"because {told}, and has not started it yet" in str(elsewhere(scene, execution=run.id))
