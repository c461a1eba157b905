"""One run of a manifest at a time, whatever asks for it, unless the manifest allows more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError

from headway import Group
from headway.domain.work_queue import NewEntry, Source
from headway.store import work_queue
from headway.store.tables import execution
from tests.builders import Scene
from tests.overlaps import DONE, LATER, declare, end, running
from tests.runtime_verbs import runtime_of


def test_what_may_overlap_goes_in_one_batch_and_all_else_one_by_one(scene: Scene) -> None:
    declare(scene)
    for name in ("free", "alone"):
        for _ in range(3):
            scene.trigger(name)

    dispatched = scene.dispatch().dispatched

    live = Counter(one.external_id for one in scene.history.executions.all())
    assert live == {"free": 3, "alone": 1}
    assert len(dispatched) == 4


@pytest.mark.parametrize("source", [Source.TRIGGER, Source.RERUN, Source.REQUEUE])
def test_a_run_that_is_asked_for_starts_beside_another(scene: Scene, source: Source) -> None:
    declare(scene)
    for name in ("free", "alone"):
        manifest_id, group_id = scene.ids_of(name)
        asked: dict[str, Any] = {"manifest_id": manifest_id, "group_id": group_id}
        for _ in range(2):
            scene.enqueue(NewEntry("work", source, "null", **asked))
            scene.dispatch()

    assert len(running(scene)) == 2
    assert len(running(scene, "alone")) == 1


def test_the_caps_of_groups_bind_runs_that_overlap(scene: Scene) -> None:
    scene.app.schedule(
        "work", "free", None, LATER, group=Group("etl", max_active_jobs=2), allow_overlap=True
    )
    scene.apply()
    for _ in range(5):
        scene.trigger("free")

    scene.dispatch()
    assert len(running(scene)) == 2
    end(scene, DONE, running(scene)[0])
    scene.dispatch()

    assert len(running(scene)) == 2
    assert len(scene.history.queue.all()) == 2


def test_the_database_refuses_a_second_run_only_of_what_runs_alone(scene: Scene) -> None:
    declare(scene)
    entries = [scene.trigger(name) for name in ("free", "free", "alone", "alone")]

    with scene.store.writing() as tx:
        dispatched, refused, _ = work_queue.dispatch_each(tx, entries)
    assert (sorted(dispatched), refused) == (entries[:3], {}), "the fourth waits"

    with scene.store.reading() as tx:
        rows = tx.connection.execute(select(execution)).mappings().all()
    kept = [{name: row[name] for name in row if name != "id"} for row in rows]
    with scene.store.writing() as tx:
        tx.connection.execute(insert(execution).values(kept[0]))
    with pytest.raises(IntegrityError), scene.store.writing() as tx:
        tx.connection.execute(insert(execution).values(kept[2]))


def test_once_it_is_taken_back_all_that_runs_has_to_end_first(scene: Scene) -> None:
    declare(scene)
    for _ in range(2):
        scene.trigger("free")
    scene.dispatch()
    first, second = running(scene)
    declare(scene, allow_overlap=False)
    for _ in range(2):
        scene.trigger("free")

    for ended in (first, second):
        scene.dispatch()
        assert {one.id for one in running(scene)} <= {first.id, second.id}
        end(scene, DONE, ended)
    scene.dispatch()

    assert len(running(scene)) == 1


def test_once_it_is_allowed_a_run_begun_alone_ends_alone(scene: Scene) -> None:
    declare(scene, allow_overlap=False)
    scene.trigger("free")
    scene.dispatch()
    [alone] = running(scene)
    declare(scene)
    for _ in range(2):
        scene.trigger("free")

    scene.dispatch()
    assert running(scene) == [alone]
    end(scene, DONE, alone)
    scene.dispatch()

    assert len(running(scene)) == 2


@pytest.mark.parametrize("verb", ["schedule", "apply"])
def test_the_option_is_kept_and_changed_like_any_other(scene: Scene, verb: str) -> None:
    priorities = count()
    verbs: dict[str, Callable[[bool], object]] = {
        # What was applied before is not applied again, so that the priority has to be another.
        "apply": lambda on: declare(scene, allow_overlap=on, priority=next(priorities)),
        "schedule": lambda on: runtime_of(scene).schedule(
            "work", "free", None, LATER, allow_overlap=on
        ),
    }
    declare(scene, allow_overlap=False)
    for on in (True, False, True):
        verbs[verb](on)
        for _ in range(2):
            scene.trigger("free")
        scene.dispatch()
        assert len(running(scene)) == (2 if on else 1)
        end(scene, DONE, *running(scene))
        scene.dispatch()
        end(scene, DONE, *running(scene))
