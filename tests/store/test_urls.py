"""Which addresses are taken, and that none of them gives its password away."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headway.errors import DatabaseUnavailable, SettingsError
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.urls import parse_url, shown

PASSWORD = "s3cret"


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me@db/app",
        "postgres://me@db/app",
        "postgresql+psycopg2://me@db/app",
        "postgresql+asyncpg://me@db/app",
    ],
)
def test_every_spelling_of_postgresql_uses_one_driver(address: str) -> None:
    url = parse_url(address)
    assert (url.drivername, url.username, url.database) == ("postgresql+psycopg", "me", "app")


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("", "cannot be read as an address"),
        ("headway.db", "cannot be read as an address"),
        (f"postgresql://me:{PASSWORD}@db:port/app", "cannot be read as an address"),
        (f"postgresql://db:{PASSWORD}", "cannot be read as an address"),
        (f"mysql://me:{PASSWORD}@db/app", "no such kind of database"),
        ("sqlite://", "SQLite needs the path of a file"),
        ("sqlite:///:memory:", "SQLite needs the path of a file"),
        ("sqlite:///file::memory:?uri=true", "SQLite needs the path of a file"),
        ("sqlite:////no/such/folder/headway.db", "the folder /no/such/folder does not exist"),
    ],
)
def test_what_is_no_address_is_refused_in_words(address: str, told: str) -> None:
    with pytest.raises(SettingsError, match=told) as refused:
        Store(address)
    assert "sqlite:///headway.db" in str(refused.value) or "folder" in told
    error: BaseException | None = refused.value
    while error is not None:
        assert PASSWORD not in str(error)
        error = error.__cause__
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_a_file_is_no_folder_for_another(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match=f"the folder {tmp_path}/file does not exist"):
        parse_url(f"sqlite:///{tmp_path}/file/headway.db")


@pytest.mark.parametrize(
    "address",
    [f"postgresql://me:{PASSWORD}@db/app", f"postgresql://db/app?user=me&password={PASSWORD}"],
)
def test_an_address_is_shown_without_its_password(address: str) -> None:
    assert PASSWORD not in shown(parse_url(address))


def test_a_database_that_does_not_answer_is_named_without_its_password(tmp_path: Path) -> None:
    store = Store(f"postgresql://me:{PASSWORD}@/app?host={tmp_path}")
    with pytest.raises(DatabaseUnavailable) as refused:
        store.check()
    store.close()
    assert "cannot open postgresql" in str(refused.value)
    assert PASSWORD not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_database_that_answers_passes_the_check(store: Store) -> None:
    store.check()


@pytest.fixture
def open_to_all() -> object:
    previous = os.umask(0)
    yield
    os.umask(previous)


@pytest.mark.usefixtures("open_to_all")
def test_a_new_sqlite_file_is_its_owners_alone(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'headway.db'}")
    migrate(store)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    store.close()
    assert set(modes) == {"headway.db", "headway.db-wal", "headway.db-shm"}
    assert set(modes.values()) == {0o600}


def test_the_mode_of_an_existing_sqlite_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "headway.db"
    path.touch(0o640)
    path.chmod(0o640)
    Store(f"sqlite:///{path}").close()
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_file_that_is_no_database_is_said_to_be_none(tmp_path: Path) -> None:
    path = tmp_path / "headway.db"
    path.write_text("certainly no database, but long enough to be looked at " * 20)
    store = Store(f"sqlite:///{path}")
    with pytest.raises(DatabaseUnavailable, match="file is not a database"):
        store.check()
    store.close()


def test_a_file_that_cannot_be_created_is_said_so_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailable, match=r"cannot create .*: File name too long"):
        Store(f"sqlite:///{tmp_path / ('x' * 300)}")
