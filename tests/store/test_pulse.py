"""The pulse says for whom there is something to do, and nothing where there is nothing."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from headway import every
from headway.domain.azolla.artifacts import Event, EventType, TerminalReason
from headway.domain.routing import Routing
from headway.domain.work_queue import NewEntry, Source
from headway.lease import this_process
from headway.store import events, leases, wakes
from headway.store.pulse import Pulse, take_pulse
from headway.store.tables import manifest_state, wake
from tests.builders import OWNER, Scene

LEASE = timedelta(seconds=15)


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url) as scene:
        yield scene


def pulse(scene: Scene) -> Pulse:
    with scene.store.unclocked() as tx:
        return take_pulse(tx, OWNER)


def register(scene: Scene, owner: str) -> None:
    with scene.store.writing() as tx:
        leases.register(tx, this_process(owner, ["worker"], ["work"], 1, Routing()), LEASE)


def test_an_empty_database_has_nothing_for_anybody(scene: Scene) -> None:
    assert pulse(scene) == Pulse()


def test_a_job_is_somebodys_on_its_whole_way(scene: Scene) -> None:
    register(scene, OWNER)
    scene.app.schedule("work", "daily", None, every(days=1))
    scene.apply()
    assert pulse(scene) == Pulse(manage=True)
    scene.manage()
    assert pulse(scene) == Pulse(dispatch=True)
    scene.dispatch()
    assert pulse(scene) == Pulse(manage=True, claim=True)
    scene.claim()
    assert pulse(scene) == Pulse(manage=True, owned=True)


def test_after_its_end_there_is_nothing_until_it_is_due_again(scene: Scene) -> None:
    scene.app.schedule("work", "daily", None, every(days=1))
    scene.apply()
    scene.cycle()
    assert pulse(scene) == Pulse(manage=True), "its end has woken it"
    scene.manage()
    assert pulse(scene) == Pulse()
    scene.clock.advance(days=1)
    assert pulse(scene) == Pulse(manage=True)


def test_a_delayed_entry_is_dispatched_when_its_time_has_come(scene: Scene) -> None:
    later = scene.clock.now + timedelta(minutes=5)
    scene.enqueue(NewEntry("work", Source.AD_HOC, "null", scheduled_at=later))
    assert pulse(scene) == Pulse()
    scene.clock.advance(minutes=5)
    assert pulse(scene) == Pulse(dispatch=True)


def test_what_others_own_is_not_ours(scene: Scene) -> None:
    register(scene, OWNER)
    scene.pending("work")
    scene.claim()
    with scene.store.unclocked() as tx:
        assert take_pulse(tx, "somebody else") == Pulse(manage=True)


def test_a_server_is_to_be_buried_when_its_lease_is_over(scene: Scene) -> None:
    register(scene, "dead")
    assert pulse(scene) == Pulse()
    scene.clock.advance(seconds=15)
    assert pulse(scene) == Pulse(orphans=True)


def test_a_run_without_a_server_is_an_orphan(scene: Scene) -> None:
    scene.pending("work")
    scene.claim()
    assert pulse(scene) == Pulse(manage=True, orphans=True, owned=True)


def test_what_is_requested_of_the_manifest_worker_is_to_be_done_until_it_is(scene: Scene) -> None:
    request = Event(
        event_id="e1",
        type=EventType.MANIFEST_REQUESTED,
        resource_id="warehouse",
        azolla_id="warehouse",
        created_at=scene.clock.now,
    )
    note = request.model_copy(update={"event_id": "e2", "type": EventType.CAPTURE_READY})
    with scene.store.writing() as tx:
        events.announce(tx, note)
    assert pulse(scene) == Pulse()
    with scene.store.writing() as tx:
        events.announce(tx, request)
    assert pulse(scene) == Pulse(requests=True)
    with scene.store.writing() as tx:
        events.mark_processed(tx, "e1", TerminalReason.SCHEDULED)
    assert pulse(scene) == Pulse()


def test_a_manifest_is_looked_at_when_its_time_has_come(scene: Scene) -> None:
    scene.app.schedule("work", "daily", None, every(days=1))
    scene.apply()
    with scene.store.writing() as tx:
        tx.connection.execute(wake.delete())
        later = scene.clock.now + timedelta(seconds=1)
        tx.connection.execute(manifest_state.update().values(wake_at=later))
    assert pulse(scene) == Pulse()
    scene.clock.advance(seconds=1)
    assert pulse(scene) == Pulse(manage=True)


def test_a_wake_up_in_the_inbox_is_to_be_managed(scene: Scene) -> None:
    with scene.store.writing() as tx:
        wakes.leave_wakes(tx, [(7, wakes.Scope.SELF)])
    assert pulse(scene) == Pulse(manage=True)
