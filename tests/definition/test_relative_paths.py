"""A relative path of an SQLite file is that of the folder in which the application was built."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from headway import Headway
from headway.history import History
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.urls import described
from tests.surface.test_cli import CommandLine, headway

__all__ = ["headway"]

GIVEN = ("argument", "variable", "default")
CHANGING = """
import os
from headway import Headway

hw = Headway("shop", database_url="sqlite:///shop.db")
os.makedirs("elsewhere", exist_ok=True)
os.chdir("elsewhere")
"""


@pytest.fixture
def second(tmp_path: Path) -> Path:
    folder = tmp_path / "second"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("given", GIVEN)
def test_the_first_use_may_come_after_a_change_of_the_folder(
    tmp_path: Path, second: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEADWAY_DATABASE_URL", raising=False)
    if given == "variable":
        monkeypatch.setenv("HEADWAY_DATABASE_URL", "sqlite:///headway.db")
    hw = Headway("tests", database_url="sqlite:///headway.db" if given == "argument" else None)

    @hw.workflow
    def work() -> None: ...

    assert hw.database_url == "sqlite:///headway.db"
    monkeypatch.chdir(second)
    with closing(hw.open_store()) as store:
        migrate(store)
    assert str(tmp_path / "headway.db") in described(hw.database_url)
    hw.enqueue("work")
    monkeypatch.chdir(tmp_path)
    with closing(hw.runtime.store) as store, closing(Store("sqlite:///headway.db")) as same:
        assert History(same).queue.all() == History(store).queue.all() != []
    assert list(second.iterdir()) == []


def test_a_store_opens_further_connections_to_the_same_file(
    tmp_path: Path, second: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(Store("sqlite:///headway.db")) as store:
        migrate(store)
        monkeypatch.chdir(second)
        with closing(store.apart()) as apart:
            assert migrate(apart) == []
            assert apart.lost is None
    assert list(second.iterdir()) == []


def test_commands_use_the_file_that_the_application_uses(headway: CommandLine) -> None:
    headway.write("shop.py", CHANGING)
    assert headway("db", "migrate", "shop:hw").code == 0
    assert (headway.folder / "shop.db").exists()
    assert headway("plan", "shop:hw").code == 0
    assert list((headway.folder / "elsewhere").iterdir()) == []
