"""An optional part that is not installed says what to install, and nothing else breaks."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import metadata

import pytest

from headway import extras
from headway.errors import MissingExtra


def hide(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name in packages else True)


@pytest.mark.parametrize("extra", sorted(extras.EXTRAS))
def test_a_missing_extra_is_an_import_error_that_says_what_to_install(
    extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages, purpose = extras.EXTRAS[extra]
    hide(monkeypatch, *packages)

    with pytest.raises(ImportError) as caught:
        extras.require(extra)

    assert isinstance(caught.value, MissingExtra)
    install = f"pip install 'headway-scheduler[{extra}]'"
    assert str(caught.value) == f"{purpose} needs an extra: {install}"


def test_every_extra_is_offered_by_the_package() -> None:
    offered = set(metadata("headway-scheduler").get_all("Provides-Extra") or ())
    assert set(extras.EXTRAS) <= offered


HIDING = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hidden())
from headway import extras
real = extras.find_spec
extras.find_spec = lambda name: None if name in {packages} else real(name)
"""


@pytest.mark.parametrize(
    ("extra", "use"),
    [
        ("web", "import headway.web"),
        ("celery", "import headway.servers.celery"),
        (
            "postgres",
            "import headway; headway.Headway(database_url='postgresql://x/y').open_store()",
        ),
    ],
)
def test_using_a_part_without_its_extra_says_what_to_install(extra: str, use: str) -> None:
    packages, _ = extras.EXTRAS[extra]
    program = HIDING.format(packages=set(packages)) + use
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(f"pip install 'headway-scheduler[{extra}]'")
