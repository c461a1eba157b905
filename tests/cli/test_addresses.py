"""Commands say which database they looked at; the default one with its path and its origin."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from headway.store.engine import Store
from headway.store.migrate import migrate
from tests.cli.conftest import Shop
from tests.surface.command_line import finish, read_until, start
from tests.surface.test_cli import HELLO, CommandLine, assert_brief, headway

__all__ = ["headway"]

ORIGIN = "(default; set HEADWAY_DATABASE_URL or Headway(database_url=...))"


def default_of(command: CommandLine) -> str:
    return f"sqlite:///{command.folder.resolve() / 'headway.db'} {ORIGIN}"


@pytest.mark.parametrize(
    "command",
    [
        ("check", "hello:hw"),
        ("plan", "hello:hw"),
        ("db", "status"),
        ("db", "status", "hello:hw"),
        ("db", "migrate"),
        ("dead-letters", "list"),
        ("dead-letters", "list", "--app", "hello:hw"),
        ("doctor", "hello:hw"),
    ],
    ids=" ".join,
)
def test_the_default_database_is_told_with_its_path_and_origin(
    headway: CommandLine, command: tuple[str, ...]
) -> None:
    headway.write("hello.py", HELLO)
    _, out, err = headway(*command)
    assert default_of(headway) in " ".join((out + err).split())


@pytest.mark.parametrize("command", ["run", "worker"])
def test_a_process_tells_it_at_its_start(tmp_path: Path, command: str) -> None:
    (tmp_path / "hello.py").write_text(HELLO)
    arguments = ("--no-dashboard",) if command == "run" else ()
    process = start(tmp_path, command, "hello:hw", *arguments)
    seen = read_until(process.stderr, "Ctrl-C stops")
    process.send_signal(signal.SIGTERM)
    finish(process)
    assert f"sqlite:///{tmp_path.resolve() / 'headway.db'} {ORIGIN}" in seen


def test_an_address_that_was_given_is_told_as_it_was_given(
    headway: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    headway.write("hello.py", HELLO)
    assert (
        "on sqlite:///headway.db\n"
        in headway("plan", "hello:hw", "--database-url", "sqlite:///headway.db").out
    )
    monkeypatch.setenv("HEADWAY_DATABASE_URL", "sqlite:///headway.db")
    assert "database  sqlite:///headway.db\n" in headway("db", "status").out


@pytest.mark.parametrize("verb", ["requeue", "acknowledge"])
def test_without_dead_letters_the_database_is_named(headway: CommandLine, verb: str) -> None:
    store = Store("sqlite:///headway.db")
    migrate(store)
    store.close()

    code, out, err = headway("dead-letters", verb, "--all")
    assert (code, err) == (0, "")
    assert out == f"0 {verb}d: no dead letter waits in {default_of(headway)}\n"


def test_a_group_that_is_not_there_is_no_empty_success(shop: Shop) -> None:
    code, out, err = shop("dead-letters", "requeue", "--group", "elt", "--yes")
    assert (code, out) == (1, "")
    assert "did you mean 'etl'?" in err
    assert_brief(err)


def test_of_a_group_without_dead_letters_nothing_is_requeued(shop: Shop) -> None:
    said = shop.said("dead-letters", "requeue", "--group", "odd")
    assert said.startswith("0 requeued: no dead letter of group odd waits in ")
