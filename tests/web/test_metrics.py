"""``/metrics``, scraped over loopback by whoever may read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi import Request

from headway import every
from headway.web import metrics
from headway.web.app import build_app
from headway.web.routing import Scope
from headway.web.security.access import Access
from headway.web.security.identity import Identity
from tests.builders import Scene
from tests.web.site import Site, listening


def reader(request: Request) -> Identity | None:
    known = request.headers.get("authorization") == "Bearer scraper"
    return Identity("prometheus", {Scope.READ}) if known else None


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url) as scene:
        yield scene


@pytest.fixture
def site(scene: Scene) -> Iterator[Site]:
    with listening(build_app(scene.app, scene.store, Access(reader))) as site:
        yield site


def test_a_scrape_tells_what_this_process_did_and_what_waits(scene: Scene, site: Site) -> None:
    scene.app.schedule("work", "load-users", None, every(hours=1), group="nightly")
    scene.app.schedule("work", "load-orders", None, every(hours=1))
    scene.apply()
    scene.cycle()
    scene.clock.advance(hours=2)
    scene.manage()

    scraped = site.get("/metrics", authorization="Bearer scraper")

    assert scraped.status == 200
    assert scraped.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = scraped.text.splitlines()
    completed = 'headway_executions_total{group="nightly",outcome="completed",workflow="work"} 1.0'
    assert completed in lines
    assert 'headway_entries{state="ready"} 2.0' in lines
    assert "headway_database_up 1.0" in lines
    assert "load-orders" not in scraped.text


def test_a_stranger_may_not_scrape(site: Site) -> None:
    refused = site.get("/metrics")
    assert (refused.status, refused.headers["content-type"]) == (401, "application/problem+json")
    assert "headway_" not in refused.text


def test_without_the_package_it_says_what_to_install(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "find_spec", lambda name: None)
    with listening(build_app(scene.app, scene.store, Access(reader))) as site:
        missing = site.get("/metrics", authorization="Bearer scraper")
    assert missing.status == 501
    assert "pip install 'headway-scheduler[prometheus]'" in missing.json()["detail"]
