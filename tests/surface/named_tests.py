"""Tests as pages name them, and the functions they mean."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


@cache
def functions_in(path: str) -> dict[str, ast.FunctionDef]:
    """The tests of a file by their names."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    return {node.name: node for node in functions if node.name.startswith("test_")}


def marks_of(test: ast.FunctionDef, name: str) -> list[ast.Call]:
    """Its decorators ``@pytest.mark.NAME(...)``."""
    calls = [one for one in test.decorator_list if isinstance(one, ast.Call)]
    return [one for one in calls if ast.unparse(one.func) == f"pytest.mark.{name}"]
