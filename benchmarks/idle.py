"""What idle processes ask of PostgreSQL: ``headway run`` with its dashboard, and a worker alone.

    python -m benchmarks.idle [--seconds N]

Every statement that reaches the server is logged there and counted, but for BEGIN, COMMIT and
ROLLBACK; transactions are counted by pg_stat_database. With 10 manifests and with 100,000, none of
them due; no page is open.

Target: below one statement per second of each process, whatever the number of manifests.
"""

import argparse
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import make_url, text

from benchmarks._many_manifests import fill
from benchmarks.dispatcher import new_database, say
from headway.manager.sweep import RULES
from headway.manager.time_rules import time_rules
from headway.store import marks
from headway.store.engine import Store
from tests.postgres_server import PostgresServer, private_server

FEW, MANY = 10, 100_000
START_UP = 15.0
PROCESSES = {
    "headway run": ("run", "--port", "0"),
    "headway worker": ("worker",),
}
HEADWAY = Path(sys.executable).with_name("headway")
ROOT = Path(__file__).parents[1]
EARLY = text("UPDATE headway_manifest_state SET wake_at = now() + interval '50 minutes'")
LOGGED = re.compile(r"LOG:  (?:statement|execute [^:]*): (?!BEGIN|COMMIT|ROLLBACK)(.{0,70})", re.I)
TRANSACTIONS = text(
    "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = :name"
)
SERVERS = text("SELECT count(*) FROM headway_server")


@dataclass(frozen=True)
class Idle:
    """What one process asked for in a second."""

    statements: float
    transactions: float
    asked: Counter[str]


def measure(server: PostgresServer, url: str, command: tuple[str, ...], seconds: float) -> Idle:
    """Start a process, let it settle, and count for so long."""
    log, beside = server.directory / "log", Store(server.url())
    with running(url, command):
        await_lease(url)
        time.sleep(START_UP)
        before, begun = log.stat().st_size, transactions(beside, url)
        time.sleep(seconds)
        after, ended = log.stat().st_size, transactions(beside, url)
    beside.close()
    with log.open("rb") as lines:
        lines.seek(before)
        said = lines.read(after - before).decode(errors="replace")
    asked = Counter(" ".join(one.split()) for one in LOGGED.findall(said))
    return Idle(asked.total() / seconds, (ended - begun) / seconds, asked)


def await_lease(url: str) -> None:
    """Until the process has told that it is there, which on a busy machine takes a while."""
    store = Store(url)
    for _ in range(600):
        with store.reading() as tx:
            if tx.connection.execute(SERVERS).scalar_one():
                store.close()
                return
        time.sleep(0.1)
    raise TimeoutError("the process did not start within a minute")


@contextmanager
def running(url: str, command: tuple[str, ...]) -> Iterator[None]:
    action, *options = command
    process = subprocess.Popen(
        [HEADWAY, action, "benchmarks._idle_app:hw", "--database-url", url, *options, "--quiet"],
        cwd=ROOT,
    )
    try:
        yield
        assert process.poll() is None, f"headway {action} has ended by itself"
    finally:
        process.terminate()
        process.wait(30)


def transactions(beside: Store, url: str) -> int:
    """How many there have been in the database at *url*, asked from another one."""
    name = make_url(url).database
    with beside.reading() as tx:
        return int(tx.connection.execute(TRANSACTIONS, {"name": name}).scalar_one())


def prepared(server: PostgresServer, manifests: int) -> str:
    """A database with so many manifests, none of them due within the hour, that logs statements."""
    url = new_database(server, f"idle_{manifests}")
    store = Store(url)
    fill(store, manifests)
    with store.writing() as tx:
        # The benchmark's manifests wake up a little too late, one after another; early is fine.
        tx.connection.execute(EARLY)
        marks.write_mark(tx, RULES, time_rules())  # or the first sweep would hurry through all
        name = tx.connection.execute(text("SELECT current_database()")).scalar_one()
        tx.connection.execute(text(f"ALTER DATABASE {name} SET log_statement = 'all'"))
    store.close()
    return url


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--statements", action="store_true", help="list what was asked")
    options = parser.parse_args()
    with private_server(durable=True) as server:
        for manifests in (FEW, MANY):
            url = prepared(server, manifests)
            for name, command in PROCESSES.items():
                found = measure(server, url, command, options.seconds)
                verdict = "meets" if found.statements < 1 else "misses"
                say(
                    f"{name:14} {manifests:>7,} manifests: {found.statements:.2f} statements/s, "
                    f"{found.transactions:.2f} transactions/s; {verdict} the target of 1/s"
                )
                for one, count in found.asked.most_common() if options.statements else ():
                    say(f"    {count:5}  {one}")


if __name__ == "__main__":
    main()
