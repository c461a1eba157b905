"""A database that stays connected and says nothing keeps no process from stopping."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from headway.store.engine import Store
from headway.store.migrate import migrate
from tests.postgres_server import PostgresServer, PostgresUnavailable, private_server
from tests.surface.command_line import finish, read_until, start

APPLICATION = """
import threading
from headway import Headway, every

hw = Headway("{name}", shutdown_timeout={seconds}, max_active_jobs=None, worker_count=1)

@hw.workflow("{name}")
def wait() -> None:
    print("begun", flush=True)
    threading.Event().wait()

hw.schedule(wait, "{name}", schedule=every(hours=1))
"""
GAVE_UP = "the database or a job does not answer; what was running is found by its owner being gone"


@contextmanager
def hung(server: PostgresServer) -> Iterator[None]:
    """The server with its sockets open, and every process of it stopped."""
    postmaster = int((server.directory / "data" / "postmaster.pid").read_text().split()[0])
    stopped = [postmaster]
    with psycopg.connect(server.url(), autocommit=True) as connection:
        os.kill(postmaster, signal.SIGSTOP)  # from here on it starts no other process
        try:
            found = connection.execute("SELECT pid FROM pg_stat_activity").fetchall()
            for (process,) in found:
                stopped.append(process)
                os.kill(process, signal.SIGSTOP)
            yield
        finally:
            for process in stopped:
                os.kill(process, signal.SIGCONT)


@pytest.mark.full
def test_a_hung_database_does_not_keep_a_process_from_stopping(tmp_path: Path) -> None:
    """After the time jobs have to finish, or soon after the second signal."""
    for name, seconds in (("once", 0), ("twice", 3600)):
        (tmp_path / f"{name}.py").write_text(APPLICATION.format(name=name, seconds=seconds))
    try:
        with private_server() as server:
            with_store = Store(server.url())
            migrate(with_store)
            with_store.close()
            started = [
                start(tmp_path, "run", f"{name}:hw", "--database-url", server.url())
                for name in ("once", "twice")
            ]
            try:
                for process in started:
                    read_until(process.stdout, "begun")
                with hung(server):
                    for process in started:
                        process.send_signal(signal.SIGTERM)
                        read_until(process.stderr, "stopping: finishing 1 running job")
                    started[1].send_signal(signal.SIGTERM)
                    ended = [finish(process) for process in started]
            finally:
                for process in started:
                    process.kill()
                    process.wait()
    except PostgresUnavailable as reason:
        pytest.skip(str(reason))
    assert [code for code, _, _ in ended] == [1, 1]
    assert [err.count(f"headway: {GAVE_UP}") for _, _, err in ended] == [1, 1]
