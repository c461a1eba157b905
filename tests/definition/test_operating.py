"""What operators do: the effect of the Python verb, one row in the audit, both or neither."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import ColumnElement, Table, select

from headway import Headway
from headway.definition.operating import Operator
from headway.definition.runtime import Runtime
from headway.domain.idempotency import request_digest
from headway.domain.versions import version_of
from headway.errors import ChangedMeanwhile, DefinitionError, HeadwayError
from headway.store import dead_letters
from headway.store.dead_letters import NewDeadLetter
from headway.store.engine import Store
from headway.store.reading import queue
from headway.store.tables import manifest, manifest_group
from tests.builders import Scene
from tests.databases import Schemas, database_url, migrated_copy, postgres_url, sqlite_url
from tests.operations import (
    CAPTURE,
    MADE_UP,
    OBJECTIVE,
    OPERATIONS,
    Operation,
    cancel,
    everything,
    noted,
    open_for_business,
)
from tests.runtime_verbs import FINISHED, runtime_of

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
    "one letter instead of a list": lambda on: on.dead_letters.acknowledge_many(7),  # type: ignore[arg-type]
    "an objective without a title": lambda on: on.azolla.objective(""),
    "no such objective": lambda on: on.azolla.update("nothing", urgency=1),
    "no such blocker": lambda on: on.azolla.resolve("nothing"),
    "not parked": lambda on: on.azolla.unpark("nothing"),
}


DIGEST = request_digest("POST", "/x", b"{}")
# What the audit tells beside action and subject; ids that are made up end in an ellipsis.
TOLD: dict[str, dict[str, Any]] = {
    "trigger": {"entry": 4, "delay": 300.0},
    "trigger_group": {"queued": 1},
    "enqueue": {"entry": 4},
    "rerun": {"entry": 4},
    "cancel a manifest": {"cancelled": 0, "requested": 1},
    "cancel a group": {"cancelled": 0, "requested": 2},
    "cancel an execution": {"cancelled": 0, "requested": 1},
    "cancel an entry": {"cancelled": 0, "requested": 1},
    "set_group": {"set": {"max_active_jobs": 2, "priority": 9, "enabled": False}},
    "requeue": {"entry": 4, "note": "back"},
    "requeue_many": {"count": 2, "letters": [1, 2]},
    "requeue_all": {"count": 2, "workflow": "work"},
    "acknowledge": {"note": "known"},
    "acknowledge_many": {"count": 2, "letters": [1, 2]},
    "acknowledge_all": {"count": 1, "group": "loads", "note": "known"},
    "capture": {"capture": "capture-…", "text": "orders look low"},
    "mark_processed": {"count": 1},
    "objective": {"objective": "sweep", "objective_id": "sweep", "urgency": 3},
    "update": {"set": {"status": "DONE"}},
    "block": {"blocker": "blocker-…", "kind": "USER_INPUT", "for": "which?"},
    "request_manifest": {"event": "event-…"},
}
Call = Callable[[Any], Any]
RAN, LETTER = 4, 3  # of ``sum``, whose input is a number
WITH_EVERY_OPTION: dict[str, tuple[Call, dict[str, Any]]] = {
    "trigger": (
        lambda on: on.trigger("sum", 7, delay=timedelta(minutes=5), max_attempts=3),
        {"entry": 5, "delay": 300.0, "other_input": True},
    ),
    "enqueue": (lambda on: on.enqueue("count", 7, priority=4, max_attempts=3), {"entry": 5}),
    "rerun": (lambda on: on.rerun(RAN, 8, max_attempts=2), {"entry": 5, "other_input": True}),
    "cancel": (
        lambda on: cancel(on, entry=2, reason="wrong day"),
        {"cancelled": 0, "requested": 1, "reason": "wrong day"},
    ),
    "requeue": (
        lambda on: on.dead_letters.requeue(LETTER, "mended", input=9),
        {"entry": 5, "note": "mended", "other_input": True},
    ),
    "requeue_many": (
        lambda on: on.dead_letters.requeue_many([1, LETTER], "mended"),
        {"count": 2, "letters": [1, LETTER], "note": "mended"},
    ),
    "requeue_all of a group": (
        lambda on: on.dead_letters.requeue_all("mended", group="loads"),
        {"count": 1, "group": "loads", "note": "mended"},
    ),
    "requeue_all of a workflow": (
        lambda on: on.dead_letters.requeue_all("mended", workflow="count"),
        {"count": 1, "workflow": "count", "note": "mended"},
    ),
    "acknowledge_many": (
        lambda on: on.dead_letters.acknowledge_many([1, LETTER], "known"),
        {"count": 2, "letters": [1, LETTER], "note": "known"},
    ),
    "acknowledge_all": (
        lambda on: on.dead_letters.acknowledge_all("known", workflow="count"),
        {"count": 1, "workflow": "count", "note": "known"},
    ),
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


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_audit_tells_what_was_done(scene: Scene, name: str) -> None:
    OPERATIONS[name].call(operator_of(scene))
    assert detail_of(scene) == TOLD.get(name)


@pytest.mark.parametrize("name", WITH_EVERY_OPTION)
def test_an_action_passes_every_option_on_and_tells_of_them(
    scene: Scene, twin: Scene, name: str
) -> None:
    call, told = WITH_EVERY_OPTION[name]
    for one in (scene, twin):
        add_sums(one)
    before = everything(scene)
    call(operator_of(scene))
    call(runtime_of(twin))
    assert everything(scene) == everything(twin) != before
    assert detail_of(scene) == told


def test_the_audit_tells_how_a_run_had_ended_that_was_to_be_cancelled(scene: Scene) -> None:
    operator_of(scene).cancel(execution=FINISHED)
    assert detail_of(scene) == {"cancelled": 0, "requested": 0, "finished": "completed"}


def test_what_is_captured_comes_from_who_noted_it(scene: Scene) -> None:
    assert operator_of(scene).azolla.capture("orders look low").source_label == "alice"


def test_captures_that_were_processed_already_are_not_noted(scene: Scene) -> None:
    alice = operator_of(scene)
    assert (alice.azolla.mark_processed(CAPTURE), alice.azolla.mark_processed(CAPTURE)) == (1, 0)
    assert detail_of(scene) == {"count": 1}


def test_an_objective_is_changed_only_if_it_has_the_version_expected(scene: Scene) -> None:
    with pytest.raises(ChangedMeanwhile, match=OBJECTIVE):
        operator_of(scene).azolla.update(OBJECTIVE, urgency=1, expected="0")
    assert noted(scene) == []


def test_what_is_done_together_is_read_together(scene: Scene) -> None:
    """A request that is done once reads what it has just written."""
    with operator_of(scene).once("key-1", DIGEST) as once:
        entry = once.operator.trigger("report")
        with once.transactions.reading() as tx:
            assert entry in [one.id for one in queue.list_queued(tx)]


def add_sums(scene: Scene) -> None:
    """A manifest whose input is a number, with a run that has ended and a dead letter."""

    @scene.app.workflow
    def count(number: int) -> None: ...

    scene.app.schedule("count", "sum", 1, group="sums")
    scene.apply()
    runtime_of(scene).trigger("sum")
    scene.dispatch()
    scene.run()
    assert scene.execution(RAN).external_id == "sum"
    with scene.store.writing() as tx:
        dead_letters.create(tx, [NewDeadLetter(scene.ids_of("sum")[0], "broken", 1)])


def detail_of(scene: Scene) -> Any:
    """What the only row of the audit tells."""
    [row] = noted(scene)
    return None if row.detail is None else json.loads(MADE_UP.sub(r"\1-…", row.detail))


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
