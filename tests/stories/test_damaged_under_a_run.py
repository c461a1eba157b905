"""A database that becomes unusable under `headway run`: a line for each change, and no more."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.builders import PATIENCE, eventually
from tests.postgres_server import PostgresServer, become_standby, promote
from tests.scenarios.deployment import Deployment


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Iterator[Deployment]:
    deployment = Deployment(f"sqlite:///{tmp_path / 'headway.db'}", tmp_path)
    yield deployment
    deployment.close()


@pytest.fixture
def on_postgresql(own_server: PostgresServer, tmp_path: Path) -> Iterator[Deployment]:
    deployment = Deployment(own_server.url(), tmp_path)
    yield deployment
    deployment.close()


def damage(file: Path) -> None:
    """Overwrite every page but the first in place, as `cp` does; none is left in the WAL."""
    with closing(sqlite3.connect(file)) as own:
        eventually(lambda: own.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0)
    with file.open("r+b") as opened:
        size = os.fstat(opened.fileno()).st_size
        opened.seek(4096)
        opened.write(b"\xff" * (size - 4096))


def lines(deployment: Deployment, words: str) -> list[str]:
    return [line for line in deployment.log().splitlines() if words in line]


def read_only(deployment: Deployment) -> list[str]:
    """Lines in which PostgreSQL refuses something, of whichever loop comes first."""
    return lines(deployment, "during recovery") + lines(deployment, "is read-only: ")


def test_an_sqlite_file_that_is_damaged(on_sqlite: Deployment, tmp_path: Path) -> None:
    process = on_sqlite.start()
    on_sqlite.wait_for("start", 2)
    on_sqlite.release()
    on_sqlite.wait_until_completed(2)
    on_sqlite.store.close()
    damage(tmp_path / "headway.db")
    eventually(lambda: bool(lines(on_sqlite, "trouble")))
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0, on_sqlite.log()

    [trouble] = lines(on_sqlite, "trouble")
    assert "database disk image is malformed" in trouble
    assert len(lines(on_sqlite, "unhealthy")) <= 1, on_sqlite.log()
    assert "Traceback" not in on_sqlite.log()


@pytest.mark.full
def test_a_postgresql_that_becomes_a_standby(
    on_postgresql: Deployment, own_server: PostgresServer
) -> None:
    process = on_postgresql.start()
    on_postgresql.wait_for("start", 2)
    on_postgresql.store.close()
    own_server.stop()
    become_standby(own_server)
    on_postgresql.release()
    eventually(lambda: bool(read_only(on_postgresql)))
    promote(own_server)
    on_postgresql.wait_until_completed(2)
    on_postgresql.stop(process)

    assert len(read_only(on_postgresql)) == 1, on_postgresql.log()
    assert len(lines(on_postgresql, "unhealthy")) <= 1
    assert "Traceback" not in on_postgresql.log()
