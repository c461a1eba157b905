"""Python calls with NUL or lone surrogates end in one line, on either database."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from pydantic import BaseModel

from headway import Headway, every
from headway.domain.execution import ExecutionState
from headway.errors import DefinitionError, GroupNotFound, HeadwayError, ManifestNotFound
from tests.builders import Scene
from tests.databases import database_url, postgres_url, sqlite_url

__all__ = ["database_url", "postgres_url", "sqlite_url"]

ODD = ["a\x00b", "\ud800"]


class Table(BaseModel):
    """What the workflow ``load`` takes."""

    name: str


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url) as made:

        @made.app.workflow
        def load(table: Table) -> None: ...

        made.app.schedule(load, "users", Table(name="users"), every(hours=1), group="loads")
        made.apply()
        yield made
        made.app.runtime.store.close()


CALLS: dict[str, tuple[Callable[[Headway, str], object], type[HeadwayError]]] = {
    "enqueue": (lambda hw, odd: hw.enqueue("load", Table(name=odd)), DefinitionError),
    "enqueue_many": (lambda hw, odd: hw.enqueue_many("load", [Table(name=odd)]), DefinitionError),
    "schedule": (
        lambda hw, odd: hw.schedule("load", "x", Table(name=odd), every(hours=1)),
        DefinitionError,
    ),
    "external id": (
        lambda hw, odd: hw.schedule("load", odd, Table(name="x"), every(hours=1)),
        DefinitionError,
    ),
    "trigger with input": (lambda hw, odd: hw.trigger("users", Table(name=odd)), DefinitionError),
    "trigger": (lambda hw, odd: hw.trigger(odd), ManifestNotFound),
    "trigger later": (lambda hw, odd: hw.trigger(odd, delay=timedelta(1)), ManifestNotFound),
    "trigger_group": (lambda hw, odd: hw.trigger_group(odd), GroupNotFound),
    "enable": (lambda hw, odd: hw.enable(odd), ManifestNotFound),
    "disable": (lambda hw, odd: hw.disable(odd), ManifestNotFound),
    "set_group": (lambda hw, odd: hw.set_group(odd, priority=3), HeadwayError),
    "unschedule": (lambda hw, odd: hw.unschedule(odd), ManifestNotFound),
    "cancel": (lambda hw, odd: hw.cancel(odd), ManifestNotFound),
    "cancel a group": (lambda hw, odd: hw.cancel(group=odd), GroupNotFound),
    "reason": (lambda hw, odd: hw.cancel("users", reason=odd), DefinitionError),
    "note": (lambda hw, odd: hw.dead_letters.acknowledge(7, odd), DefinitionError),
    "letters of a group": (lambda hw, odd: hw.dead_letters.requeue_all(group=odd), DefinitionError),
    "capture": (lambda hw, odd: hw.azolla.capture(odd), DefinitionError),
    "objective": (lambda hw, odd: hw.azolla.objective(odd), DefinitionError),
    "operator": (lambda hw, odd: hw.operator(odd), DefinitionError),
    "audited": (lambda hw, odd: hw.operator("alice").trigger(odd), ManifestNotFound),
    "token": (lambda hw, odd: hw.operator("alice").tokens.create(odd, "read"), DefinitionError),
}


@pytest.mark.parametrize("odd", ODD, ids=["NUL", "surrogate"])
@pytest.mark.parametrize("call", CALLS)
def test_a_call_is_refused_in_one_line(scene: Scene, call: str, odd: str) -> None:
    act, kind = CALLS[call]
    with pytest.raises(kind) as refused:
        act(scene.app, odd)
    told = str(refused.value)
    assert "\n" not in told and told.encode() and "\x00" not in told


@pytest.mark.parametrize("levels", [33, 500, 700, 900, 5000])
def test_an_input_nested_hundreds_deep_is_refused_in_one_line(scene: Scene, levels: int) -> None:
    deep: object = 1
    for _ in range(levels):
        deep = [deep]
    for wrong in (deep, {"name": deep}):
        with pytest.raises(DefinitionError) as refused:
            scene.app.enqueue("load", wrong)
        assert len(str(refused.value)) < 400 and "\n" not in str(refused.value)


def test_an_output_with_odd_text_is_kept_and_the_run_is_completed(scene: Scene) -> None:
    odd = {"rows": "a\x00\ud800"}
    scene.app.workflow("give", keep_output=True)(lambda: odd)
    execution_id = scene.pending("give")
    scene.run()
    ended = scene.execution(execution_id)
    assert ended.state is ExecutionState.COMPLETED
    assert ended.output is not None and json.loads(ended.output) == odd


def test_an_output_that_cannot_be_kept_because_of_its_keys_is_told_in_one_line(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.app.workflow("give", keep_output=True)(lambda: {"a": {"\ud800\n": 1}})
    execution_id = scene.pending("give")
    scene.run()
    assert scene.execution(execution_id).state is ExecutionState.COMPLETED
    for one in caplog.records:
        assert one.getMessage().encode()


def test_a_run_queued_earlier_with_odd_text_still_runs(scene: Scene) -> None:
    execution_id = scene.pending("load", json.dumps({"name": "a\x00\ud800"}))
    scene.run()
    assert scene.execution(execution_id).state is ExecutionState.COMPLETED


NAMED = (
    "trigger",
    "trigger later",
    "trigger_group",
    "enable",
    "disable",
    "unschedule",
    "cancel",
    "cancel a group",
)


@pytest.mark.parametrize("wrong", [["users"], 7, None], ids=["list", "number", "None"])
@pytest.mark.parametrize("call", NAMED)
def test_a_name_that_is_no_text_is_not_found(scene: Scene, call: str, wrong: object) -> None:
    act, kind = CALLS[call]
    with pytest.raises(HeadwayError) as refused:
        act(scene.app, wrong)  # type: ignore[arg-type]
    assert isinstance(refused.value, kind) or wrong is None
    assert "\n" not in str(refused.value)
