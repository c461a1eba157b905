"""Conditional writes beside the user's own: whoever comes too late writes nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from headway import fence
from headway.errors import DefinitionError, TooLate
from headway.store.urls import parse_url

TABLE = "CREATE TABLE fence (name TEXT PRIMARY KEY, token BIGINT NOT NULL)"


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = create_engine(parse_url(database_url))
    with engine.begin() as connection:
        connection.execute(text(TABLE))
        connection.execute(text("CREATE TABLE report (line TEXT)"))
    yield engine
    engine.dispose()


def write(engine: Engine, token: int, line: str) -> None:
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO report VALUES (:line)"), {"line": line})
        fence(connection, "users", token)


def lines(engine: Engine) -> list[str]:
    with engine.begin() as connection:
        return list(connection.execute(text("SELECT line FROM report ORDER BY line")).scalars())


def test_a_later_run_writes_and_an_earlier_one_is_refused_whole(engine: Engine) -> None:
    write(engine, 7, "first")
    write(engine, 7, "the same run again")
    write(engine, 9, "later")
    with pytest.raises(TooLate, match=r"'users' was written by a later run \(9\); this one \(8\)"):
        write(engine, 8, "too late")
    assert lines(engine) == ["first", "later", "the same run again"]


def test_other_names_are_other_fences(engine: Engine) -> None:
    with Session(engine) as session:
        fence(session, "users", 9)
        fence(session, "orders", 3)
        session.commit()
    write(engine, 9, "fine")


@pytest.mark.parametrize("table", ["", "a b", "fence; DROP TABLE report", "x" * 70, "a.b.c"])
def test_a_table_that_is_no_name_is_refused(engine: Engine, table: str) -> None:
    with engine.begin() as connection, pytest.raises(DefinitionError, match="must be a plain name"):
        fence(connection, "users", 1, table=table)


def test_a_table_that_is_not_there_is_told_with_what_creates_it(engine: Engine) -> None:
    with engine.begin() as connection, pytest.raises(DefinitionError) as refused:
        fence(connection, "users", 1, table="fences")
    assert str(refused.value) == (
        "table = 'fences': the database has no such table; create it: CREATE TABLE fences "
        "(name TEXT PRIMARY KEY, token BIGINT NOT NULL)"
    )


def test_a_fence_may_stand_in_a_table_of_another_name(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text(TABLE.replace("TABLE fence", "TABLE fence_of_2030")))
        fence(connection, "users", 3, table="fence_of_2030")
        with pytest.raises(TooLate):
            fence(connection, "users", 2, table="fence_of_2030")
        fence(connection, "users", 1)


def test_a_table_whose_names_are_not_unique_is_not_said_to_be_missing(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE loose (name TEXT, token BIGINT)"))
    with engine.begin() as connection, pytest.raises(DBAPIError, match="ON CONFLICT"):
        fence(connection, "users", 1, table="loose")
