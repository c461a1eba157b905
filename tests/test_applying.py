"""Applying a declaration: what a start tells of it, and how often it tries while it cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from headway import Headway, every
from headway.applying import ALLOW_REMOVAL, GO_BACK, apply_at_start, apply_declarations
from headway.errors import CreatedMeanwhile, RemovalRefused
from headway.store import declarations
from headway.store.declarations import Applied
from tests.builders import Recorder, Scene

AWAY = OperationalError("INSERT", {}, Exception("gone"))


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url) as scene:
        yield scene


def deployment(scene: Scene, *names: str, **settings: Any) -> Headway:
    app = scene.new_app(**settings)
    for name in names:
        app.schedule("work", name, None, every(hours=1))
    return app


def start(scene: Scene, *names: str) -> Recorder:
    apply_at_start(deployment(scene, *names), scene.store)
    return scene.events


def told(events: Recorder) -> dict[str, dict[str, Any]]:
    return {one.name: one.fields for one in events.events}


def test_a_start_tells_what_came_of_its_declaration(scene: Scene) -> None:
    counts = {"created": 0, "changed": 0, "unchanged": 0, "removed": 0, "kept_back": 0}
    assert told(start(scene, "a", "b", "c")) == {"declaration.applied": counts | {"created": 3}}
    assert told(start(scene, "a", "b")) == {
        "declaration.applied": counts | {"unchanged": 2, "removed": 1}
    }
    assert told(start(scene, "c", "d")) == {
        "declaration.applied": counts | {"created": 2, "kept_back": 2},
        "declaration.kept_back": {"count": 2, "advice": ALLOW_REMOVAL},
    }
    assert told(start(scene, "a", "b")) == {
        "declaration.outdated": {"application": "tests", "advice": GO_BACK}
    }


def load_all_of(table: str) -> None: ...
def load_rows(rows: int) -> None: ...
def count_rows(rows: int) -> None: ...


def test_each_reason_why_entries_can_never_run_is_told_once(scene: Scene) -> None:
    before = deployment(scene)
    for workflow, names in (("load", ("a", "b")), ("count", ("c",))):
        before.workflow(workflow)(load_all_of)
        for name in names:
            before.schedule(workflow, name, "users", every(hours=1))
    scene.apply()
    scene.manage()
    entries = {one.external_id: one.id for one in scene.history.queue.all()}
    app = deployment(scene)
    for workflow, function, names in (
        ("load", load_rows, ("a", "b")),
        ("count", count_rows, ("c",)),
    ):
        app.workflow(workflow)(function)
        for name in names:
            app.schedule(workflow, name, 7, every(hours=1))

    apply_at_start(app, scene.store)

    found = [one.fields for one in scene.events.named("queue.stranded")]
    assert {(one["workflow"], one["count"], one["entry_id"]) for one in found} == {
        ("load", 2, min(entries["a"], entries["b"])),
        ("count", 1, entries["c"]),
    }
    assert all("int" in one["reason"] for one in found)


class Attempts:
    """How often a declaration was tried to be applied, and the pauses between."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, failing: int, error: Exception) -> None:
        self.count = 0
        self.pauses: list[float] = []
        self._failing, self._error = failing, error
        self._apply = declarations.apply
        monkeypatch.setattr(declarations, "apply", self)
        monkeypatch.setattr("headway.applying.time.sleep", self.pauses.append)

    def __call__(self, *arguments: Any, **options: Any) -> Applied:
        self.count += 1
        if self.count <= self._failing:
            raise self._error
        return self._apply(*arguments, **options)


@pytest.mark.parametrize("error", [AWAY, CreatedMeanwhile()])
def test_a_start_tries_again_after_ever_longer_pauses(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    attempts = Attempts(monkeypatch, 3, error)
    app = deployment(scene, "a", seeding_attempts=4, seeding_base_delay="3s")
    assert apply_declarations(app, scene.store) == Applied(created=1)
    assert (attempts.count, attempts.pauses) == (4, [3.0, 6.0, 12.0])
    assert scene.events.named("declaration.waiting") == []


def test_a_start_gives_up_with_the_error_of_its_last_attempt(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = Attempts(monkeypatch, 9, AWAY)
    app = deployment(scene, "a", seeding_attempts=3)
    with pytest.raises(OperationalError) as raised:
        apply_declarations(app, scene.store)
    assert raised.value is AWAY
    assert (attempts.count, len(attempts.pauses)) == (3, 2)


def test_a_start_repeats_what_fails_for_a_restart_within_the_attempt(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = Attempts(monkeypatch, 2, AWAY)

    def patiently(work: Callable[[], Any]) -> Any:
        while True:
            try:
                return work()
            except OperationalError:
                continue

    apply_at_start(deployment(scene, "a", seeding_attempts=1), scene.store, patiently)
    assert (attempts.count, attempts.pauses) == (3, [])


def test_by_hand_a_declaration_that_removes_too_much_is_refused_as_a_whole(scene: Scene) -> None:
    start(scene, "a", "b", "c")
    with pytest.raises(RemovalRefused) as refused:
        apply_declarations(deployment(scene, "d"), scene.store, by_hand=True)
    assert str(refused.value) == str(RemovalRefused("tests", 3))
    assert [one.external_id for one in scene.history.manifests.all()] == ["a", "b", "c"]
    app = deployment(scene, "d")
    applied = apply_declarations(app, scene.store, by_hand=True, allow_removal=True)
    assert applied == Applied(created=1, removed=3)


def test_by_hand_an_earlier_declaration_is_gone_back_to(scene: Scene) -> None:
    start(scene, "a")
    start(scene, "a", "b")
    applied = apply_declarations(deployment(scene, "a"), scene.store, by_hand=True)
    assert applied == Applied(unchanged=1, removed=1)
