"""PgBouncer in transaction mode before a test's PostgreSQL, as Debian packages it.

With HEADWAY_TEST_PGBOUNCER=1 every test whose address comes from the fixtures of conftest.py goes
through one. It passes no search path on, so each schema has a role of its name that brings it.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
from psycopg.sql import SQL, Identifier, Literal

from headway.torture.postgres import PostgresServer, PostgresUnavailable

PORT = 6432
# Far fewer than the tests have connections, and no fewer than one test has transactions at once.
POOL = 16
STARTS_WITHIN = 10.0
SETTINGS = """
[databases]
* = host={folder} auth_user=postgres

[pgbouncer]
listen_port = {port}
unix_socket_dir = {folder}
unix_socket_mode = 0777
auth_type = trust
auth_query = SELECT rolname, '' FROM pg_roles WHERE rolname = $1
pool_mode = {mode}
default_pool_size = {pool}
max_client_conn = 500
ignore_startup_parameters = {ignored}
logfile = {folder}/pgbouncer.log
"""


def in_front() -> bool:
    """Whether this test run goes through PgBouncer."""
    return bool(os.environ.get("HEADWAY_TEST_PGBOUNCER"))


def find_pgbouncer() -> str:
    """Debian installs it where only root's PATH leads."""
    found = shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if found is None:
        raise PostgresUnavailable("no PgBouncer: it is not installed (Debian: pgbouncer)")
    return found


@contextmanager
def pgbouncer(
    server: PostgresServer, *, pool: int = POOL, mode: str = "transaction", ignored: str = ""
) -> Iterator[None]:
    """PgBouncer before *server*, in its folder; like PostgreSQL it refuses to run as root."""
    program, folder, account = find_pgbouncer(), server.directory, server.account
    settings = folder / "pgbouncer.ini"
    text = SETTINGS.format(folder=folder, port=PORT, pool=pool, mode=mode, ignored=ignored)
    settings.write_text(text)
    settings.chmod(0o644)
    process = subprocess.Popen(
        [program, "--quiet", settings],
        user=account.pw_uid if account else None,
        group=account.pw_gid if account else None,
        extra_groups=[] if account else None,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(folder, process)
        yield
    finally:
        # Not process.kill(): whoever keeps the run's server is a fork, and this not its child.
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for(folder: Path, process: subprocess.Popen[bytes]) -> None:
    """Until it answers; the socket of one that was killed lies there still, and nobody does."""
    limit = time.monotonic() + STARTS_WITHIN
    while not _answers(folder / f".s.PGSQL.{PORT}"):
        if process.poll() is not None or time.monotonic() > limit:
            log = folder / "pgbouncer.log"
            said = log.read_text() if log.exists() else ""
            raise RuntimeError(f"pgbouncer does not answer: {said[-2000:]}")
        time.sleep(0.01)


def _answers(address: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(address)) == 0


def create_schema(database: str, name: str) -> str:
    """A new schema in *database*, and the address that leads to it in this test run."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(SQL("CREATE SCHEMA {}").format(Identifier(name)))
        if in_front():
            create_role(connection, name)
    return pooled(database, name) if in_front() else with_search_path(database, name)


def create_role(connection: psycopg.Connection, schema: str) -> None:
    """A role whose search path is the schema of its name."""
    name = Identifier(schema)
    connection.execute(SQL("CREATE ROLE {} SUPERUSER LOGIN").format(name))
    connection.execute(SQL("ALTER ROLE {} SET search_path = {}").format(name, name))


def drop_schema(database: str, name: str) -> None:
    """Everything in it goes too; a test that leaves a transaction open fails here."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("SET lock_timeout = '10s'")
        connection.execute(SQL("DROP SCHEMA {} CASCADE").format(Identifier(name)))
        if in_front():
            # The pooler would keep its sessions for ten minutes.
            ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s"
            connection.execute(ended, [name])
            connection.execute(SQL("DROP OWNED BY {} CASCADE").format(Identifier(name)))
            connection.execute(SQL("DROP ROLE {}").format(Identifier(name)))


def pooled(database: str, schema: str) -> str:
    """The way to *schema* that leads through PgBouncer."""
    return f"{database.replace('postgres@', f'{schema}@')}&port={PORT}"


def with_search_path(database: str, schema: str) -> str:
    return f"{database}&options=-csearch_path%3D{schema}"


def with_setting(address: str, name: str, value: str) -> str:
    """The same schema for sessions in which *name* is *value*; those already open stay as is."""
    if not is_pooled(address):
        return f"{address}%20-c{name}%3D{value}"
    with psycopg.connect(direct(address), autocommit=True) as connection:
        setting = SQL("ALTER ROLE {} SET {} = {}")
        role = Identifier(schema_of(address))
        connection.execute(setting.format(role, Identifier(name), Literal(value)))
    return address


def direct(address: str) -> str:
    """The same schema without PgBouncer, if it is in between, as psycopg reads it."""
    address = address.replace("+psycopg", "")
    if not is_pooled(address):
        return address
    return with_search_path(address.replace(f"&port={PORT}", ""), schema_of(address))


def is_pooled(address: str) -> bool:
    return f"&port={PORT}" in address


def schema_of(address: str) -> str:
    """The schema of a pooled address is named like its role."""
    return address.partition("://")[2].partition("@")[0]
