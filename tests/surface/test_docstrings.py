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


FOLDERS = sorted({file.parent.relative_to(SOURCE) for file in SOURCE.rglob("*.py")})


def module_names(folder: Path) -> list[str]:
    """The modules of a folder that are no programs of their own."""
    found = [file.relative_to(SOURCE).with_suffix("") for file in (SOURCE / folder).glob("*.py")]
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
@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_the_examples_of_all_modules_run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEADWAY_DATABASE_URL", raising=False)
    for name in module_names(folder):
        (own := tmp_path / name).mkdir()
        monkeypatch.chdir(own)
        try:
            module = importlib.import_module(name)
        except MissingExtra:
            continue  # a part whose packages are not installed has nothing to show yet
        result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
        assert result.failed == 0, name


@pytest.mark.parametrize(("module", "name"), PUBLIC)
def test_a_public_name_has_a_docstring_with_an_example(module: str, name: str) -> None:
    doc = inspect.getdoc(getattr(sys.modules[module], name)) or ""
    assert ">>> " in doc, f"{module}.{name} has no example"
