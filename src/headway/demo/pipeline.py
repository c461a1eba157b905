"""The demo's application: what a user would write, only with a made-up shop behind it.

Four order feeds and three customer feeds are extracted, transformed and loaded, and what was
loaded is checked; all checks together make the sales figures. Stock is counted, and what has run
out is ordered again. A supplier sometimes does not answer, an old ledger never does, a report sums
it all up, and the newsletter is switched off.
"""

import asyncio
import csv
import json
import random
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from headway.definition.app import Headway
from headway.definition.making import Item
from headway.definition.registry import Reference
from headway.domain.manifest import Group
from headway.domain.schedule import every
from headway.run import Run

TICK = 0.15
STOCK = "inventory"
ARTICLES = ("paper", "ink", "boxes")


class Feed(BaseModel):
    """Something that arrives regularly: its name and how many rows it brings."""

    name: str
    rows: Annotated[int, Field(ge=1, le=5000, description="How many rows it brings")] = 120


class Order(BaseModel):
    """Something to be bought."""

    article: str
    pieces: Annotated[int, Field(ge=1)] = 10
    express: bool = False


class Batch(BaseModel):
    """Clean rows on their way into the warehouse."""

    feed: str
    amounts: list[int]
    rejected: int


class Shop:
    """The jobs, and the folder they work in: ``raw``, ``warehouse`` and ``reports``."""

    def __init__(self, home: Path) -> None:
        self._folders = {name: home / name for name in ("raw", "warehouse", "reports")}
        for folder in self._folders.values():
            folder.mkdir(exist_ok=True)

    def extract(self, feed: Feed, run: Run) -> Feed:
        """Write what the source sends to ``raw``; one row in twenty is damaged."""
        dice = _dice(run)
        rows = [(n, dice.randint(100, 20_000)) for n in range(feed.rows)]
        with (self._folders["raw"] / f"{feed.name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            for part in _slowly(run, 5, 0.0, 0.4, "rows arriving"):
                damaged = ((n, "" if dice.random() < 0.05 else cents) for n, cents in rows[part::5])
                writer.writerows(damaged)
        return feed

    async def transform(self, feed: Feed, run: Run) -> Batch:
        """Drop damaged rows; async, as if a service were asked about each part."""
        with (self._folders["raw"] / f"{feed.name}.csv").open(newline="") as file:
            rows = list(csv.reader(file))
        for part in range(3):
            await asyncio.sleep(TICK)
            run.progress(0.4 + 0.1 * part, "checking rows")
        amounts = [int(cents) for _, cents in rows if cents]
        return Batch(feed=feed.name, amounts=amounts, rejected=len(rows) - len(amounts))

    def load(self, batch: Batch, run: Run) -> None:
        """Add the rows to the feed's file in ``warehouse``."""
        for _ in _slowly(run, 4, 0.7, 1.0, "loading"):
            continue
        self._add(batch.feed, len(batch.amounts), sum(batch.amounts), batch.rejected)

    def count_stock(self, feed: Feed, run: Run) -> None:
        """Quick and often; now and then something has run out and is ordered again."""
        for _ in _slowly(run, 3, 0.0, 1.0, "counting"):
            continue
        self._add(feed.name, feed.rows, 0, 0)
        dice = _dice(run)
        if dice.random() < 0.2:
            article = dice.choice(ARTICLES)
            order = Order(article=article, pieces=dice.randint(1, 40), express=dice.random() < 0.3)
            run.activate(f"reorder-{article}", order)

    def check(self, feed: Feed, run: Run) -> None:
        """What a feed has brought so far must add up."""
        for _ in _slowly(run, 2, 0.0, 1.0, "adding up"):
            continue

    def sum_sales(self, title: str, run: Run) -> None:
        """All shops together."""
        for _ in _slowly(run, 4, 0.0, 1.0, "summing up"):
            continue

    def reorder(self, order: Order, run: Run) -> None:
        """Ask the wholesaler."""
        run.progress(0.5, f"{order.pieces} × {order.article}")
        time.sleep(TICK)

    def fetch_prices(self, feed: Feed, run: Run) -> None:
        """Fails four times in ten, which a retry mends."""
        for _ in _slowly(run, 4, 0.0, 0.8, "asking a supplier"):
            continue
        if _dice(run).random() < 0.4:
            raise ConnectionError("the supplier did not answer")
        self._add(feed.name, feed.rows, 0, 0)

    def post_to_ledger(self, feed: Feed, run: Run) -> None:
        """Always fails, so that it ends as a dead letter."""
        run.progress(0.5, "connecting")
        raise ConnectionRefusedError(f"{feed.name} was switched off years ago")

    async def write_report(self, title: str, run: Run) -> None:
        """Sum up what is in ``warehouse`` and write it to ``reports``."""
        files = sorted(self._folders["warehouse"].glob("*.json"))
        lines = [title, ""]
        for number, file in enumerate(files, 1):
            await asyncio.sleep(TICK)
            run.progress(number / len(files), file.stem)
            totals = json.loads(file.read_text())
            lines.append(f"{file.stem:<22}{totals['rows']:>8} rows{totals['cents'] / 100:>14.2f}")
        report = self._folders["reports"] / "revenue.txt"
        report.write_text("\n".join(lines) + "\n")

    def _add(self, feed: str, rows: int, cents: int, rejected: int) -> None:
        file = self._folders["warehouse"] / f"{feed}.json"
        totals = json.loads(file.read_text()) if file.exists() else {}
        added = {"rows": rows, "cents": cents, "rejected": rejected, "loads": 1}
        totals = {key: totals.get(key, 0) + value for key, value in added.items()}
        # In one move: the report may read this file at any moment.
        written = file.with_suffix(".new")
        written.write_text(json.dumps(totals))
        written.replace(file)


def build(home: Path) -> Headway:
    """The demo's application, with everything it has in the folder *home*.

    >>> build(Path("/tmp/demo")).name  # doctest: +SKIP
    'demo'
    """
    shop = Shop(home)
    hw = Headway(
        "demo",
        database_url=f"sqlite:///{home / 'headway.db'}",
        max_active_jobs=8,
        worker_count=8,
        manager_enabled=True,
        dispatcher_enabled=True,
        default_max_retries=6,
        default_retry_delay="0.5s",
        retry_backoff_multiplier=1.5,
        max_retry_delay="5s",
        shutdown_timeout="3s",
    )
    feed = hw.workflow("import-feed", steps=(shop.extract, shop.transform, shop.load))
    _sell(hw, shop, feed)
    customers = Group("customers", max_active_jobs=1, priority=10)
    for name, seconds in (("customers-shop", 2), ("customers-club", 4), ("customers-app", 4)):
        hw.schedule(feed, name, Feed(name=name, rows=40), every(seconds=seconds), group=customers)
    _stock_up(hw, shop)
    _report(hw, shop)
    return hw


def _sell(hw: Headway, shop: Shop, feed: Reference) -> None:
    """Orders of four shops, a check after each, and what needs all of them."""
    check = hw.workflow("check-feed")(shop.check)
    sales = hw.workflow("sum-sales")(shop.sum_sales)
    orders = Group("orders", max_active_jobs=2, priority=20)
    analytics = Group("analytics", max_active_jobs=2, priority=15)
    checks = []
    for shop_name, seconds in (("europe", 2), ("america", 2), ("asia", 3), ("africa", 4)):
        name = f"orders-{shop_name}"
        chain = hw.schedule(feed, name, Feed(name=name), every(seconds=seconds), group=orders)
        checks.append(f"check-{shop_name}")
        chain = chain.then_include(check, checks[-1], Feed(name=name), group=analytics)
    total = Item("all-shops", "Sales of all shops", depends_on=checks)
    chain = chain.then_include_many(sales, "sales", [total], group=analytics)
    letter = Item("weekly", "This week", depends_on="sales-all-shops")
    chain.then_include_many(sales, "newsletter", [letter], group=Group("newsletter", enabled=False))


def _stock_up(hw: Headway, shop: Shop) -> None:
    """Counting, which reorders what runs out, and asking a supplier who sometimes answers."""
    stock = hw.workflow("count-stock")(shop.count_stock)
    prices = hw.workflow("fetch-prices")(shop.fetch_prices)
    reorder = hw.workflow("reorder")(shop.reorder)
    articles = [Item(name, Order(article=name)) for name in ARTICLES]
    counted = hw.schedule(stock, "stock-count", Feed(name="stock"), every(seconds=1), group=STOCK)
    counted.include_many(reorder, "reorder", articles, group=STOCK, dormant=True)
    hw.schedule(prices, "supplier-prices", Feed(name="prices"), every(seconds=2), group=STOCK)


def _report(hw: Headway, shop: Shop) -> None:
    """A report that works, and a ledger that never does."""
    ledger = hw.workflow("post-to-ledger")(shop.post_to_ledger)
    report = hw.workflow("write-report")(shop.write_report)
    reports = Group("reports", max_active_jobs=1)
    hw.schedule(report, "revenue-report", "Revenue so far", every(seconds=4), group=reports)
    hw.schedule(
        ledger,
        "old-ledger",
        Feed(name="the old ledger"),
        every(seconds=2),
        group=reports,
        max_retries=3,
        timeout=timedelta(seconds=10),
    )


def _dice(run: Run) -> random.Random:
    """Chance that comes out the same for the same run."""
    return random.Random(f"{run.manifest} {run.execution_id}")


def _slowly(run: Run, parts: int, begin: float, end: float, note: str) -> Iterator[int]:
    """The parts of some work that takes a while, reporting progress from *begin* to *end*."""
    for part in range(parts):
        run.raise_if_cancelled()
        run.progress(begin + (end - begin) * part / parts, note)
        time.sleep(TICK)
        yield part
