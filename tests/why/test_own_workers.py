"""How many slots of the own workers are taken, as an explanation says it."""

from __future__ import annotations

from sqlalchemy import update

from headway import every
from headway.definition.explaining import Explaining
from headway.domain.gates import Gate, GateName
from headway.store.tables import execution
from tests.builders import Scene
from tests.why.test_gates import alive, dispatch_to_own_workers


def free_worker(scene: Scene, external_id: str) -> Gate:
    """The gate of the run that was dispatched, which comes after that of its next entry."""
    explaining = Explaining(scene.store, scene.app.settings, scene.app.task_servers)
    gates = explaining.why(external_id).gates
    return [one for one in gates if one.name is GateName.FREE_WORKER][-1]


def test_runs_of_another_task_server_take_no_slot_of_the_own_workers(scene: Scene) -> None:
    for name in ("first", "second"):
        scene.app.schedule("work", name, None, every(hours=1))
    scene.apply()
    alive(scene, "hand", ["worker"], ("work",), slots=1)
    scene.manage()
    for _ in range(2):
        dispatch_to_own_workers(scene)
    [run] = scene.claim(limit=1)
    waiting = "second" if run.external_id == "first" else "first"
    assert free_worker(scene, waiting).sentence == "all workers are busy (1 of 1 slots)"

    with scene.store.writing() as tx:
        chosen = execution.c.id == run.id
        tx.connection.execute(update(execution).where(chosen).values(task_server="celery"))

    assert free_worker(scene, waiting).sentence == "a worker is free (0 of 1 slots)"
