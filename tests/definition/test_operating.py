"""What operators do: the effect of the Python verb, one row in the audit, both or neither."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import ColumnElement, Table, select

from headway import Headway
from headway.definition.operating import Operator
from headway.definition.runtime import Runtime
from headway.domain.versions import version_of
from headway.errors import ChangedMeanwhile, DefinitionError, HeadwayError
from headway.store.engine import Store
from headway.store.tables import manifest, manifest_group
from tests.builders import Scene
from tests.databases import Schemas, database_url, migrated_copy, postgres_url, sqlite_url
from tests.operations import OPERATIONS, Operation, everything, noted, open_for_business
from tests.runtime_verbs import runtime_of

__all__ = ["database_url", "postgres_url", "sqlite_url"]

FAILURES: dict[str, Callable[[Operator], Any]] = {
    "no such manifest": lambda on: on.trigger("nothing"),
    "an input that does not fit": lambda on: on.trigger("report", object()),
    "no such group": lambda on: on.trigger_group("nothing"),
    "no such workflow": lambda on: on.enqueue("nothing"),
    "no such execution": lambda on: on.rerun(999),
    "nothing named to cancel": lambda on: on.cancel(),
    "two things to cancel": lambda on: on.cancel("extract", group="loads"),
    "no such entry": lambda on: on.cancel(entry=999),
    "a version long gone": lambda on: on.disable("extract", expected="0"),
    "a group changed meanwhile": lambda on: on.set_group("loads", priority=3, expected="0"),
    "nothing to set": lambda on: on.set_group("loads"),
    "a cap below zero": lambda on: on.set_group("loads", max_active_jobs=-1),
    "already gone": lambda on: on.unschedule("nothing"),
    "no letters": lambda on: on.dead_letters.requeue_many("7"),  # type: ignore[arg-type]
    "an objective without a title": lambda on: on.azolla.objective(""),
    "no such objective": lambda on: on.azolla.update("nothing", urgency=1),
    "no such blocker": lambda on: on.azolla.resolve("nothing"),
    "not parked": lambda on: on.azolla.unpark("nothing"),
}


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url) as scene:
        open_for_business(scene)
        yield scene


@pytest.fixture
def twin_url(request: pytest.FixtureRequest, database_url: str, tmp_path: Path) -> Iterator[str]:
    """The URL of a second database of the same kind, as empty as the first."""
    if database_url.startswith("sqlite"):
        (tmp_path / "twin").mkdir()
        yield migrated_copy(request.getfixturevalue("migrated_file"), tmp_path / "twin")
        return
    schemas: Schemas = request.getfixturevalue("migrated_schemas")
    with schemas.lent() as url:
        yield url


@pytest.fixture
def twin(twin_url: str) -> Iterator[Scene]:
    """The same deployment once more, for the verb without an operator."""
    with Scene(twin_url) as scene:
        open_for_business(scene)
        yield scene


def operator_of(scene: Scene, name: str = "alice") -> Operator:
    return Operator(name, runtime_of(scene))


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_an_action_does_what_the_python_verb_does_and_leaves_one_row(
    scene: Scene, twin: Scene, operation: Operation
) -> None:
    before = everything(scene)
    operation.call(operator_of(scene))
    operation.call(runtime_of(twin))
    assert everything(scene) == everything(twin) != before
    [row] = noted(scene)
    assert (row.at, row.actor) == (scene.clock.now, "alice")
    assert (row.action, row.subject) == (operation.action, operation.subject)
    assert row.detail is None or json.loads(row.detail)
    assert noted(twin) == []


@pytest.mark.parametrize("fail", FAILURES.values(), ids=FAILURES)
def test_an_action_that_fails_leaves_neither(scene: Scene, fail: Callable[[Operator], Any]) -> None:
    before = everything(scene)
    with pytest.raises(HeadwayError):
        fail(operator_of(scene))
    assert (everything(scene), noted(scene)) == (before, [])


def test_an_action_that_cannot_be_noted_is_not_done(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = everything(scene)

    def fail(*_: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("headway.definition.acting.audit.note", fail)
    for operation in OPERATIONS.values():
        with pytest.raises(OSError, match="disk"):
            operation.call(operator_of(scene))
    assert everything(scene) == before


def test_a_letter_resolved_meanwhile_is_left_and_not_noted(scene: Scene) -> None:
    alice, bob = operator_of(scene), operator_of(scene, "bob")
    assert alice.dead_letters.acknowledge(1).success
    assert not bob.dead_letters.requeue(1).success
    assert bob.dead_letters.requeue_many([1]).count == 0
    assert [row.actor for row in noted(scene)] == ["alice"]


def test_several_actions_are_done_together_or_not_at_all(scene: Scene) -> None:
    before = everything(scene)
    with pytest.raises(HeadwayError), operator_of(scene).together() as alice:
        alice.disable("extract")
        alice.trigger("nothing")
    assert (everything(scene), noted(scene)) == (before, [])
    with operator_of(scene).together() as alice:
        alice.disable("extract")
        with pytest.raises(HeadwayError):
            alice.trigger("nothing")
        alice.cancel("extract")
    assert [row.action for row in noted(scene)] == ["manifest.disable", "manifest.cancel"]


def test_what_fails_among_others_leaves_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("the disk is full")

    with operator_of(scene).together() as alice:
        with monkeypatch.context() as broken, pytest.raises(OSError, match="disk"):
            broken.setattr("headway.definition.acting.audit.note", fail)
            alice.disable("extract")
        alice.enable("resting")
    assert scene.manifest("extract").enabled and scene.manifest("resting").enabled
    assert [row.action for row in noted(scene)] == ["manifest.enable"]


def test_the_audit_names_the_entry_and_never_the_input(scene: Scene) -> None:
    @scene.app.workflow
    def pay(card: str) -> None: ...

    entry = operator_of(scene).enqueue("pay", "4111-1111")
    operator_of(scene).cancel(entry=entry, reason="x" * 10_000)
    enqueued, cancelled = noted(scene)
    assert json.loads(enqueued.detail) == {"entry": entry}
    assert len(json.loads(cancelled.detail)["reason"]) <= 200
    assert "4111" not in str(noted(scene))


def test_who_acts_has_a_name(scene: Scene) -> None:
    for name in ("", " ", "a\nb", "x" * 300):
        with pytest.raises(DefinitionError, match="operator = "):
            operator_of(scene, name)


def test_an_application_hands_out_operators(scene: Scene) -> None:
    hw = Headway("tests", database_url=scene.url)
    try:
        assert hw.operator("alice").trigger_group("reports") == 1
        assert hw.rerun(1) > 0
    finally:
        hw.runtime.store.close()
    assert [row.action for row in noted(scene)] == ["group.trigger"]


def version(scene: Scene, table: Table, chosen: ColumnElement[bool]) -> str:
    with scene.store.reading() as tx:
        updated_at = tx.connection.execute(select(table.c.updated_at).where(chosen)).scalar_one()
    return version_of(updated_at)


def test_an_edit_needs_the_version_that_was_read(scene: Scene) -> None:
    alice = operator_of(scene)
    of_loads = (scene, manifest_group, manifest_group.c.name == "loads")
    read = version(*of_loads)
    alice.set_group("loads", priority=3, expected=read)
    assert version(*of_loads) > read, "also while the clock stands still"
    with pytest.raises(ChangedMeanwhile, match="group 'loads' was changed") as refused:
        alice.set_group("loads", priority=4, expected=read)
    assert refused.value.version == version(*of_loads)
    alice.set_group("loads", priority=4, expected=refused.value.version)
    alice.set_group("loads", priority=5)


def test_a_switch_needs_the_version_that_was_read(scene: Scene) -> None:
    alice = operator_of(scene)
    of_extract = (scene, manifest, manifest.c.external_id == "extract")
    read = version(*of_extract)
    alice.disable("extract", expected=read)
    with pytest.raises(ChangedMeanwhile, match="manifest 'extract' was changed"):
        alice.enable("extract", expected=read)
    assert not scene.manifest("extract").enabled
    alice.enable("extract", expected=version(*of_extract))
    assert scene.manifest("extract").enabled


def test_of_two_with_the_same_expectation_one_wins(scene: Scene) -> None:
    read = version(scene, manifest_group, manifest_group.c.name == "loads")
    begin = threading.Barrier(8)

    def edit(number: int) -> bool:
        with closing(Store(scene.url)) as store:
            someone = Operator(f"person-{number}", Runtime("tests", scene.app.registry, store))
            begin.wait()
            try:
                someone.set_group("loads", priority=number, expected=read)
            except ChangedMeanwhile:
                return False
            return True

    with ThreadPoolExecutor(8) as people:
        won = list(people.map(edit, range(1, 9)))
    assert sum(won) == 1
    [group] = [one for one in scene.history.groups.all() if one.name == "loads"]
    assert won.index(True) + 1 == group.priority
    assert [row.actor for row in noted(scene)] == [f"person-{group.priority}"]
