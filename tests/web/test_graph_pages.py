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
from headway.web.pages.graph_nodes import group_words, natural
from headway.web.pages.timeline import Window
from tests.builders import Scene
from tests.store.factories import dead_letter_for
from tests.web.deployment import Pages, declare_shop, pages_of
from tests.web.parts import links, plain, pressed, said

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


on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


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


WAITS = "waits for, and what waits for it."


@on_sqlite
@pytest.mark.parametrize(
    ("query", "chip", "lead"),
    [
        ("", "Groups", "What runs after what, from left to right."),
        ("?view=odd", "Groups", "What runs after what, from left to right."),
        ("?view=manifests", "Manifests", "What runs after what, from left to right."),
        (
            "?view=manifests&group=extract",
            "Manifests of extract",
            "What runs after what in group extract .",
        ),
        ("?view=manifests&around=load", "Around load", f"What manifest load {WAITS}"),
        ("?around=extract", "Around extract", f"What group extract {WAITS}"),
    ],
)
def test_the_graph_says_what_it_shows(pages: Pages, query: str, chip: str, lead: str) -> None:
    page = pages.get(f"/graph{query}").text
    assert pressed(page) == [chip]
    [shown] = re.findall(r'<p class="lead">(.*?)</p>', page, re.S)
    assert plain(shown) == lead


@on_sqlite
def test_the_graph_says_how_much_is_in_it(pages: Pages) -> None:
    groups, manifests = pages.get("/graph").text, pages.get("/graph?view=manifests").text
    assert "2 groups, 1 edge" in said(groups, "main")
    assert 'aria-label="Which groups run after which: 2 nodes, 1 edge"' in groups
    assert 'aria-label="What runs after what: 3 nodes, 1 edge"' in manifests
    assert "graph-low" in groups, "one row of boxes"
    assert "graph-low" not in manifests and "graph-large" not in manifests
    none = pages.get("/graph?view=manifests&around=nobody").text
    assert "There is no manifest of this name" in said(none, "main")
    none = pages.get("/graph?view=manifests&group=nobody").text
    assert "There is no group of this name nobody" in said(none, "main")


@on_sqlite
def test_a_manifest_in_the_graph_has_its_state_and_its_group(scene: Scene, pages: Pages) -> None:
    dead_letter_for(scene.store, "load")
    scene.manage()
    page = pages.get("/graph?view=manifests").text
    assert re.findall(r'class="node (is-\w+)', page) == ["is-queued", "is-queued", "is-failed"]
    words = re.findall(r'class="node-word"[^>]*>([^<]*)<', page)
    assert words == ["waiting", "waiting", "dead letter"]
    asides = re.findall(r'class="node-aside"[^>]*>([^<]*)<', page)
    assert asides == ["extract", "extract", "load"]


@on_sqlite
def test_nodes_alone_are_those_that_are_asked_for(pages: Pages) -> None:
    def names(query: str) -> list[str]:
        return re.findall(r'data-name="([^"]*)"', pages.get(f"/graph/nodes?{query}").text)

    assert names("") == ["extract", "load"]
    assert names("view=manifests") == ["extract-a", "extract-b", "load"]
    assert names("view=manifests&group=extract") == ["extract-a", "extract-b"]
    assert names("view=manifests&around=load") == ["extract-a", "load"]
    assert len(names("view=manifests&most=2")) == 2
    assert "node-here" in pages.get("/graph/nodes?around=load").text


def test_numbers_in_names_come_in_their_order() -> None:
    assert sorted(["load-10", "load-9b", "load-9a-2"], key=natural) == [
        "load-9a-2", "load-9b", "load-10",
    ]  # fmt: skip


