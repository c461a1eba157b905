"""Work for other task servers: who gets what, and that no server holds up another."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from headway import Group, every
from headway.definition.registry import Registry
from headway.definition.task_servers import TaskServers
from headway.dispatcher.cycle import DispatchResult, JobDispatcher
from headway.domain.execution import ExecutionState, FailureCode
from headway.domain.routing import Routing
from headway.domain.work_queue import NewEntry, Source
from headway.servers.local import LocalServer
from headway.store import leases
from headway.store.servers import ServerProcess
from tests.builders import Scene
from tests.dispatcher.test_own_workers import LEASE, alive


class Inbox:
    """A task server that keeps what it is given."""

    def __init__(self) -> None:
        self.given: list[int] = []

    def submit(self, execution_ids: Sequence[int]) -> None:
        self.given += execution_ids


class Broken:
    """A task server that cannot be reached."""

    def submit(self, execution_ids: Sequence[int]) -> None:
        raise ConnectionError("no route to the machine")


@pytest.fixture
def gpu(scene: Scene) -> Inbox:
    """A third server, and a second workflow that may be sent to it."""
    scene.app.workflow("train")(lambda: None)
    return Inbox()


def dispatch(scene: Scene, task_servers: TaskServers | None = None) -> DispatchResult:
    dispatcher = JobDispatcher(
        scene.store,
        scene.app.settings,
        scene.app.observer,
        LocalServer(lambda: None),
        to_own_workers=True,
        task_servers=task_servers or scene.app.task_servers,
    )
    return dispatcher.run_once()


def declare(scene: Scene, *names: str, workflow: str = "work", **options: Any) -> None:
    for name in names:
        scene.app.schedule(workflow, name, None, every(hours=1), **options)


def begin(scene: Scene) -> None:
    scene.apply()
    scene.manage()


def sent(scene: Scene) -> dict[str | None, str]:
    return {one.external_id: one.task_server for one in scene.history.executions.all()}


def published(scene: Scene, name: str, workflows: list[str], routing: Routing, slots: int) -> None:
    """Another process lives that knows these workflows and sends them so."""
    roles = ["worker"] if slots else ["dispatcher"]
    process = ServerProcess(name, "host", 1, roles, workflows, slots, routing)
    with scene.store.writing() as tx:
        leases.leave(tx, name)
        leases.register(tx, process, LEASE)


def test_a_workflow_a_group_or_all_the_rest_goes_to_another_server(
    scene: Scene, gpu: Inbox
) -> None:
    batch, other = Inbox(), Inbox()
    servers = scene.app.task_servers
    servers.add("gpu", gpu, workflows=["train"])
    servers.add("batch", batch, groups=["nightly"])
    servers.add("other", other, default=True)
    servers.keep_local(groups=["small"])
    alive(scene)
    declare(scene, "train-1", workflow="train", group="nightly")
    declare(scene, "nightly-1", group="nightly")
    declare(scene, "small-1", group="small")
    declare(scene, "load-1")
    begin(scene)
    scene.enqueue(NewEntry("work", Source.AD_HOC, "null"))

    result = dispatch(scene)

    assert sent(scene) == {
        "train-1": "gpu",
        "nightly-1": "batch",
        "small-1": "local",
        "load-1": "other",
        None: "other",
    }
    assert result.by_server == {
        "local": result.by_server["local"],
        "batch": tuple(batch.given),
        "gpu": tuple(gpu.given),
        "other": tuple(other.given),
    }
    assert [len(one.given) for one in (gpu, batch, other)] == [1, 1, 2]


def test_the_own_workers_never_claim_what_was_sent_elsewhere(scene: Scene, gpu: Inbox) -> None:
    scene.app.task_servers.add("gpu", gpu, workflows=["train"])
    alive(scene)
    declare(scene, "train-1", workflow="train", group=Group("first", priority=9))
    declare(scene, "load-1")
    begin(scene)
    dispatch(scene)

    assert [one.external_id for one in scene.claim()] == ["load-1"]
    [waiting] = [one for one in scene.history.executions.all() if one.external_id == "train-1"]
    assert (waiting.state, waiting.id) == (ExecutionState.PENDING, gpu.given[0])


def test_a_server_that_fails_gets_only_its_own_taken_back(scene: Scene, gpu: Inbox) -> None:
    batch = Inbox()
    scene.app.task_servers.add("broken", Broken(), workflows=["train"])
    scene.app.task_servers.add("batch", batch, groups=["nightly"])
    alive(scene)
    declare(scene, "train-1", "train-2", workflow="train")
    declare(scene, "load-1")
    declare(scene, "nightly-1", group="nightly")
    begin(scene)

    dispatch(scene)

    states = {one.external_id: str(one.state) for one in scene.history.executions.all()}
    assert states == {
        "train-1": "handed_back",
        "train-2": "handed_back",
        "load-1": "pending",
        "nightly-1": "pending",
    }
    assert sorted(one.external_id or "" for one in scene.history.queue.all()) == [
        "train-1",
        "train-2",
    ]
    [refused] = scene.events.named("dispatch.refused")
    assert (refused.fields["task_server"], refused.fields["count"]) == ("broken", 2)
    assert len(batch.given) == 1
    assert [one.external_id for one in scene.claim()] == ["load-1"]


def test_without_any_worker_of_its_own_the_rest_goes_elsewhere(scene: Scene, gpu: Inbox) -> None:
    scene.app.task_servers.add("gpu", gpu, workflows=["train"])
    declare(scene, "train-1", workflow="train")
    declare(scene, "load-1")
    begin(scene)

    dispatch(scene)

    assert sent(scene) == {"train-1": "gpu"}
    assert [one.external_id for one in scene.history.queue.all()] == ["load-1"]


def test_busy_workers_hold_up_nothing_that_goes_elsewhere(scene: Scene, gpu: Inbox) -> None:
    """Not even behind more local work of higher priority than a page holds, under a limit."""
    scene.configure(max_active_jobs=10)
    scene.app.task_servers.add("gpu", gpu, workflows=["train"])
    alive(scene, slots=1)
    for number in range(130):
        declare(scene, f"load-{number}", group=Group(f"load-{number}", priority=9))
    declare(scene, "train-1", "train-2", "train-3", workflow="train")
    begin(scene)
    while scene.manage().queued:
        pass

    first = dispatch(scene)

    assert len(gpu.given) == 3
    assert len(first.by_server["local"]) == 2
    assert first.skipped["no worker is free"] > 0


def test_much_work_elsewhere_takes_no_room_of_the_workers(scene: Scene, gpu: Inbox) -> None:
    scene.configure(max_active_jobs=None)
    scene.app.task_servers.add("gpu", gpu, workflows=["train"])
    alive(scene, slots=1)
    urgent = Group("trains", priority=9)
    declare(scene, *[f"train-{n}" for n in range(50)], workflow="train", group=urgent)
    begin(scene)
    assert len(dispatch(scene).by_server["gpu"]) == 50
    scene.enqueue(*[NewEntry("work", Source.AD_HOC, "null")] * 3)

    result = dispatch(scene)

    assert len(result.by_server["local"]) == 2, "as many as one slot keeps ready"


def test_limits_hold_over_all_servers_together(scene: Scene, gpu: Inbox) -> None:
    scene.configure(max_active_jobs=3)
    scene.app.task_servers.add("gpu", gpu, workflows=["train"])
    alive(scene, slots=9)
    capped = Group("capped", max_active_jobs=1, priority=9)
    declare(scene, "train-1", "train-2", workflow="train", group=capped)
    declare(scene, "load-1", "load-2", "load-3", "load-4")
    begin(scene)

    dispatch(scene)

    assert len(gpu.given) == 1
    assert len(scene.history.executions.all()) == 3
    assert dispatch(scene).dispatched == ()


def test_another_application_sends_nothing_of_ours_anywhere(scene: Scene, gpu: Inbox) -> None:
    """Its dispatcher leads, but knows neither our workflow nor our server."""
    scene.app.task_servers.add("gpu", gpu, workflows=["train"], groups=["nightly"])
    routing = scene.app.task_servers.routing
    published(scene, "ours", ["train", "work"], routing, slots=4)
    declare(scene, "train-1", workflow="train")
    declare(scene, "nightly-1", group="nightly")
    declare(scene, "load-1")
    begin(scene)
    stranger = TaskServers(Registry())
    stranger.add("their-own", Inbox(), groups=["nightly"], default=True)

    dispatch(scene, stranger)
    assert sent(scene) == {"load-1": "local"}, "which a worker of ours takes"

    dispatch(scene)
    assert sent(scene) == {"load-1": "local", "train-1": "gpu", "nightly-1": "gpu"}


def test_what_another_application_sends_elsewhere_is_not_unknown(scene: Scene) -> None:
    def live(minutes: int, *, with_dispatcher: bool) -> list[int]:
        failed: list[int] = []
        for _ in range(minutes):
            published(scene, "worker", ["work"], Routing(), slots=4)
            if with_dispatcher:
                sends = Routing(by_workflow={"train": "gpu"})
                published(scene, "their-dispatcher", ["train"], sends, slots=0)
            failed += dispatch(scene).failed
            scene.clock.advance(minutes=1)
        return failed

    [lost] = scene.enqueue(NewEntry("train", Source.AD_HOC, "null"))

    assert live(45, with_dispatcher=True) == []
    assert [one.id for one in scene.history.queue.all()] == [lost]
    assert live(25, with_dispatcher=False) == [lost]


def test_what_this_application_sends_elsewhere_may_wait_as_long_as_it_must(
    scene: Scene, gpu: Inbox
) -> None:
    scene.app.task_servers.add("gpu", gpu, workflows=["train"])
    declare(scene, "train-1", workflow="train", group=Group("trains", enabled=False))
    scene.apply()
    manifest_id, group_id = scene.ids_of("train-1")
    entry = NewEntry("train", Source.TRIGGER, "null", manifest_id=manifest_id, group_id=group_id)
    [waiting] = scene.enqueue(entry)

    for _ in range(45):
        published(scene, "worker", ["work"], Routing(), slots=4)
        assert dispatch(scene).failed == ()
        scene.clock.advance(minutes=1)

    assert [one.id for one in scene.history.queue.all()] == [waiting]


def test_what_a_server_lost_goes_stale_by_its_age_and_is_tried_again(
    scene: Scene, gpu: Inbox
) -> None:
    """However busy the own workers are meanwhile: they say nothing about another server."""
    scene.app.task_servers.add("gpu", gpu, workflows=["train"])
    published(scene, "worker", ["work", "train"], Routing(), slots=4)
    declare(scene, "train-1", workflow="train", max_retries=5)
    begin(scene)
    dispatch(scene)
    [lost] = gpu.given

    for _ in range(21):
        scene.clock.advance(minutes=1)
        scene.pending("work")
        scene.run()
        published(scene, "worker", ["work", "train"], Routing(), slots=4)
    assert scene.manage().reaped_pending == 1
    failure = scene.execution(lost).failure
    assert failure is not None and failure.type == FailureCode.STALE_PENDING

    scene.clock.advance(hours=1)
    scene.manage()
    dispatch(scene)
    assert len(gpu.given) == 2


def test_work_elsewhere_does_not_keep_what_waits_for_the_own_workers(
    scene: Scene, gpu: Inbox
) -> None:
    scene.app.task_servers.add("gpu", gpu, workflows=["train"])
    declare(scene, "train-1", workflow="train")
    begin(scene)
    waiting = scene.pending("work")
    dispatch(scene)
    scene.clock.advance(minutes=21)
    scene.with_runner(lambda runner: runner.run_one(gpu.given[0]))
    alive(scene, workflow="work")

    scene.manage()

    assert scene.execution(waiting).state is ExecutionState.FAILED


def test_the_oldest_may_go_elsewhere_while_the_workers_are_busy(scene: Scene, gpu: Inbox) -> None:
    """Older local entries, for which no worker is free, do not use up the share of the aged."""
    scene.configure(max_active_jobs=3, starvation_after=timedelta(minutes=10))
    scene.app.task_servers.add("gpu", gpu, workflows=["train"])
    scene.pending("work")
    scene.pending("work")
    scene.enqueue(*[NewEntry("work", Source.AD_HOC, "null")] * 3)
    scene.clock.advance(seconds=1)
    scene.enqueue(NewEntry("train", Source.AD_HOC, "null"))
    scene.clock.advance(minutes=11)
    scene.enqueue(*[NewEntry("train", Source.AD_HOC, "null", priority=31)] * 2)
    alive(scene, slots=1)

    dispatch(scene)

    [went] = gpu.given
    assert scene.execution(went).priority == 0
