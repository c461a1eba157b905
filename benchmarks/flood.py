"""How long a group waits while one token floods another group.

    python -m benchmarks.flood [--rounds N] [--database NAME]

A deployment runs with a cap for the flooded group. In turns, without and with a flood, another
group is triggered 50 times, one after the other, and the time is taken from the trigger to the
start of its job. The flood fills its group by HTTP until it is answered 429, and then goes on at
a hundred requests a second, five times what one token is allowed. Both are of one run on one
machine, which also has to answer the flood.

Target, at the 99th percentile: at most 1.5 × of what it is without.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from headway import Group, Headway
from headway.observe import Event as Observed
from headway.service import Service
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.web.app import build_app
from headway.web.security.access import Access
from headway.web.security.identity import Identity, Scope
from headway.web.security.pace import Pace
from tests.postgres_server import private_server
from tests.web.site import Site, listening

MOST = 200
TRIGGERS = 50
PAUSE = 0.01
SLOW = 0.5  # of the flood: what is queued comes faster than what is done
PATIENCE = 60.0
TARGET = 1.5
REFUSED = 429


def application(url: str) -> Headway:
    app = Headway(
        "flood",
        database_url=url,
        worker_count=8,
        max_active_jobs=8,
        max_queued_per_group=MOST,
        dispatcher_polling_interval=0.05,  # where no notification wakes it
        polling_interval=0.05,
        shutdown_timeout="1s",
    )

    @app.workflow
    def work(seconds: float) -> None:
        time.sleep(seconds)

    flooded = Group("flooded", max_active_jobs=2)
    for number in range(10):
        app.schedule(work, f"flooded-{number}", SLOW, group=flooded)
    app.schedule(work, "quiet", 0.0, group="quiet")
    return app


class Quiet:
    """The other group: triggered, and waited for until it has started."""

    def __init__(self, app: Headway) -> None:
        self._app = app
        self._started, self._ended = Event(), Event()
        app.observer.subscribe(self._hear)

    def _hear(self, event: Observed) -> None:
        if event.fields.get("external_id") == "quiet":
            if event.name == "execution.started":
                self._started.set()
            elif event.name == "execution.completed":
                self._ended.set()

    def wait(self) -> float:
        """Milliseconds from one trigger to the start of its job."""
        self._started.clear()
        self._ended.clear()
        began = time.perf_counter()
        self._app.trigger("quiet")
        assert self._started.wait(PATIENCE), "it never started"
        waited = (time.perf_counter() - began) * 1000
        assert self._ended.wait(PATIENCE), "it never ended"
        return waited


class Flood:
    """Somebody who triggers without end, and counts how often they were refused."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.refused = 0
        self.sent = 0

    def fill(self) -> None:
        while not self.refused:
            self._send()

    @contextmanager
    def going_on(self) -> Iterator[None]:
        ended = Event()

        def send() -> None:
            while not ended.wait(PAUSE):
                self._send()

        thread = Thread(target=send)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _send(self) -> None:
        path = f"/api/v1/manifests/flooded-{self.sent % 10}/trigger"
        answer = self._site.ask("POST", path, headers={"authorization": "Bearer flood"})
        self.sent += 1
        self.refused += answer.status == REFUSED


def measure(url: str, rounds: int, kind: str) -> None:
    app = application(url)
    service = Service(app)
    migrate(service.store)
    store = Store(url, connections=5)
    access = Access(lambda _: Identity("flood", {Scope.OPERATE}), writes=Pace(100_000, 10_000))
    service.start()
    quiet, without, beside = Quiet(app), list[float](), list[float]()
    with listening(build_app(app, store, access)) as site:
        flood = Flood(site)
        for _ in range(5):
            quiet.wait()
        for _ in range(rounds):
            without += [quiet.wait() for _ in range(TRIGGERS)]
            flood.refused = 0
            flood.fill()
            with flood.going_on():
                beside += [quiet.wait() for _ in range(TRIGGERS)]
            app.cancel(group="flooded")
    service.stop()
    store.close()
    app.runtime.store.close()
    say(f"{kind}: {flood.sent:,} requests of the flood, full with {MOST:,} entries")
    for name, waits in (("without", without), ("beside a flood", beside)):
        say(f"  {name:15} median {statistics.median(waits):6.1f} ms   p99 {p99(waits):6.1f} ms")
    ratio = p99(beside) / p99(without)
    verdict = "ok" if ratio <= TARGET else "MISSED"
    say(f"  p99 {ratio:.2f} × (target: at most {TARGET} ×) {verdict}")


def p99(waits: list[float]) -> float:
    return statistics.quantiles(waits, n=100)[98]


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description="What one token's flood costs others.")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--database", choices=("postgresql", "sqlite"))
    options = parser.parse_args()
    if options.database != "sqlite":
        with private_server(durable=True) as server:
            measure(server.url(), options.rounds, "postgresql")
    if options.database != "postgresql":
        with tempfile.TemporaryDirectory() as folder:
            measure(f"sqlite:///{Path(folder) / 'headway.db'}", options.rounds, "sqlite")


if __name__ == "__main__":
    main()
