"""Connections that callers bring along: whose they are, and where they lead."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, make_url, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from headway.errors import DatabaseUnavailable, DefinitionError
from headway.store.joining import begin_writing, check_same_database, own_connection


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "headway.db"


@pytest.fixture
def engine(file: Path) -> Iterator[Engine]:
    engine = create_engine(f"sqlite:///{file}")
    yield engine
    engine.dispose()


def test_a_connection_is_taken_as_it_is_and_of_a_session_its_own(engine: Engine) -> None:
    with engine.connect() as connection:
        assert own_connection(connection) is connection
        with Session(connection) as session:
            assert own_connection(session).engine is engine
            assert own_connection(session) is session.connection()


@pytest.mark.parametrize(
    "given", [None, "sqlite://", AsyncSession()], ids=["none", "text", "async"]
)
def test_what_is_no_connection_is_refused_with_an_example(given: Any) -> None:
    with pytest.raises(DefinitionError) as refused:
        own_connection(given)
    told = str(refused.value)
    assert told.startswith("connection = ")
    assert "must be a SQLAlchemy Connection or Session" in told
    assert "await session.run_sync(lambda own: hw.trigger('load', connection=own))" in told


def test_a_connection_to_the_same_file_is_taken_by_whatever_path(
    engine: Engine, file: Path, tmp_path: Path
) -> None:
    (tmp_path / "link.db").symlink_to(file)
    with engine.connect() as connection:
        connection.execute(text("SELECT 1"))
        for same in (file, tmp_path / "link.db", tmp_path / "x" / ".." / file.name):
            check_same_database(make_url(f"sqlite+pysqlite:///{same}"), connection)
        with pytest.raises(DatabaseUnavailable) as refused:
            check_same_database(make_url(f"sqlite:///{tmp_path}/other.db"), connection)
    assert str(refused.value) == (
        f"connection: leads to sqlite:///{file}, but inside the sandbox headway's database is "
        f"sqlite:///{tmp_path}/other.db; open the sandbox on yours: Sandbox(hw, database_url=...)"
    )


class Elsewhere:
    """A session bound to an address, of which nothing but the address is asked."""

    def __init__(self, url: str) -> None:
        self.engine = create_engine(url)

    def get_bind(self) -> Engine:
        return self.engine

    def connection(self) -> Elsewhere:
        return self


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ("postgresql+psycopg://you@db:5432/app", True),
        ("postgresql+psycopg://me@db:5432/app?application_name=x", True),
        ("postgresql+psycopg://me@/app?host=db&port=5432", False),
        ("postgresql+psycopg://me@other:5432/app", False),
        ("postgresql+psycopg://me@db:5433/app", False),
        ("postgresql+psycopg://me@db:5432/other", False),
        ("sqlite:///app", False),
    ],
)
def test_a_database_of_a_server_is_known_by_host_port_and_name(other: str, same: bool) -> None:
    own = make_url("postgresql+psycopg://me:secret@db:5432/app")
    if same:
        check_same_database(own, Elsewhere(other))
        return
    with pytest.raises(DatabaseUnavailable, match="inside the sandbox") as refused:
        check_same_database(own, Elsewhere(other))
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(("folder", "same"), [("/run/a", True), ("/run/b", False)])
def test_a_server_may_be_known_by_the_folder_of_its_socket(folder: str, same: bool) -> None:
    own = make_url("postgresql+psycopg://me@/app?host=/run/a")
    other = Elsewhere(f"postgresql+psycopg://me@/app?host={folder}")
    if same:
        check_same_database(own, other)
    else:
        with pytest.raises(DatabaseUnavailable, match="inside the sandbox"):
            check_same_database(own, other)


def test_a_callers_transaction_begins_once(engine: Engine, file: Path) -> None:
    with engine.connect() as connection, create_engine(f"sqlite:///{file}").connect() as other:
        begin_writing(connection)
        begin_writing(connection)
        other.exec_driver_sql("PRAGMA busy_timeout = 0")
        with pytest.raises(Exception, match="locked"):
            begin_writing(other)
