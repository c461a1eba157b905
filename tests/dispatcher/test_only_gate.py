"""Nothing but the dispatcher makes executions: every source passes the queue, and its limits."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from headway import Group, Run, every
from headway.domain.execution import ExecutionState
from headway.domain.work_queue import NewEntry, Source
from headway.store import resolution, triggers
from tests.builders import Scene

SOURCE = Path(__file__).parents[2] / "src" / "headway"
WRITERS = {"insert", "insert_or_ignore", "insert_rows", "_copy"}
GATE = {"dispatch", "dispatch_each"}


def calls(module: Path) -> list[ast.Call]:
    tree = ast.parse(module.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def named(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def modules_where(found: object) -> set[str]:
    assert callable(found)
    return {
        str(module.relative_to(SOURCE))
        for module in SOURCE.rglob("*.py")
        if any(found(call) for call in calls(module))
    }


def test_one_verb_inserts_executions() -> None:
    def inserts(call: ast.Call) -> bool:
        through_verb = named(call.func) in WRITERS and "execution" in map(named, call.args)
        through_table = named(call.func) == "insert" and (
            isinstance(call.func, ast.Attribute) and named(call.func.value) == "execution"
        )
        return through_verb or through_table

    assert modules_where(inserts) == {"store/folding.py"}
    folds = modules_where(lambda call: named(call.func) == "fold_entries")
    assert folds == {"store/dispatching.py"}
    folds_at_once = modules_where(lambda call: named(call.func) == "fold_found")
    assert folds_at_once == {"store/starting_all.py"}
    texts = {
        str(module.relative_to(SOURCE))
        for module in SOURCE.rglob("*.py")
        if "INSERT INTO headway_execution " in module.read_text(encoding="utf-8")
    }
    assert texts == set()


def test_only_the_dispatcher_calls_it() -> None:
    def dispatches(call: ast.Call) -> bool:
        return named(call.func) in GATE

    assert modules_where(dispatches) == {"dispatcher/steps.py", "store/dispatching.py"}


def test_only_the_dispatcher_starts_all_at_once() -> None:
    """Whoever hears of it asks the dispatcher, who asks the store."""
    starting = modules_where(lambda call: named(call.func) == "start_all")
    assert starting == {"dispatcher/at_once.py", "hints.py"}


def ask(scene: Scene, source: Source) -> None:
    """Have one entry queued in the way this source does it."""
    if source is Source.TRIGGER:
        with scene.store.writing() as tx:
            triggers.trigger(tx, "load", None)
    elif source is Source.REQUEUE:
        scene.failing.add("load")
        for _ in range(3):
            scene.trigger("load")
            scene.dispatch()
            scene.run()
        scene.manage()
        with scene.store.writing() as tx:
            resolution.requeue(tx, resolution.Waiting(), None)
    elif source in (Source.ACTIVATION, Source.DEPENDENT):
        with scene.store.writing() as tx:
            triggers.trigger(tx, "parent", None)
        scene.dispatch()
        scene.run()
        scene.manage()
    elif source is Source.SCHEDULE:
        scene.clock.advance(days=10)
        scene.manage()
    else:
        manifest_id, group_id = scene.ids_of("load") if source is Source.RERUN else (None, None)
        scene.enqueue(NewEntry("work", source, "null", manifest_id=manifest_id, group_id=group_id))


@pytest.mark.parametrize("source", list(Source))
def test_every_source_waits_in_the_queue_for_a_slot(scene: Scene, source: Source) -> None:
    def parent(run: Run) -> None:
        run.activate("dormant", None)

    scene.app.workflow("parent")(parent)
    scene.configure(max_active_jobs=1)
    scene.app.schedule("work", "load", None, every(days=9), group=Group("all"))
    root = scene.app.schedule("parent", "parent", None, every(days=9), group=Group("all"))
    root.include("work", "dormant", None, dormant=True, group="later")
    root.include("work", "child", None, group="later")
    scene.apply()
    scene.manage()
    while scene.dispatch().dispatched:
        scene.run()
    before = {one.id for one in scene.history.executions.all()}
    ask(scene, source)

    queued = [one for one in scene.history.queue.all() if one.source == source]
    assert len(queued) >= 1
    live = scene.history.executions.all(states=[ExecutionState.PENDING, ExecutionState.IN_PROGRESS])
    assert live == []
    made = {one.source for one in scene.history.executions.all() if one.id not in before}
    assert source not in made
    wanted = {one.id for one in queued}
    for _ in range(20):
        assert len(scene.dispatch().dispatched) <= 1
        assert scene.dispatch().dispatched == (), "one slot, whoever asks"
        scene.run()
    assert wanted <= {one.entry_id for one in scene.history.executions.all()}
