"""The pages of the dependency graph and of the timeline."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any
from urllib.parse import quote

import pytest

from headway import Group, every
from headway.domain.views import GroupOverview
from headway.web.pages.graph_nodes import group_words
from tests.builders import Scene
from tests.web.deployment import Pages, declare_shop, pages_of

HEADING = re.compile(r'<time datetime="([^"]+)"')
HOSTILE = '"><script>alert(1)</script>'


def test_a_group_is_said_in_a_word_or_two_and_nothing_twice() -> None:
    def words(**changes: Any) -> tuple[str, str]:
        counts = {"queued": 0, "active": 0, "completed": 0, "failed": 0, "dead_letters": 0}
        known: dict[str, Any] = {"enabled": True, **counts, **changes}
        return group_words(GroupOverview("etl", 4, 0, manifests=9, **known))

    assert words(dead_letters=2, queued=12) == ("2 dead letters", "12 waiting")
    assert words(active=3, dead_letters=2) == ("3 running", "2 dead")
    assert words(queued=12) == ("12 waiting", "")
    assert words(enabled=False, queued=12) == ("disabled", "12 waiting")
    assert words(enabled=False, active=1) == ("1 running", "off")


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url, virtual_time=False) as scene:
        declare_shop(scene)
        yield scene


@pytest.fixture
def pages(scene: Scene) -> Iterator[Pages]:
    with pages_of(scene) as pages:
        yield pages


def ago(**span: float) -> str:
    return (datetime.now(UTC) - timedelta(**span)).isoformat()


def drawn(page: str) -> list[str]:
    return re.findall(r'class="node [^"]*" href="([^"]*)"', page)


def test_the_graph_of_groups_and_of_manifests(pages: Pages) -> None:
    assert drawn(pages.get("/graph").text) == ["/groups/extract", "/groups/load"]
    manifests = pages.get("/graph?view=manifests").text
    assert drawn(manifests) == ["/manifests/extract-a", "/manifests/extract-b", "/manifests/load"]
    assert manifests.count('class="edge"') == 1
    assert "3 manifests, 1 edge<" in manifests


def test_the_graph_of_one_group_and_around_one_manifest(pages: Pages) -> None:
    of_group = pages.get("/graph?view=manifests&group=extract").text
    assert drawn(of_group) == ["/manifests/extract-a", "/manifests/extract-b"]
    around = pages.get("/graph?view=manifests&around=load").text
    assert drawn(around) == ["/manifests/extract-a", "/manifests/load"]
    assert around.count("node-here") == 1


def test_around_nobody_there_is_nothing(pages: Pages) -> None:
    assert "There is no group of this name" in pages.get("/graph?around=nobody").text


def test_more_than_can_be_drawn_is_said_with_a_way_to_see_the_rest(pages: Pages) -> None:
    page = pages.get("/graph?view=manifests&most=2").text
    assert len(drawn(page)) == 2
    assert "Only 2 manifests are drawn" in page
    assert 'name="around"' in page


def test_no_more_than_the_limit_can_be_asked_for(pages: Pages) -> None:
    for most in ("0", "501", "many"):
        assert pages.get(f"/graph?most={most}").status == 422


@pytest.mark.parametrize("path", ["/groups", "/groups/extract", "/graph?view=manifests"])
def test_the_nodes_a_page_asks_for_have_the_shape_it_shows(pages: Pages, path: str) -> None:
    page = pages.get(path).text
    [address] = re.findall(r'hx-get="([^"]*/graph/nodes[^"]*)"', page)
    shapes = re.findall(r'data-shape="(\w+)"', page + pages.get(unescape(address)).text)
    assert len(shapes) == 2
    assert len(set(shapes)) == 1


def test_nodes_alone_follow_their_states_and_keep_their_shape(scene: Scene, pages: Pages) -> None:
    page = pages.get("/graph").text
    first = pages.get("/graph/nodes?view=groups")
    assert pages.get("/graph/nodes", if_none_match=first.headers["etag"]).status == 304
    scene.manage()
    scene.dispatch()
    later = pages.get("/graph/nodes", if_none_match=first.headers["etag"])
    assert later.status == 200
    assert "2 running" in later.text
    [shape] = re.findall(r'data-shape="(\w+)"', later.text)
    assert f'data-shape="{shape}"' in page


def test_the_timeline_shows_what_ran_group_by_group(scene: Scene, pages: Pages) -> None:
    scene.cycle()
    page = pages.get("/timeline?span=15m").text
    assert page.count('class="stretch is-completed"') == 2
    assert 'href="/groups/extract"' in page
    earlier = pages.get(f"/timeline?end={quote(ago(minutes=5))}").text
    assert "Nothing ran in this time" in earlier
    assert "data-live" not in earlier[earlier.index('id="timeline"') :]


def test_a_timeline_of_one_group_leaves_out_the_others(scene: Scene, pages: Pages) -> None:
    scene.cycle()
    assert "stretch" not in pages.get("/timeline?group=load").text
    assert "stretch" in pages.get("/timeline?group=extract").text


def test_a_timeline_that_ends_now_moves_by_itself(pages: Pages) -> None:
    page = pages.get("/timeline").text
    assert "data-live" in page[page.index('id="timeline"') :]
    assert "Nothing ran in this time" in page


def test_a_timeline_begins_with_a_young_deployment(scene: Scene, pages: Pages) -> None:
    scene.cycle()
    page = pages.get("/timeline").text
    assert re.search(r'aria-current="true">Since the start<', page)
    begin, end = (datetime.fromisoformat(one) for one in HEADING.findall(page)[:2])
    assert end - begin <= timedelta(minutes=1)
    hour = pages.get("/timeline?span=1h").text
    assert re.search(r'aria-current="true">1 h<', hour)


def test_a_moment_that_is_none_is_refused(pages: Pages) -> None:
    for end in ("yesterday", "0001-01-01T00:00Z", "2026-13-01", "\x01"):
        answer = pages.get(f"/timeline?span=7d&end={quote(end)}")
        assert answer.status == 422
        assert "must be a moment" in answer.text
    assert pages.get("/timeline?end=9999-12-31T23:59:59Z").status == 200


def test_hostile_names_are_only_shown(database_url: str) -> None:
    with Scene(database_url, virtual_time=False) as scene:
        group = Group(HOSTILE)
        scene.app.schedule("work", HOSTILE, None, every(hours=1), group=group).include(
            "work", f"after {HOSTILE}", None, group=Group(f"after {HOSTILE}")
        )
        scene.apply()
        scene.manage()
        scene.dispatch()
        name = quote(HOSTILE, safe="")
        with pages_of(scene) as pages:
            for path in (
                "/groups",
                f"/groups/{name}",
                f"/groups?search={name}",
                "/graph?view=manifests",
                f"/graph?around={name}",
                f"/graph?around=no{name}",
                "/timeline",
                f"/timeline?group={name}",
            ):
                page = pages.get(path).text
                assert "<script>alert" not in page
                assert "alert(1)" in page or path == "/timeline"
