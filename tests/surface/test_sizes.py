"""Modules and functions stay small enough to be read, and are named after what they do."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "headway"
MODULES = sorted(SOURCE.rglob("*.py"))

# A file is about one subject; past the first number it is worth asking whether it is still one.
WARN_MODULE_LINES = 600
MAX_MODULE_LINES = 800
MAX_FUNCTION_LINES = 50
BUCKETS = {"utils", "util", "helpers", "helper", "common"}


def functions(module: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_there_are_modules_to_measure() -> None:
    assert MODULES


@pytest.mark.filterwarnings("default")
def test_no_module_is_over_800_lines() -> None:
    sizes = {
        str(module.relative_to(SOURCE)): len(module.read_text(encoding="utf-8").splitlines())
        for module in MODULES
    }
    for name, size in sizes.items():
        if size > WARN_MODULE_LINES:
            warnings.warn(f"{name} has {size} lines: is it about one subject?", stacklevel=1)
    assert {name: size for name, size in sizes.items() if size > MAX_MODULE_LINES} == {}


def test_no_function_is_over_50_lines() -> None:
    sizes = {
        f"{module.relative_to(SOURCE)}:{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for module in MODULES
        for node in functions(module)
    }
    assert {name: size for name, size in sizes.items() if size > MAX_FUNCTION_LINES} == {}


def test_no_module_is_a_bucket() -> None:
    named = {
        module: module.parent.name if module.stem == "__init__" else module.stem
        for module in MODULES
    }
    assert [module for module, name in named.items() if name.strip("_") in BUCKETS] == []
