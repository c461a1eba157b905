"""What Tab offers: commands, options and names from the database, and silence when that fails."""

from __future__ import annotations

import pytest

from tests.surface.test_cli import CommandLine, headway
from tests.surface.test_why_command import shop

__all__ = ["headway", "shop"]

NOISY = """
print("importing")
raise SystemExit("no")
"""


class Tab:
    """Presses Tab at the end of a line, as bash does."""

    def __init__(self, command: CommandLine, variables: pytest.MonkeyPatch) -> None:
        self._command = command
        self._variables = variables

    def __call__(self, line: str) -> list[str]:
        self._variables.setenv("_HEADWAY_COMPLETE", "complete_bash")
        self._variables.setenv("COMP_WORDS", line)
        self._variables.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        code, out, err = self._command()
        assert (code, err) == (0, "")
        return out.split()


@pytest.fixture
def tab(headway: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Tab:
    return Tab(headway, monkeypatch)


def test_commands_and_options(tab: Tab) -> None:
    assert tab("headway wh") == ["why"]
    assert tab("headway db ") == ["migrate", "status"]
    assert tab("headway why --ex") == ["--execution"]


def test_applications_in_this_folder(tab: Tab, headway: CommandLine) -> None:
    headway.write(
        "shop.py", "raise SystemExit\nhw = Headway('shop')\nold: Headway = Headway('x')\n"
    )
    headway.write("other.py", "print('no Headway() here')\n")

    assert tab("headway run sh") == ["shop:hw", "shop:old"]
    assert tab("headway doctor ") == ["shop:hw", "shop:old"]
    assert tab("headway why --app shop:o") == ["shop:old"]


@pytest.mark.usefixtures("shop")
def test_external_ids_of_the_application_or_the_database(
    tab: Tab, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tab("headway why --app shop:hw lo") == ["load-2", "load-[bold]1"]
    assert tab("headway why --app shop:hw load-[") == ["load-[bold]1"]
    monkeypatch.setenv("HEADWAY_DATABASE_URL", database_url)
    assert tab("headway why load-2") == ["load-2"]
    assert tab("headway why x") == []


@pytest.mark.parametrize(
    "options",
    [
        "--app noisy:hw",
        "--app nothere:hw",
        "--database-url postgresql://127.0.0.1:1/x",
        "--database-url sqlite:///not-there.db",
        "--database-url nonsense",
    ],
)
def test_nothing_is_said_when_it_fails(headway: CommandLine, tab: Tab, options: str) -> None:
    headway.write("noisy.py", NOISY)

    assert tab(f"headway why {options} lo") == []


def test_installing_it_is_not_in_the_way(
    headway: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    code, out, _ = headway("--help")
    assert code == 0
    assert out.count("completion") == 2  # one line below everything else
    assert "Shell completion: headway --install-completion" in out
    # Else the shell is looked for among those who started this process, and there may be none.
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    assert "_HEADWAY_COMPLETE=complete_bash" in headway("--show-completion", "bash").out
