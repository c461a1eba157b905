"""The orphan sweep: who is buried, what is started again, and what is told of both."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from headway import every
from headway.domain.execution import ExecutionState
from headway.domain.retry import RetryPolicy
from headway.orphans import OrphanSweep, Swept
from headway.store import executions
from tests.builders import Scene
from tests.stories.servers import MAX_CRASHES, Server


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url) as scene:
        yield scene


def declare(scene: Scene, *names: str) -> None:
    for name in names:
        scene.app.schedule("work", name, None, every(hours=1))
    scene.apply()
    scene.manage()
    scene.dispatch()


def test_a_dead_server_is_buried_and_what_it_ran_starts_again(scene: Scene) -> None:
    declare(scene, "first", "second")
    dead, living = Server(scene, "dead"), Server(scene, "living")
    [taken] = dead.claim(1)
    [kept] = living.claim(1)
    living.live_through()

    assert living.sweep() == Swept(buried=1, ended=1, dead_lettered=0)

    assert [one.fields for one in scene.events.named("server.buried")] == [{"owner": "dead"}]
    ended = scene.execution(taken.id)
    assert (ended.state, ended.lost) == (ExecutionState.FAILED, True)
    [told] = scene.events.named("execution.failed")
    assert told.fields == ended.told()
    assert scene.execution(kept.id).state is ExecutionState.IN_PROGRESS
    assert living.sweep() == Swept()


def test_a_run_that_has_taken_too_many_servers_along_is_a_dead_letter(scene: Scene) -> None:
    declare(scene, "load")
    dead, living = Server(scene, "dead"), Server(scene, "living")
    dead.claim(1)
    living.live_through()

    assert living.sweep(max_crashes=1) == Swept(buried=1, ended=1, dead_lettered=1)

    [told] = scene.events.named("manifest.dead_lettered")
    assert told.fields == {"external_id": "load"}
    [letter] = scene.history.dead_letters.awaiting()
    assert letter.external_id == "load"


def test_a_timeout_whose_worker_is_gone_is_tried_again_by_the_settings(scene: Scene) -> None:
    scene.pending("work", max_attempts=2)
    dead, living = Server(scene, "dead"), Server(scene, "living")
    [taken] = dead.claim(1)
    with scene.store.writing() as tx:
        executions.request_cancel(tx, [taken.id], "timeout")
    living.live_through()
    patient = RetryPolicy(timedelta(hours=3), 2.0, timedelta(hours=6))

    OrphanSweep(scene.store, living, MAX_CRASHES, scene.app.observer, patient).run_once()

    [entry] = scene.history.queue.all()
    assert entry.id == taken.entry_id
    assert entry.scheduled_at == scene.clock.now + timedelta(hours=3)
