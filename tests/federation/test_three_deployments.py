"""Real deployments on loopback: own processes, own databases, one down and one that denies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from headway.definition.azolla import Azolla
from headway.demo.federation.site import MILL, SALES, WAREHOUSE
from headway.demo.federation.sites import TARGET, Federation, Site, free_ports
from headway.store.engine import Store
from headway.store.migrate import migrate
from tests.builders import eventually


@pytest.fixture
def federation(postgres_url: str, tmp_path: Path) -> Iterator[Federation]:
    """A warehouse on PostgreSQL, sales and a mill on SQLite; warehouse may read sales only."""
    urls = {
        WAREHOUSE: postgres_url,
        SALES: f"sqlite:///{tmp_path / 'sales.db'}",
        MILL: f"sqlite:///{tmp_path / 'mill.db'}",
    }
    ports = free_ports(len(urls))
    sites = {
        name: Site(name, url, port, frozenset({WAREHOUSE} if name == SALES else ()))
        for (name, url), port in zip(urls.items(), ports, strict=True)
    }
    with closing(Store(postgres_url)) as store:
        migrate(store)
    with Federation(tmp_path, sites) as federation:
        yield federation


def rests(federation: Federation, name: str) -> bool:
    with closing(Store(federation.sites[name].database_url)) as store:
        return bool(Azolla(name, store).pause_states())


def page(federation: Federation) -> tuple[str, dict[str, Any]]:
    """Ask for it as an operator does; the text, and the newest session manifest."""
    asked = federation.command(WAREHOUSE, "azolla", "request-manifest", TARGET, "--wait", "60")
    assert asked.returncode == 0, asked.stderr + federation.log_of(WAREHOUSE)
    shown = federation.command(WAREHOUSE, "azolla", "show", TARGET, "--json")
    return asked.stdout, json.loads(shown.stdout)["session_manifest"]


@pytest.mark.full
def test_the_page_names_who_answered_and_who_did_not_and_ranks_what_is_urgent_first(
    federation: Federation,
) -> None:
    federation.start(WAREHOUSE)
    running = federation.start(SALES)
    federation.start(MILL)
    with closing(Store(federation.sites[SALES].database_url)) as store:
        sales = Azolla(SALES, store)
        refund = sales.objective("refund 12 customers", urgency=4, status="TODO")
        sales.block(refund.objective_id, "USER_INPUT", "finance has to approve")
    for name in (WAREHOUSE, SALES, MILL):
        eventually(lambda name=name: rests(federation, name))  # type: ignore[misc]

    text, manifest = page(federation)
    assert manifest["queried_azolla_ids"] == [SALES, WAREHOUSE]
    first, *others = manifest["prioritized_orientation"]
    assert first == "sales: unblock “refund 12 customers”: finance has to approve"
    assert (
        "sales: look at dead letter 1 of load-orders: ValueError: order 1042 has no \
customer"
        in others
    )
    assert f"1. {first}" in text
    assert "mill did not answer: DENIED" in text
    assert "the stone is broken" not in text, "what it denies is not seen"
    assert {one["source_azolla_id"] for one in manifest["pause_state_summary"]} == {
        WAREHOUSE,
        SALES,
    }

    federation.stop(running)
    text, manifest = page(federation)
    assert manifest["queried_azolla_ids"] == [WAREHOUSE]
    assert "sales did not answer: TARGET_UNAVAILABLE" in text
    assert "mill did not answer: DENIED" in text
    assert not any(line.startswith("sales:") for line in manifest["prioritized_orientation"])
