"""behaviour.md 9.5 and 9.6 as rows and runs: what each call made, the manager acts on."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from headway.errors import HeadwayError
from headway.store.tables import dependency, manifest
from tests.builders import Scene, names
from tests.definition.test_builder import HOURLY, MISUSES, POINTERS, cursor, register


def stored_parents(scene: Scene) -> dict[str, tuple[str, ...]]:
    """The edges in the database, by external ids."""
    with scene.store.reading() as tx:
        rows = tx.connection.execute(select(manifest.c.id, manifest.c.external_id)).all()
        known = {row.id: row.external_id for row in rows}
        found: dict[str, list[str]] = {name: [] for name in known.values()}
        for edge in tx.connection.execute(select(dependency)):
            found[known[edge.child_id]].append(known[edge.parent_id])
    return {name: tuple(sorted(parents)) for name, parents in found.items()}


def assert_it_runs_in_that_order(scene: Scene, parents: dict[str, tuple[str, ...]]) -> None:
    """Each cycle queues exactly those whose parents have all succeeded before it."""
    ran: set[str] = set()
    while True:
        scene.manage()
        queued = set(filter(None, names(scene.history.queue.all())))
        ready = {name for name, above in parents.items() if set(above) <= ran} - ran
        assert queued == ready
        if not queued:
            break
        scene.dispatch()
        scene.run()
        ran |= queued
    assert ran == parents.keys()


@pytest.mark.parametrize("call", POINTERS)
def test_what_a_call_declares_is_stored_and_runs_after_its_parent(scene: Scene, call: str) -> None:
    extend, declared, _, _ = POINTERS[call]
    extend(scene.app, cursor(scene.app))
    scene.apply()
    expected = {"root": (), "cursor": ("root",)} | declared
    assert stored_parents(scene) == expected
    if call != "schedule_once":  # which is for another year
        assert_it_runs_in_that_order(scene, expected)


def test_b_after_a_c_after_b_and_d_after_a(scene: Scene) -> None:
    chain = scene.app.schedule("work", "A", None, HOURLY).include("work", "B", None)
    chain.then_include("work", "C", None).include("work", "D", None)
    scene.apply()
    expected = {"A": (), "B": ("A",), "C": ("B",), "D": ("A",)}
    assert stored_parents(scene) == expected
    assert_it_runs_in_that_order(scene, expected)


@pytest.mark.parametrize("misuse", MISUSES)
def test_what_was_refused_is_neither_stored_nor_run(scene: Scene, misuse: str) -> None:
    register(scene.app)
    start, extend, _ = MISUSES[misuse]
    chain = start(scene.app)
    with pytest.raises(HeadwayError):
        extend(scene.app, chain)
    before = {one.external_id for one in scene.app.declaration().manifests}
    scene.apply()
    assert stored_parents(scene).keys() == before
    scene.cycle()
    assert {one.external_id for one in scene.history.executions.all()} <= before
