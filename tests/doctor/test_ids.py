"""Ids that were used before are found wherever the rows that have them are by now."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headway.domain.work_queue import NewEntry, Source
from tests.builders import Scene
from tests.doctor.examining import examine, found, tell


def queued(scene: Scene) -> None:
    scene.enqueue(*[NewEntry("work", Source.AD_HOC, "null") for _ in range(3)])


def dispatched(scene: Scene) -> None:
    for _ in range(3):
        scene.pending("work")


def finished(scene: Scene) -> None:
    dispatched(scene)
    scene.run()


@pytest.mark.parametrize("used", [queued, dispatched, finished])
def test_ids_of_entries_are_known_from_every_table_they_come_to(
    scene: Scene, used: Callable[[Scene], None]
) -> None:
    used(scene)
    if scene.store.on_postgresql:
        tell(scene, "SELECT setval(pg_get_serial_sequence('headway_work_queue', 'id'), 1)")
    else:
        tell(scene, "UPDATE sqlite_sequence SET seq = 1 WHERE name = 'headway_work_queue'")

    assert found(scene)["ids-behind"] == ("headway_work_queue: last id 1, used 3",)

    examine(scene, fix=True)
    assert "ids-behind" not in found(scene)
    assert scene.enqueue(NewEntry("work", Source.AD_HOC, "null")) == [4]
