"""docs/reference/events.md and the code name the same events with the same fields."""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from headway.domain.execution import ExecutionState
from headway.history import Retained
from headway.manager.cycle import ManagerResult
from headway.store.declarations import Applied

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "events.md"

# What a variable part of an event's name may be, and the fields behind a ** argument.
EXPANSIONS = {"execution.{}": sorted(state for state in ExecutionState if state.terminal)}
TOLD = {"execution_id", "external_id", "group", "workflow", "seconds", "failure"}
SPREAD = {
    "declaration.applied": {field.name for field in fields(Applied)} - {"outdated"},
    "manager.cycle": {field.name for field in fields(ManagerResult) if field.type is int},
    "retention.pass": {field.name for field in fields(Retained)} - {"more"},
    "execution.started": TOLD,
    "execution.refused": TOLD,
    **{f"execution.{state}": TOLD for state in ExecutionState if state.terminal},
}


def documented() -> dict[str, set[str]]:
    rows = re.findall(r"^\| `([\w.]+)` \| .+? \| (.+?) \|$", PAGE.read_text("utf-8"), re.M)
    return {name: set(re.findall(r"`(\w+)`", listed)) for name, listed in rows}


def emitted() -> dict[str, set[str]]:
    events: dict[str, set[str]] = {}
    for module in sorted((ROOT / "src" / "headway").rglob("*.py")):
        for call in emit_calls(ast.parse(module.read_text("utf-8"))):
            for name in event_names(call.args[0]):
                named = {word.arg for word in call.keywords if word.arg is not None}
                spread = SPREAD[name] if len(named) < len(call.keywords) else set()
                events.setdefault(name, set()).update(named | spread)
    return events


def emit_calls(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".emit"):
            yield node


def event_names(argument: ast.expr) -> list[str]:
    if isinstance(argument, ast.Constant):
        return [str(argument.value)]
    assert isinstance(argument, ast.JoinedStr), ast.unparse(argument)
    parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in argument.values]
    pattern = "".join(map(str, parts))
    return [pattern.format(value) for value in EXPANSIONS[pattern]]


def test_there_are_events_to_compare() -> None:
    assert {"manager.cycle", "execution.completed", "execution.failed"} <= emitted().keys()


def test_page_and_code_agree_on_every_event_and_its_fields() -> None:
    assert documented() == emitted()
