"""What an idle process asks of PostgreSQL: manager, dispatcher and worker with nothing to do.

    python -m benchmarks.idle [--seconds N]

Statements per second over all connections of the process (BEGIN and COMMIT not counted), the
milliseconds the database's answers took together in each second, and the processor time of the
process, with 10 manifests and with 100,000, none of them due.

Target: below one statement per second, whatever the number of manifests.
"""

import argparse
import threading
import time
from collections import Counter
from typing import Any

from sqlalchemy import Engine, event, text

from benchmarks._many_manifests import fill
from benchmarks.dispatcher import new_database, say
from headway import Headway
from headway.manager.sweep import RULES
from headway.manager.time_rules import time_rules
from headway.service import Service
from headway.store import marks
from headway.store.engine import Store
from tests.postgres_server import private_server

FEW, MANY = 10, 100_000
START_UP = 5.0
EARLY = text("UPDATE headway_manifest_state SET wake_at = now() + interval '50 minutes'")


class Statements:
    """Counts what is sent while it is switched on, and how long the answers take."""

    def __init__(self) -> None:
        self.counting = False
        self.by_thread: Counter[str] = Counter()
        self.seconds = 0.0
        self._began = threading.local()
        event.listen(Engine, "before_cursor_execute", self._begin)
        event.listen(Engine, "after_cursor_execute", self._end)

    def _begin(self, *_statement: Any) -> None:
        self._began.at = time.perf_counter()

    def _end(self, *_statement: Any) -> None:
        if self.counting:
            self.by_thread[threading.current_thread().name] += 1
            self.seconds += time.perf_counter() - self._began.at


def measure(url: str, manifests: int, seconds: float) -> None:
    store = Store(url)
    fill(store, manifests)
    with store.writing() as tx:
        # The benchmark's manifests wake up a little too late, one after another; early is fine.
        tx.connection.execute(EARLY)
        marks.write_mark(tx, RULES, time_rules())  # or the first sweep would hurry through all
    statements = Statements()
    service = Service(Headway("idle", database_url=url), store=store)
    service.start()
    time.sleep(START_UP)
    processor, statements.counting = time.process_time(), True
    time.sleep(seconds)
    statements.counting, spent = False, time.process_time() - processor
    service.stop()
    total = statements.by_thread.total() / seconds
    by_thread = ", ".join(
        f"{name.removeprefix('headway-')} {count / seconds:.2f}"
        for name, count in statements.by_thread.most_common()
    )
    say(
        f"{manifests:>7,} manifests: {total:.2f} statements/s ({by_thread}), "
        f"{1000 * statements.seconds / seconds:.2f} ms/s of answers, "
        f"{1000 * spent / seconds:.1f} ms/s of processor; "
        f"{'meets' if total < 1 else 'misses'} the target of 1/s"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    with private_server(durable=True) as server:
        for manifests in (FEW, MANY):
            measure(new_database(server, f"idle_{manifests}"), manifests, options.seconds)


if __name__ == "__main__":
    main()
