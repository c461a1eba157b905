"""hw.azolla: what people note about a deployment, and what it answers to nonsense."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headway import Headway
from headway.definition.azolla import Azolla
from headway.definition.requests import request_page
from headway.domain.azolla.artifacts import (
    BlockerKind,
    CaptureStatus,
    ObjectiveStatus,
    ObjectiveType,
    PauseReason,
    PauseState,
)
from headway.domain.versions import version_of
from headway.errors import ChangedMeanwhile, DefinitionError
from headway.store import objectives, pause_states
from headway.store.tables import event
from tests.builders import Scene
from tests.databases import database_url, postgres_url, sqlite_url
from tests.runtime_verbs import runtime_of
from tests.store.factories import everything, rows_of

__all__ = ["database_url", "postgres_url", "sqlite_url"]


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url) as scene:
        yield scene


@pytest.fixture
def desk(scene: Scene) -> Azolla:
    return Azolla("tests", scene.store)


def test_it_is_reached_by_the_application(scene: Scene) -> None:
    hw = Headway("shop", database_url=scene.url)
    one = hw.azolla.capture("orders look too low")
    assert [note.capture_id for note in hw.azolla.captures()] == [one.capture_id]
    assert one.azolla_id == "shop"
    hw.runtime.store.close()


def test_a_capture_waits_until_it_is_marked(desk: Azolla) -> None:
    first, second = desk.capture("orders look low"), desk.capture("so do sales", source="standup")
    assert (first.source_label, second.source_label) == ("operator", "standup")
    assert {one.capture_id for one in desk.captures()} == {first.capture_id, second.capture_id}
    assert desk.mark_processed(first.capture_id, "nobody") == 1
    assert desk.mark_processed(first.capture_id) == 0
    assert desk.captures() == [second]
    processed = [one for one in desk.captures(processed=True) if one != second]
    assert [one.status for one in processed] == [CaptureStatus.PROCESSED]


def test_notes_have_the_id_the_deployment_has(scene: Scene, desk: Azolla) -> None:
    with scene.store.writing() as tx:
        objectives.ensure_standing(tx, "berlin", "warehouse")
    assert desk.capture("note").azolla_id == "berlin"
    assert desk.objective("clean").azolla_id == "berlin"


def test_before_the_first_start_it_takes_the_name_of_the_application(desk: Azolla) -> None:
    assert desk.capture("note").azolla_id == "tests"
    [standing] = desk.objectives()
    assert standing.objective_type is ObjectiveType.STANDING


def test_an_objective_is_what_was_said(scene: Scene, desk: Azolla) -> None:
    one = desk.objective(
        "clean the tables",
        acceptance_criteria="none is older than a week",
        status="todo",
        importance=2,
        urgency=3,
    )
    assert one in desk.objectives()
    assert (one.status, one.importance, one.urgency) == (ObjectiveStatus.TODO, 2, 3)
    assert one.acceptance_criteria == "none is older than a week"
    assert (one.created_at, one.updated_at) == (scene.clock.now, scene.clock.now)
    assert desk.objectives(status="TODO") == [one]
    assert desk.objectives(status="done") == []


def test_an_objective_that_was_changed_meanwhile_stays_as_it_is(desk: Azolla) -> None:
    seen = desk.objective("clean", objective_id="clean")
    changed = desk.update("clean", urgency=1, expected=version_of(seen.updated_at))
    assert changed.updated_at > seen.updated_at, "although the clock stands still"
    with pytest.raises(ChangedMeanwhile, match="objective 'clean'"):
        desk.update("clean", urgency=2, expected=version_of(seen.updated_at))
    assert desk.objectives()[0] == changed


def test_changing_one_leaves_the_rest(scene: Scene, desk: Azolla) -> None:
    one = desk.objective("clean", objective_id="clean", urgency=3)
    scene.clock.advance(hours=1)
    changed = desk.update("clean", status="BLOCKED", blocked_reason="no access")
    changes = {
        "status": ObjectiveStatus.BLOCKED,
        "blocked_reason": "no access",
        "updated_at": scene.clock.now,
    }
    assert changed == one.model_copy(update=changes)
    assert desk.update("clean", blocked_reason=None).blocked_reason is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("title", "clean them all"),
        ("acceptance_criteria", "none is left"),
        ("acceptance_criteria", ""),
        ("importance", 4),
        ("urgency", 2),
    ],
)
def test_every_field_can_be_changed_by_itself(
    scene: Scene, desk: Azolla, field: str, value: Any
) -> None:
    one = desk.objective("clean", objective_id="clean", acceptance_criteria="none is old")
    scene.clock.advance(hours=1)
    change: dict[str, Any] = {field: value}
    changed = desk.update("clean", **change)
    assert changed == one.model_copy(update=change | {"updated_at": scene.clock.now})
    assert desk.objectives()[0] == changed


def test_the_standing_objective_may_be_changed_but_not_closed(desk: Azolla) -> None:
    desk.capture("so that there is one")
    assert desk.update("standing", status="IN_PROGRESS", urgency=3).urgency == 3
    with pytest.raises(DefinitionError, match="status = TODO: the standing objective stays"):
        desk.update("standing", status="TODO")


def test_of_more_than_are_asked_for_the_newest_are_listed(scene: Scene, desk: Azolla) -> None:
    for name in ("first", "second", "third"):
        desk.capture(name)
        desk.objective(name, objective_id=name)
        pause = PauseState(
            objective_id=name,
            azolla_id="tests",
            reason=PauseReason.GATE_FAILED,
            prioritized_actions=("look",),
            created_at=scene.clock.now,
        )
        with scene.store.writing() as tx:
            pause_states.add(tx, [(f"pause-{name}", pause)])
        scene.clock.advance(minutes=1)
    assert [one.raw_content for one in desk.captures(limit=2)] == ["third", "second"]
    assert [one.objective_id for one in desk.objectives(limit=2)] == ["third", "second"]
    assert [one.objective_id for one in desk.pause_states(limit=2)] == ["third", "second"]


def test_a_request_gives_a_deployment_that_never_started_its_objective(scene: Scene) -> None:
    event_id = request_page(runtime_of(scene))
    [row] = rows_of(scene.store, event)
    told = {name: row[name] for name in ("event_id", "type", "resource_id", "azolla_id")}
    assert told == {
        "event_id": event_id,
        "type": "MANIFEST_REQUESTED",
        "resource_id": "tests",
        "azolla_id": "tests",
    }
    assert row["created_at"] == scene.clock.now
    with scene.store.reading() as tx:
        assert objectives.find_standing(tx) is not None


def test_a_request_names_the_deployment_as_the_registry_does(scene: Scene) -> None:
    with scene.store.writing() as tx:
        objectives.ensure_standing(tx, "berlin", "warehouse")
    request_page(runtime_of(scene))
    [row] = rows_of(scene.store, event)
    assert (row["resource_id"], row["azolla_id"]) == ("berlin", "berlin")


def test_blocking_and_resolving(desk: Azolla) -> None:
    desk.objective("clean", objective_id="clean", status="IN_PROGRESS")
    blocker = desk.block("clean", "user-input", "which tables may go?")
    told = (blocker.kind, blocker.description, blocker.resolved)
    assert told == (BlockerKind.USER_INPUT, "which tables may go?", False)
    [blocked] = desk.objectives(status="BLOCKED")
    assert blocked.blocked_on == (blocker,)
    desk.resolve(blocker.blocker_id)
    [going_on] = desk.objectives(status="TODO")
    assert going_on.blocked_on[0].resolved


def test_pause_states_by_their_reason(scene: Scene, desk: Azolla) -> None:
    desk.capture("so that there is a standing objective")
    scene.app.settings = scene.app.settings.model_copy(update={"default_max_retries": 1})
    scene.failing.add("load-users")
    scene.app.schedule("work", "load-users", None)
    scene.apply()
    scene.trigger("load-users")
    scene.dispatch()
    scene.run()
    scene.manage()
    [pause] = desk.pause_states(reason="gate-failed")
    assert pause.reason is PauseReason.GATE_FAILED
    assert "of load-users: RuntimeError: told to fail" in pause.prioritized_actions[0]
    assert desk.pause_states(reason="RUN_COMPLETE") == []


@pytest.fixture
def a_blocked_objective(desk: Azolla) -> None:
    desk.objective("clean", objective_id="clean")
    desk.block("clean", "USER_INPUT", "which?")


Act = Callable[[Azolla], Any]
REFUSED: dict[str, tuple[Act, str]] = {
    "no text": (lambda desk: desk.capture(""), "capture text = ''"),
    "blank text": (lambda desk: desk.capture(" \n"), "capture text = ' \\n'"),
    "no string": (lambda desk: desk.capture(7), "capture text = 7"),  # type: ignore[arg-type]
    "endless text": (lambda desk: desk.capture("x" * 20_001), "must have at most 20,000"),
    "no source": (lambda desk: desk.capture("x", source=""), "capture source = ''"),
    "too many": (lambda desk: desk.captures(limit=1001), "limit = 1001"),
    "too few": (lambda desk: desk.pause_states(limit=0), "limit = 0"),
    "true": (lambda desk: desk.objectives(limit=True), "limit = True"),
    "no title": (lambda desk: desk.objective(" "), "title = ' '"),
    "endless title": (lambda desk: desk.objective("x" * 301), "must have at most 300"),
    "urgency": (lambda desk: desk.objective("x", urgency=5), "urgency = 5"),
    "importance": (lambda desk: desk.objective("x", importance=-1), "importance = -1"),
    "status": (lambda desk: desk.objective("x", status="open"), "status = 'open'"),
    "taken": (lambda desk: desk.objective("x", objective_id="clean"), "there is one already"),
    "the standing id": (lambda desk: desk.objective("x", objective_id="standing"), "already"),
    "id": (lambda desk: desk.objective("x", objective_id="a\nb"), "id = 'a\\nb'"),
    "long id": (lambda desk: desk.objective("x", objective_id="x" * 201), "at most 200"),
    "status asked": (lambda desk: desk.objectives(status="open"), "status = 'open'"),
    "reason asked": (lambda desk: desk.pause_states(reason="tired"), "reason = 'tired'"),
    "nothing": (lambda desk: desk.update("clean"), "nothing to change"),
    "nobody": (lambda desk: desk.update("nobody", urgency=1), "objective = 'nobody'"),
    "block nobody": (lambda desk: desk.block("nobody", "USER_INPUT", "x"), "objective = 'nobody'"),
    "kind": (lambda desk: desk.block("clean", "WEATHER", "x"), "kind = 'WEATHER'"),
    "no reason": (lambda desk: desk.block("clean", "USER_INPUT", ""), "description = ''"),
    "no blocker": (lambda desk: desk.resolve("nobody"), "blocker = 'nobody'"),
    "standing": (lambda desk: desk.update("standing", status="DONE"), "stays IN_PROGRESS"),
    "not parked": (lambda desk: desk.unpark("nobody"), "event = 'nobody': is not parked"),
    "capture id": (lambda desk: desk.mark_processed(""), "capture = ''"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_nonsense_is_refused_in_one_line_and_changes_nothing(
    scene: Scene, desk: Azolla, a_blocked_objective: None, case: str
) -> None:
    act, said = REFUSED[case]
    before = everything(scene.store)
    with pytest.raises(DefinitionError) as refused:
        act(desk)
    assert said in str(refused.value)
    assert len(str(refused.value)) < 250 and "\n" not in str(refused.value)
    assert everything(scene.store) == before


def test_any_text_is_stored(desk: Azolla) -> None:
    wild = "a\x01b \x1b[31m ü\nnext"
    note = desk.capture(wild)
    assert desk.captures() == [note]
    assert note.raw_content == "a\\x01b \\x1b[31m ü\nnext"
    one = desk.objective(wild)
    assert one in desk.objectives()
