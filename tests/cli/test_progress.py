"""Long work says how far it is, and a terminal shows it; nobody else sees anything of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from headway import Headway
from headway.applying import apply_declarations
from headway.doctor.checks import CHECKS
from headway.doctor.examination import Doctor
from headway.store import bulk
from headway.store.engine import Store
from headway.store.migrate import migrate, migrations_for
from tests.cli.test_terminals import on_terminal
from tests.surface.command_line import finish, start
from tests.surface.test_cli import CommandLine

MIGRATIONS = len(migrations_for("sqlite"))


class Watcher:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int]] = []

    def __call__(self, done: int, total: int) -> None:
        self.told.append((done, total))


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with closing(Store(database_url)) as opened:
        yield opened


def test_work_says_how_much_of_how_much_is_done(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "CHUNK", 2)
    app = Headway("shop", database_url=str(store.url))
    app.workflow("load")(lambda: None)
    for number in range(5):
        app.schedule("load", f"load-{number}")
    migrating, applying, examining = Watcher(), Watcher(), Watcher()

    migrate(store, migrating)
    apply_declarations(app, store, by_hand=True, progress=applying)
    Doctor(store, app.settings, progress=examining).examine()

    assert migrating.told == [(done, MIGRATIONS) for done in range(1, MIGRATIONS + 1)]
    assert applying.told == [(2, 5), (4, 5), (5, 5)]
    assert examining.told == [(done, len(CHECKS)) for done in range(1, len(CHECKS) + 1)]


def test_a_terminal_shows_a_bar(headway: CommandLine) -> None:
    code, shown = on_terminal(headway.folder, "db", "migrate")

    assert code == 0
    assert f"{MIGRATIONS}/{MIGRATIONS}" in shown
    assert "migrating sqlite:///headway.db" in shown


def test_programs_and_pipes_see_none(headway: CommandLine) -> None:
    _, shown = on_terminal(headway.folder, "db", "migrate", "--json")
    code, _, err = finish(start(headway.folder, "doctor"))

    assert (code, err) == (0, "")
    assert "━" not in shown
