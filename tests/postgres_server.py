"""One real PostgreSQL server shared by all processes of a test run; private ones for scenarios."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import psycopg

from headway.torture.postgres import (
    PostgresServer,
    PostgresUnavailable,
    find_account,
    find_programs,
    private_server,
    run_as,
)
from tests.builders import eventually
from tests.pgbouncer import find_pgbouncer, in_front, pgbouncer

ROOT = Path(__file__).parents[1]

__all__ = ["PostgresServer", "PostgresUnavailable", "private_server", "shared_server"]


def become_standby(server: PostgresServer) -> None:
    """Start *server*, which is stopped, as a hot standby: it is read-only until it is promoted."""
    signal = server.directory / "data" / "standby.signal"
    signal.touch()
    if server.account:
        os.chown(signal, server.account.pw_uid, server.account.pw_gid)
    server.start(durable=True)


def promote(server: PostgresServer) -> None:
    """Have a standby take writes; its connections stay open."""
    server.run("pg_ctl", "promote", "-w")


def _refusal(server: PostgresServer) -> str:
    try:
        psycopg.connect(server.url()).close()
    except psycopg.OperationalError as error:
        return str(error)
    return ""


@contextmanager
def starting(server: PostgresServer) -> Iterator[None]:
    """A server that refuses connections because it is starting, and then one that answers."""
    standby = server.directory / "data" / "standby.signal"
    standby.touch(mode=0o666)
    settings = server.directory / "data" / "postgresql.auto.conf"
    before = settings.read_text()
    settings.write_text(before + "hot_standby = off\n")
    options = f"-c listen_addresses= -c unix_socket_directories={server.directory}"
    server.run("pg_ctl", "start", "-W", "-l", str(server.directory / "log"), "-o", options)
    eventually(lambda: "the database system is" in _refusal(server))
    yield
    server.stop("immediate")
    standby.unlink()
    settings.write_text(before)
    server.start(durable=True)


@contextmanager
def shared_server(run: Path) -> Iterator[str]:
    """Join the one server of a test run, starting it if nobody has; yields its URL.

    Each process that uses the server holds a shared lock on a file in `run`. The keeper, a process
    of its own, waits for the exclusive lock and gets it once all of them ended, however they did.
    """
    with (run / "postgres.start").open("w") as start, (run / "postgres.users").open("w") as users:
        fcntl.flock(start, fcntl.LOCK_EX)
        fcntl.flock(users, fcntl.LOCK_SH)
        if not (run / "postgres.url").exists():
            find_programs()
            find_account()
            if in_front():
                find_pgbouncer()
            python = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-P"]
            keeper = run_as(None, [*python, "-m", "tests.postgres_server", str(run)])
            if keeper.returncode != 0:
                raise RuntimeError(keeper.stderr)
        fcntl.flock(start, fcntl.LOCK_UN)
        yield (run / "postgres.url").read_text()


def keep_server(run: Path) -> None:
    """Start a server, return to whoever asked for it, and stay behind until its users are gone."""
    with private_server() as server, pgbouncer(server) if in_front() else nullcontext():
        (run / "postgres.url").write_text(server.url())
        if os.fork():
            os._exit(0)
        os.setsid()  # a Ctrl-C is meant for the tests
        for stream in (1, 2):  # whoever asked waits for their end
            os.dup2(0, stream)
        with (run / "postgres.users").open("w") as users:
            fcntl.flock(users, fcntl.LOCK_EX)
            (run / "postgres.url").unlink()


if __name__ == "__main__":
    keep_server(Path(sys.argv[1]))
