"""Steps of isolated workflows by module and name, and why one cannot be sent like that."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

from headway.definition import isolated_steps
from headway.definition.registry import Registry
from headway.domain.isolation import Isolation
from headway.errors import DefinitionError
from headway.observe import Observer
from headway.workflow import Workflow
from tests.builders import Recorder


def find(table: str) -> list[int]:
    return [len(table)]


def store(rows: list[int]) -> None: ...


def replaced(table: str) -> None: ...


earlier = replaced


def another(table: str) -> None: ...


replaced = another


class Unsent:
    """A callable that holds what no other process can have."""

    def __init__(self) -> None:
        self.held: Callable[[], None] = lambda: None

    def __call__(self, table: str) -> None: ...


FINDS_ANOTHER = (
    f"workflow 'found': isolated = True: step 'replaced': its process finds another object as "
    f"{__name__}.replaced, because of a second def of this name or a decorator above "
    "@hw.workflow; give the function a name of its own and write @hw.workflow above all other "
    "decorators"
)


@pytest.fixture
def registry() -> Registry:
    registry = Registry()
    registry.register("fine", (find, store), dict, Isolation())
    registry.register("found", (earlier,), dict, Isolation())
    registry.register("unsent", (Unsent(),), dict, Isolation())
    registry.register("here", (Unsent(),), dict)
    return registry


def test_steps_are_sent_by_their_names_in_their_order() -> None:
    sent = isolated_steps.pickled(Workflow("import", (find, store), dict))
    assert pickle.loads(sent) == (find, store)  # noqa: S301 (written above)


def test_a_step_that_another_process_cannot_import_is_told_with_the_reason(
    registry: Registry,
) -> None:
    found = isolated_steps.problems(registry, registry.names())
    assert list(found) == ["found", "unsent"]
    assert str(found["found"]) == FINDS_ANOTHER
    unsent = str(found["unsent"])
    assert unsent.startswith(
        "workflow 'unsent': isolated = True: step 'Unsent': its process cannot import it ("
    )
    assert "lambda" in unsent and "\n" not in unsent
    assert unsent.endswith("define it with def at the top of a module, under its own name")
    with pytest.raises(DefinitionError) as refused:
        isolated_steps.pickled(registry.find("found").workflow)
    assert str(refused.value) == FINDS_ANOTHER


def test_a_worker_warns_of_those_it_runs(registry: Registry) -> None:
    observer = Observer()
    events = Recorder(observer)
    isolated_steps.warn(registry, ["fine", "found", "here"], observer)
    assert [(one.name, one.fields) for one in events.events] == [
        ("workflow.unimportable", {"workflow": "found", "reason": FINDS_ANOTHER})
    ]
