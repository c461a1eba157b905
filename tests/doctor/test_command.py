"""``headway doctor`` as people and machines call it: what it prints, and how it exits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import text

from headway.cli import doctor as command
from headway.doctor.database import SUPERUSER
from headway.doctor.examination import Doctor
from headway.store.engine import Store
from headway.store.migrate import migrate
from tests.surface.test_cli import CommandLine, headway

__all__ = ["headway"]

APP = """
from headway import Headway, every

hw = Headway("hello", database_url="sqlite:///hello.db")


@hw.workflow
def greet(name: str) -> None: ...


hw.schedule(greet, "greet-world", "world", every(hours=1))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "hello.py").write_text(APP)
    store = Store(f"sqlite:///{tmp_path / 'hello.db'}")
    migrate(store)
    store.close()
    yield tmp_path


def tell(folder: Path, statement: str) -> None:
    store = Store(f"sqlite:///{folder / 'hello.db'}")
    with store.writing() as tx:
        tx.connection.execute(text(statement))
    store.close()


def test_a_healthy_database_is_one_line_and_exit_0(headway: CommandLine, folder: Path) -> None:
    assert headway("doctor", "hello:hw") == (0, "healthy: sqlite:///hello.db\n", "")


def test_without_an_application_it_says_what_it_left_out(
    headway: CommandLine, folder: Path
) -> None:
    code, out, err = headway("doctor", "--database-url", "sqlite:///hello.db")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "not looked at without MODULE:APP: over-limit, sleeping-too-long,",
        "  retention-behind",
        "healthy: sqlite:///hello.db",
    ]


def test_a_finding_is_exit_1_and_fix_makes_it_0(headway: CommandLine, folder: Path) -> None:
    tell(folder, "DROP INDEX headway_execution_pending")
    code, out, err = headway("doctor", "hello:hw")
    assert (code, err) == (1, "")
    assert out.splitlines() == [
        "error    broken-indexes (1)",
        "         These indexes are missing or not used, by which nothing happens twice",
        "         and queries are fast.",
        "         - index headway_execution_pending is missing",
        "         --fix: they are created anew, which keeps writers waiting meanwhile",
        "1 finding: sqlite:///hello.db",
    ]
    code, out, err = headway("doctor", "hello:hw", "--fix")
    assert (code, err) == (0, "")
    assert out.splitlines() == ["repaired broken-indexes (1)", "healthy: sqlite:///hello.db"]


def test_a_hint_is_shown_and_is_no_failure(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only this check, because the servers of the tests have other weaknesses."""
    store = Store(postgres_url)
    migrate(store)
    store.close()
    monkeypatch.setattr(command, "Doctor", partial(Doctor, checks=[SUPERUSER]))
    command.doctor(database_url=postgres_url)  # would raise typer.Exit
    out = capsys.readouterr().out
    assert out.startswith("hint     superuser (1)\n")
    assert "\nhealthy: " in out


def test_many_rows_are_shortened_and_every_line_fits_80_columns(
    headway: CommandLine, folder: Path
) -> None:
    for number in range(12):
        name = f"'{'a-rather-long-host-name-' * 3}{number}'"
        tell(
            folder,
            "INSERT INTO headway_server (id, host, pid, roles, workflows, slots, started_at,"
            f" renewed_at, expires_at) VALUES ({name}, 'h', 1, '[]', '[]', 1, 0, 0, 0)",
        )
    code, out, _ = headway("doctor", "hello:hw")
    assert code == 1
    assert "unburied-servers (12)" in out
    assert "- and 2 more; --json lists them" in out
    assert max(map(len, out.splitlines())) <= 80


def test_machines_get_json(headway: CommandLine, folder: Path) -> None:
    tell(folder, "DROP INDEX headway_execution_pending")
    code, out, err = headway("doctor", "hello:hw", "--json")
    assert (code, err) == (1, "")
    told = json.loads(out)
    assert told["healthy"] is False
    assert told["repaired"] == {}
    assert told["skipped"] == []
    [finding] = told["findings"]
    assert finding["check"] == "broken-indexes"
    assert finding["severity"] == "error"
    assert finding["repairable"] is True
    assert finding["rows"] == ["index headway_execution_pending is missing"]


def test_another_schema_is_the_only_finding(headway: CommandLine, folder: Path) -> None:
    tell(folder, "DELETE FROM headway_schema_version WHERE version > 3")
    code, out, _ = headway("doctor", "hello:hw", "--fix")
    assert code == 1
    assert out.splitlines()[0] == "error    schema (1)"
    assert "- version 3, needed " in out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--database-url", "sqlite:///nothing.db"], 1, "there is no such file"),
        (["--database-url", "nonsense"], 2, "cannot be read as an address"),
        (["nothere:hw"], 2, "run this in the folder that holds nothere.py"),
        (["hello:hw", "--mend"], 2, "--mend"),
    ],
)
def test_wrong_usage(
    headway: CommandLine, folder: Path, arguments: list[str], code: int, said: str
) -> None:
    found, out, err = headway("doctor", *arguments)
    assert (found, out) == (code, "")
    assert said in err
    assert not (folder / "nothing.db").exists(), "asking creates nothing"