TWELVE = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("span", "end", "began", "shown", "length", "live"),
    [
        ("1h", "", None, "1h", timedelta(hours=1), True),
        ("7d", "", timedelta(minutes=4), "7d", timedelta(days=7), True),
        ("odd", "", None, "1h", timedelta(hours=1), True),
        ("", "", timedelta(hours=1), "1h", timedelta(hours=1), True),
        ("", "", timedelta(minutes=59, seconds=40), "all", timedelta(hours=1), True),
        ("", "", timedelta(seconds=61), "all", timedelta(seconds=90), True),
        ("", "", timedelta(0), "all", timedelta(seconds=30), True),
        ("", "2026-01-05T10:00Z", timedelta(minutes=4), "1h", timedelta(hours=1), False),
        ("15m", "2026-01-05T11:59:59Z", None, "15m", timedelta(minutes=15), False),
        ("15m", "2026-01-05T12:00", None, "15m", timedelta(minutes=15), True),
    ],
)
def test_a_window_of_time_is_what_was_asked_for(
    span: str, end: str, began: timedelta | None, shown: str, length: timedelta, live: bool
) -> None:
    window = Window.asked(span, end, TWELVE, None if began is None else TWELVE - began)
    assert (window.span, window.end - window.start, window.live) == (shown, length, live)
    if not live:
        assert window.end == datetime.fromisoformat(end)


def test_a_window_that_ends_now_moves_in_steps() -> None:
    later = [Window.asked("1h", "", TWELVE + timedelta(seconds=one)) for one in (1, 12, 13)]
    assert [one.end - TWELVE for one in later] == [
        timedelta(seconds=12), timedelta(seconds=12), timedelta(seconds=24),
    ]  # fmt: skip


def test_a_window_can_be_moved_and_cut() -> None:
    window = Window.asked("1h", "2026-01-05T10:00:00+01:00", TWELVE)
    assert [window.moved(by) for by in (-0.5, 0, 0.5)] == [
        "2026-01-05T08:30:00Z", "2026-01-05T09:00:00Z", "2026-01-05T09:30:00Z",
    ]  # fmt: skip
    half = datetime(2026, 1, 5, 8, 30, tzinfo=UTC)
    assert window.beginning(half).start == half and window.beginning(half).end == window.end
    assert window.beginning(half - timedelta(hours=9)) == window


@on_sqlite
def test_the_timeline_names_groups_and_leads_to_runs(scene: Scene, pages: Pages) -> None:
    scene.trigger("load")
    scene.pending("work")
    scene.cycle()
    page = pages.get("/timeline?span=15m").text
    named = re.findall(r'class="row-name">([^<]*)<', page)
    assert named == ["extract", "load", "without a group"]
    counts = re.findall(r'class="row-count"[^>]*>([^<]*)<', page)
    assert counts == ["2 runs", "1 run", "1 run"]
    assert re.findall(r'<a href="(/groups/\w+)"><tspan', page) == [
        "/groups/extract",
        "/groups/load",
    ]
    runs = re.findall(r'<a href="(/executions/\d+)" aria-label="([\w-]+): completed', page)
    assert sorted(name for _, name in runs) == ["extract-a", "extract-b", "load", "work"]
    assert len({address for address, _ in runs}) == 4
    assert ("As a list", "/executions") in links(page)
    one = pages.get("/timeline?group=+load+&span=15m").text
    assert re.findall(r'class="row-name">([^<]*)<', one) == ["load"]


@on_sqlite
def test_the_timeline_can_be_moved_and_keeps_what_was_asked_for(pages: Pages) -> None:
    page = pages.get("/timeline?span=6h&group=load&end=2026-01-05T10:00:00Z").text
    found = dict(links(page))
    asked = "?span=6h&group=load&end="
    begins = re.findall(r'href="([^"]*)" aria-label="(Earlier|Later)"', page)
    assert [(unescape(one), text) for one, text in begins] == [
        (f"{asked}2026-01-05T07%3A00%3A00Z", "Earlier"),
        (f"{asked}2026-01-05T13%3A00%3A00Z", "Later"),
    ]
    assert found["Now"] == "?span=6h&group=load"
    assert found["1 h"] == "?span=1h&group=load&end=2026-01-05T10%3A00%3A00Z"
    assert pressed(page) == ["6 h"]
    assert HEADING.findall(page)[:2] == ["2026-01-05T04:00:00+00:00", "2026-01-05T10:00:00+00:00"]
    assert 'name="group" value="load"' in page and 'name="span" value="6h"' in page
    assert 'name="end" value="2026-01-05T10:00:00Z"' in page
    assert "Nothing ran in load in this time" in said(page, "timeline")
    live = pages.get("/timeline").text
    assert 'name="end"' not in live and "Now" not in dict(links(live))
    assert "Since the start" not in dict(links(live))
