"""Work for headway's own workers: only what a living one knows, and no more than they can hold."""

from datetime import timedelta

from headway import every
from headway.dispatcher.cycle import DispatchResult, JobDispatcher
from headway.servers.local import LocalServer
from headway.store import leases, servers
from headway.store.servers import ServerProcess
from tests.builders import Scene

LEASE = timedelta(seconds=15)


def alive(scene: Scene, *, name: str = "one", slots: int = 2, workflow: str = "work") -> None:
    with scene.store.writing() as tx:
        process = ServerProcess(name, "host", 1, ["worker"], [workflow], slots)
        if not leases.renew(tx, name, LEASE):
            leases.leave(tx, name)  # it died in between; a new process takes its place
            leases.register(tx, process, LEASE)


def dispatch(scene: Scene) -> DispatchResult:
    dispatcher = JobDispatcher(
        scene.store,
        scene.app.settings,
        scene.app.observer,
        LocalServer(lambda: None),
        to_own_workers=True,
    )
    return dispatcher.run_once()


def queue(scene: Scene, count: int) -> None:
    for number in range(count):
        scene.app.schedule("work", f"load-{number}", None, every(hours=1), group="load")
    scene.apply()
    scene.manage()


def test_without_a_living_worker_everything_stays_queued(scene: Scene) -> None:
    queue(scene, 2)

    assert dispatch(scene).dispatched == ()
    assert len(scene.history.queue.all()) == 2


def test_what_no_living_worker_knows_takes_no_slot(scene: Scene) -> None:
    queue(scene, 2)
    alive(scene, workflow="another")

    assert dispatch(scene).loaded == 0
    alive(scene, name="two")
    assert len(dispatch(scene).dispatched) == 2


def test_as_many_wait_as_there_are_slots_and_the_rest_stays_queued(scene: Scene) -> None:
    queue(scene, 9)
    alive(scene, slots=2)

    first = dispatch(scene)

    assert len(first.dispatched) == 4
    assert set(first.skipped) == {"no worker is free"}
    assert dispatch(scene).dispatched == ()
    scene.run()
    assert len(dispatch(scene).dispatched) == 4


def test_a_worker_that_does_not_renew_its_row_is_counted_no_more(scene: Scene) -> None:
    queue(scene, 1)
    alive(scene)
    scene.clock.advance(seconds=10)
    alive(scene)
    scene.clock.advance(seconds=10)
    with scene.store.reading() as tx:
        assert servers.living_workers(tx).slots == 2
    scene.clock.advance(seconds=5)

    assert dispatch(scene).dispatched == ()


def test_a_worker_that_ends_takes_its_row_with_it(scene: Scene) -> None:
    alive(scene)
    with scene.store.writing() as tx:
        leases.leave(tx, "one")
        assert servers.living_workers(tx) == servers.Workers(0, frozenset())
