"""How long every page takes, in a deployment after a month of work.

    python -m benchmarks.pages [--quick] [--rounds N]

PostgreSQL with 100,000 manifests in 10,000 groups, 1,000,000 finished executions over thirty days,
20,000 queued entries spread over the groups, and 200 running jobs. Every page of the dashboard is
asked for over HTTP, and every call that pages make to the read side is made by itself: first once,
then in turns; the median and the slowest of the rounds.

Target: every page answers within 300 ms at the median, and each call within 100 ms.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from urllib.parse import quote

from benchmarks.dispatcher import new_database, say
from headway import Headway
from headway.history import History, Tallying
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.web.app import build_app
from headway.web.security.access import Access
from headway.web.security.identity import Identity, Scope
from tests.history.calls import calls
from tests.history.seeding import Size, seed
from tests.postgres_server import private_server
from tests.web.site import Site, listening

FULL = Size(manifests=100_000, groups=10_000, executions=1_000_000, queued=20_000)
QUICK = Size(manifests=5_000, groups=500, executions=20_000, queued=1_000)
CALL_TARGET = 100.0
PAGE_TARGET = 300.0
VISITOR = Identity("ada", {Scope.ADMIN})


@contextmanager
def deployment(size: Size) -> Iterator[Store]:
    """A database of this size, with its tallies."""
    with private_server(durable=False) as server:
        store = Store(new_database(server, "pages"))
        migrate(store)
        began = time.perf_counter()
        seed(store, size)
        say(f"seeded in {time.perf_counter() - began:.0f} s")
        while Tallying(store).run_once():
            pass
        yield store
        store.close()


def measure(asked: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """The milliseconds of each call, all calls taking turns."""
    took: dict[str, list[float]] = {name: [] for name in asked}
    for turn in range(rounds + 1):
        for name, call in asked.items():
            began = time.perf_counter()
            call()
            if turn:  # the first finds nothing in memory
                took[name].append((time.perf_counter() - began) * 1000)
    return took


def paths(history: History) -> list[str]:
    """Every page, about something there is."""
    [manifest, *_] = history.manifests.page().items
    [execution, *_] = history.executions.page().items
    [letter, *_] = history.dead_letters.page().items
    [entry, *_] = history.queue.page().items
    names = (quote(manifest.external_id, safe=""), quote(manifest.group_name, safe=""))
    return [
        "/",
        "/?span=week",
        "/manifests",
        "/manifests?search=manifest",
        f"/manifests/{names[0]}",
        f"/manifests/{names[0]}/trigger",
        "/groups",
        f"/groups/{names[1]}",
        "/graph",
        "/graph?view=manifests",
        f"/graph?view=manifests&around={names[0]}",
        "/timeline",
        "/executions",
        "/executions?state=failed",
        f"/executions?group={names[1]}",
        f"/executions/{execution.id}",
        "/queue",
        f"/queue/{entry.id}",
        "/dead-letters",
        f"/dead-letters/{letter.id}",
        "/servers",
        "/azolla",
        "/settings",
        "/audit",
    ]


def asked_for(site: Site, path: str) -> None:
    """The whole answer, which has to be a page."""
    answered = site.get(path)
    if answered.status != HTTPStatus.OK:
        sys.exit(f"{path} was answered with {answered.status}")


def told(took: Mapping[str, Sequence[float]], target: float, what: str) -> int:
    """Print the slowest first; returns how many are above the target."""
    slow = 0
    for name, each in sorted(took.items(), key=lambda one: -statistics.median(one[1])):
        median = statistics.median(each)
        slow += median > target
        say(f"{name:44} {median:8.1f} ms   slowest {max(each):8.1f} ms")
    say(f"{slow} of {len(took)} {what} are slower than {target:.0f} ms at the median")
    return slow


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a twentieth of everything")
    parser.add_argument("--rounds", type=int, default=7)
    chosen = parser.parse_args()
    with deployment(QUICK if chosen.quick else FULL) as store:
        history = History(store)
        with store.reading() as tx:
            called = measure(calls(history, tx.now), chosen.rounds)
        app = build_app(Headway("pages"), store, Access(lambda request: VISITOR))
        with listening(app) as site:
            pages = {path: partial(asked_for, site, path) for path in paths(history)}
            answered = measure(pages, chosen.rounds)
    slow = told(called, CALL_TARGET, "calls") + told(answered, PAGE_TARGET, "pages")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
