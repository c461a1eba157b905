"""The demo's made-up shop: what its jobs write, hand on, and how they fail."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headway.demo import pipeline
from headway.demo.folders import kept_or_temporary
from headway.testing import Sandbox

CHECKS = {"check-europe", "check-america", "check-asia", "check-africa"}


Opened = tuple[Sandbox, Path]


@contextmanager
def opened(folder: Path) -> Iterator[Sandbox]:
    """Its application in virtual time, with jobs that pause for no moment, after the first runs."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pipeline, "TICK", 0.0)
        with Sandbox(pipeline.build(folder)) as box:
            box.run_until_idle()
            yield box


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    folder = tmp_path_factory.mktemp("begun")
    with opened(folder) as box:
        yield box, folder


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """Four seconds later, when much was counted and asked for."""
    folder = tmp_path_factory.mktemp("later")
    with opened(folder) as box:
        box.advance(seconds=4)
        for name in ("supplier-prices", "stock-count", "stock-count") * 5:
            box.runtime.trigger(name)
        box.run_until_idle()
        box.runtime.trigger("revenue-report")
        box.run_until_idle()
        yield box, folder


def totals(folder: Path, feed: str) -> dict[str, int]:
    found: dict[str, int] = json.loads((folder / "warehouse" / f"{feed}.json").read_text())
    return found


def ran(box: Sandbox) -> Counter[str | None]:
    return Counter(one.external_id for one in box.executions())


def test_the_first_runs_follow_one_another(begun: Opened) -> None:
    box, _ = begun
    ran_once = ran(box)
    assert ran_once.keys() >= CHECKS | {"customers-club", "stock-count", "supplier-prices"}
    assert ran_once["sales-all-shops"] == 1
    parents = box.history.manifests.detail("sales-all-shops").parents
    assert {one.external_id for one in parents} == CHECKS
    assert ran_once["newsletter-weekly"] == 0
    notes = {one.external_id: (one.state, one.progress_note) for one in box.executions()}
    assert notes["orders-asia"] == ("completed", "loading")
    assert notes["check-asia"] == ("completed", "adding up")
    assert notes["sales-all-shops"] == ("completed", "summing up")
    assert notes["stock-count"] == ("completed", "counting")
    assert notes["revenue-report"][0] == "completed"


def test_what_is_loaded_is_what_was_extracted_without_the_damaged_rows(
    begun: Opened,
) -> None:
    _, folder = begun
    for feed, rows in (("orders-africa", 120), ("customers-app", 40)):
        with (folder / "raw" / f"{feed}.csv").open(newline="") as file:
            found = list(csv.reader(file))
        assert sorted(int(number) for number, _ in found) == list(range(rows))
        amounts = [int(cents) for _, cents in found if cents]
        assert totals(folder, feed) == {
            "rows": len(amounts),
            "cents": sum(amounts),
            "rejected": rows - len(amounts),
            "loads": 1,
        }
    assert totals(folder, "stock") == {"rows": 120, "cents": 0, "rejected": 0, "loads": 1}


def test_each_load_is_added_and_the_report_sums_all_up(later: Opened) -> None:
    box, folder = later
    total = totals(folder, "orders-europe")
    assert total["loads"] == ran(box)["orders-europe"] == 3
    assert total["rows"] + total["rejected"] == 3 * 120
    title, blank, *lines = (folder / "reports" / "revenue.txt").read_text().splitlines()
    assert (title, blank) == ("Revenue so far", "")
    told = {name: (rows, amount) for name, rows, _, amount in map(str.split, lines)}
    assert told == {
        file.stem: (str(one["rows"]), f"{one['cents'] / 100:.2f}")
        for file in (folder / "warehouse").glob("*.json")
        for one in [totals(folder, file.stem)]
    }
    assert {"orders-europe", "customers-shop", "stock"} <= told.keys()


def test_the_ledger_fails_three_times_and_waits_for_a_person(later: Opened) -> None:
    box, _ = later
    failure = "post_to_ledger: ConnectionRefusedError: the old ledger was switched off years ago"
    failed = [one for one in box.executions("old-ledger") if one.failure]
    assert [one.failure.summary for one in failed if one.failure] == [failure] * 3
    assert [one.external_id for one in box.dead_letters()] == ["old-ledger"]


def test_suppliers_do_not_always_answer(later: Opened) -> None:
    box, folder = later
    answers = box.executions("supplier-prices")
    failed = [one for one in answers if one.failure is not None]
    assert {one.failure.summary for one in failed if one.failure} == {
        "fetch_prices: ConnectionError: the supplier did not answer"
    }
    assert 0 < len(failed) < len(answers)
    assert totals(folder, "prices")["loads"] == len(answers) - len(failed)


def test_what_has_run_out_is_ordered_again(later: Opened) -> None:
    box, _ = later
    orders = [one for one in box.executions() if (one.external_id or "").startswith("reorder-")]
    assert orders
    for one in orders:
        order = json.loads(one.input)
        assert one.external_id == f"reorder-{order['article']}"
        assert one.progress_note == f"{order['pieces']} × {order['article']}"


@pytest.mark.parametrize("kept", [True, False])
def test_a_folder_that_is_named_is_kept(tmp_path: Path, kept: bool) -> None:
    named = tmp_path / "new" / "demo"
    with kept_or_temporary(named if kept else None) as folder:
        (folder / "file").write_text("here")
        assert folder.is_absolute()
    assert (folder == named.resolve()) is kept
    assert (folder / "file").exists() is kept
