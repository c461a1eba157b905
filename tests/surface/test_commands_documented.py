"""docs/reference/cli.md and the command line say the same, both ways."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from headway.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"


def commands(command: Any, path: str) -> Iterator[tuple[str, set[str]]]:
    """Every command that does something, with its options."""
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, f"{path} {name}")
    if not hasattr(command, "commands"):
        names = {
            name
            for parameter in command.params
            for name in (*parameter.opts, *parameter.secondary_opts)
        }
        yield path, {name for name in names if name.startswith("-")} - {"--help"}


def documented() -> dict[str, set[str]]:
    _, *sections = re.split(r"^## `(headway [a-z -]+)`$", PAGE.read_text(), flags=re.M)
    return {
        title: {option for row in rows(text) for option in re.findall(r"`(-[^`]+)`", row)}
        for title, text in zip(sections[::2], sections[1::2], strict=True)
    }


def rows(text: str) -> list[str]:
    return re.findall(r"^\| (`-.*?) \|", text, re.M)


def test_page_and_code_agree_on_every_command_and_option() -> None:
    assert documented() == dict(commands(get_command(app), "headway"))


def test_every_command_is_described() -> None:
    for path, _ in commands(get_command(app), "headway"):
        assert f"`{path}" in PAGE.read_text().partition(f"## `{path}`")[2], path
