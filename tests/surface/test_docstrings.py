"""Every example in a docstring runs, and every public name has one."""

import doctest
import importlib
import inspect
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import headway
import headway.celery
import headway.executor
import headway.testing
from headway.errors import MissingExtra
from headway_command.stopping import SIGNALS

SOURCE = Path(__file__).parents[2] / "src"
PUBLIC = [
    (module.__name__, name)
    for module in (headway, headway.celery, headway.executor, headway.testing)
    for name in module.__all__
    if name != "__version__"
]


def module_names() -> list[str]:
    """Every module of the package that is not a program of its own."""
    found = [file.relative_to(SOURCE).with_suffix("") for file in SOURCE.rglob("*.py")]
    parts = [file.parts[:-1] if file.name == "__init__" else file.parts for file in found]
    return sorted(".".join(part) for part in parts if part[-1] != "__main__")


@pytest.fixture
def same_signals() -> Iterator[None]:
    """An example may show how signals are handled; the test run keeps its own handlers."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("same_signals")
@pytest.mark.parametrize("name", module_names())
def test_the_examples_of_a_module_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEADWAY_DATABASE_URL", raising=False)
    try:
        module = importlib.import_module(name)
    except MissingExtra:
        return  # a part whose packages are not installed has nothing to show yet
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


@pytest.mark.parametrize(("module", "name"), PUBLIC)
def test_a_public_name_has_a_docstring_with_an_example(module: str, name: str) -> None:
    doc = inspect.getdoc(getattr(sys.modules[module], name)) or ""
    assert ">>> " in doc, f"{module}.{name} has no example"
