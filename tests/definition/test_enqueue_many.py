"""Many runs of one workflow, queued by one call."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import create_engine

from headway.definition.runtime import PORTION, Runtime
from headway.domain.work_queue import Source
from headway.errors import DefinitionError, InputError
from headway.store.tables import work_queue
from tests.builders import Scene


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url) as scene:
        scene.app.workflow("count")(_count)
        yield scene


def _count(number: int) -> None: ...


def runtime_of(scene: Scene) -> Runtime:
    return Runtime("tests", scene.app.registry, scene.store)


def queued(scene: Scene) -> list[tuple[str, str]]:
    with scene.store.reading() as tx:
        chosen = work_queue.select().order_by(work_queue.c.id)
        return [(row.workflow, row.input) for row in tx.connection.execute(chosen)]


def test_each_input_is_an_entry_in_the_order_given(scene: Scene) -> None:
    many = runtime_of(scene).enqueue_many("count", (number for number in (3, 1, 2)), priority=7)

    assert many == 3
    entries = scene.history.queue.all()
    assert sorted((one.id, one.source, one.priority) for one in entries) == [
        (one.id, Source.AD_HOC, 7) for one in sorted(entries, key=lambda one: one.id)
    ]
    assert queued(scene) == [("count", "3"), ("count", "1"), ("count", "2")]


def test_more_than_one_portion_runs_like_any_other(scene: Scene) -> None:
    assert runtime_of(scene).enqueue_many("count", range(PORTION + 1)) == PORTION + 1
    assert [one for _, one in queued(scene)] == [str(number) for number in range(PORTION + 1)]
    scene.configure(max_active_jobs=5)
    scene.dispatch()
    assert scene.run().claimed == 5


def test_nothing_to_queue_is_fine(scene: Scene) -> None:
    assert runtime_of(scene).enqueue_many("count", []) == 0
    assert queued(scene) == []


def test_a_bad_input_is_named_by_its_place_and_nothing_is_queued(scene: Scene) -> None:
    inputs = [*range(PORTION), "many"]
    with pytest.raises(InputError, match=rf"^count\[{PORTION}\]: input .*'many'"):
        runtime_of(scene).enqueue_many("count", inputs)
    assert queued(scene) == []


def test_in_a_callers_transaction_a_call_that_fails_leaves_nothing_either(scene: Scene) -> None:
    engine = create_engine(scene.store.url)
    with engine.begin() as connection:
        with pytest.raises(InputError):
            runtime_of(scene).enqueue_many(
                "count", [*range(PORTION), "many"], connection=connection
            )
        assert runtime_of(scene).enqueue_many("count", [1], connection=connection) == 1
    engine.dispose()
    assert queued(scene) == [("count", "1")]


def test_attempts_are_checked_before_anything_is_read(scene: Scene) -> None:
    def never() -> Iterator[int]:
        raise AssertionError("read")
        yield 1

    with pytest.raises(DefinitionError, match="max_attempts"):
        runtime_of(scene).enqueue_many("count", never(), max_attempts=0)
