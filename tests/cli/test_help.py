"""The help of each command is enough: what it does, every option, and an example that works."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from headway.cli import app


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, below in getattr(command, "commands", {}).items():
        yield from leaves(below, (*path, name))
    if not hasattr(command, "commands"):
        yield path, command


COMMANDS = dict(leaves(get_command(app)))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_an_example_that_it_understands(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    [example] = re.findall(r"^ *Example: (.+)$", command.help, re.M)
    program, *words = shlex.split(example)

    assert program == "headway"
    assert tuple(words[: len(path)]) == path
    with command.make_context(path[-1], words[len(path) :]) as context:
        assert context.params


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_option_is_explained(path: tuple[str, ...]) -> None:
    silent = [one.name for one in COMMANDS[path].params if not getattr(one, "help", "")]
    assert silent == []


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_its_first_line_fits_into_a_list(path: tuple[str, ...]) -> None:
    first, *_ = COMMANDS[path].help.split("\n\n")
    assert len(first) <= 110, first


def test_every_command_stands_among_its_like() -> None:
    panels = [one.rich_help_panel for one in app.registered_commands]
    panels += [one.rich_help_panel for one in app.registered_groups]
    assert all(isinstance(panel, str) for panel in panels)
