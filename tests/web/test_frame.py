"""What is around every page: numbers beside the links, folded filters, refreshes, errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from headway.web.pages.asked import moment, switched
from tests.builders import Scene
from tests.store.factories import FAILED, dead_letter_for, queue, ran, started
from tests.web.deployment import Pages, declare_shop, pages_of
from tests.web.parts import said

COUNT = re.compile(r'id="count-([\w-]+)"( hidden)?>([\d+]*)')

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


def counts(text: str) -> dict[str, str]:
    """The numbers that are shown, by what they are of."""
    return {name: number for name, hidden, number in COUNT.findall(text) if not hidden}


def test_links_say_how_much_runs_and_waits(scene: Scene, pages: Pages) -> None:
    assert counts(pages.get("/settings").text) == {}
    started(scene.store, "extract-a")
    queue(scene.store, "extract-b")
    dead_letter_for(scene.store, "load")
    shown = counts(pages.get("/settings").text)
    assert shown == {"executions": "1", "queue": "1", "dead-letters": "1", "menu": ""}


def test_a_refresh_brings_the_content_and_the_numbers_only(scene: Scene, pages: Pages) -> None:
    dead_letter_for(scene.store, "load")
    whole = pages.get("/executions").text
    again = pages.get("/executions", hx_request="true")
    assert 'id="executions"' in again.text and counts(again.text)["dead-letters"] == "1"
    assert "<html" not in again.text and 'id="nav"' not in again.text
    assert len(again.text) < len(whole) / 2
    assert "HX-Boosted" in again.headers["vary"]
    told = again.headers["etag"]
    assert pages.get("/executions", hx_request="true", if_none_match=told).status == 304


def test_a_filter_or_a_form_gets_the_whole_page(pages: Pages) -> None:
    filtered = pages.get("/executions?state=failed", hx_request="true", hx_boosted="true").text
    assert 'id="nav"' in filtered and 'id="crumbs"' in filtered and 'id="toasts"' in filtered


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("/manifests?search=a", 0),
        ("/manifests?search=a&group=load&kind=cron", 2),
        ("/executions?state=failed&group=load", 2),
        ("/queue?source=trigger", 1),
        ("/dead-letters", 0),
        ("/dead-letters?status=all&group=load", 2),
        ("/audit?actor=ada", 1),
    ],
)
def test_folded_filters_say_how_many_are_set(pages: Pages, path: str, number: int) -> None:
    page = Pages(pages.site, "alma").get(path).text
    [label] = re.findall(r'<label class="button fold-label".*?</label>', page, re.S)
    assert re.findall(r'is-active">(\d+)', label) == ([str(number)] if number else [])


def test_one_record_is_one_record(pages: Pages) -> None:
    pages.post("/groups/extract/switch", {"enabled": "no"})
    page = Pages(pages.site, "alma").get("/audit").text
    assert "<span>1 record</span>" in page


def test_nobody_is_led_to_what_they_may_not_see(pages: Pages) -> None:
    assert 'href="/audit"' not in pages.get("/settings").text
    assert 'href="/audit"' in Pages(pages.site, "alma").get("/settings").text


def test_dead_letters_say_what_went_wrong(scene: Scene, pages: Pages) -> None:
    ran(scene.store, "extract-a", FAILED)
    dead_letter_for(scene.store, "extract-a")
    page = pages.get("/dead-letters").text
    assert FAILED.failure is not None and FAILED.failure.message in page


def test_what_waits_for_a_person_promises_no_next_run(scene: Scene, pages: Pages) -> None:
    dead_letter_for(scene.store, "extract-a")
    page = pages.get("/manifests/extract-a").text
    planned = page[page.index('id="next-runs"') :].partition("</section>")[0]
    assert "until" in planned and "<li>" not in planned


def test_why_tells_moments_in_the_readers_zone(scene: Scene, pages: Pages) -> None:
    scene.cycle()
    page = pages.get("/manifests/extract-b").text
    [due] = re.findall(r'data-gate="due" data-passed="no">(.*?)</li>', page, re.S)
    assert 'data-time="instant"' in due


def test_a_group_that_is_off_is_named_as_the_reason(pages: Pages) -> None:
    pages.post("/groups/extract/switch", {"enabled": "no"})
    assert "group is off</span>" in pages.get("/manifests").text
    assert "None: its group is off." in pages.get("/manifests/extract-a").text


def test_a_home_without_manifests_says_what_to_do(database_url: str) -> None:
    with Scene(database_url, virtual_time=False) as scene, pages_of(scene) as pages:
        assert "Nothing is declared yet" in pages.get("/").text
        declare_shop(scene)
        assert "Nothing is declared yet" not in pages.get("/").text


def test_errors_are_told_in_words(pages: Pages) -> None:
    nowhere = pages.get("/nowhere")
    assert nowhere.status == 404 and "There is nothing here" in nowhere.text
    assert 'href="/manifests"' in nowhere.text[nowhere.text.index('id="failure"') :]


@on_sqlite
def test_a_stranger_is_asked_for_a_token_and_led_on(pages: Pages) -> None:
    stranger = Pages(pages.site, "nobody")
    page = stranger.get("/login?next=/groups?search=x").text
    assert 'name="next" value="/groups?search=x"' in page
    assert 'class="plain"' in page and 'id="nav"' not in page and "Log out" not in page
    assert 'role="alert"' not in page
    for elsewhere in ("//evil.example", "https://evil.example", "groups", "/\\evil.example"):
        assert 'name="next"' not in stranger.get(f"/login?next={elsewhere}").text
    form = {"content-type": "application/x-www-form-urlencoded"}
    own = {"origin": f"http://127.0.0.1:{pages.site.port}"}
    refused = pages.site.ask("POST", "/login", b"token=guessed&next=/groups", form | own)
    assert refused.status == 401
    assert "This token is not known here, or is over." in said(refused.text, "main")
    assert 'name="next" value="/groups"' in refused.text


@on_sqlite
def test_who_is_known_needs_not_log_in(pages: Pages) -> None:
    answer = pages.get("/login")
    assert (answer.status, answer.headers["location"]) == (303, "/")
    out = pages.post("/logout")
    assert (out.status, out.headers["location"]) == (303, "/login")


@on_sqlite
@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("state=odd", "state = 'odd': must be one of pending, in_progress, completed, failed, "),
        ("source=x", "source = 'x': must be one of schedule, "),
        ("since=soon", "since = 'soon': must be a date and time; for example 2026-01-05T09:00"),
        ("until=1-1", "until = '1-1': must be a date and time; for example 2026-01-05T09:00"),
    ],
)
def test_what_is_asked_for_wrongly_is_named_with_an_example(
    pages: Pages, query: str, error: str
) -> None:
    answer = pages.get(f"/executions?{query}")
    assert answer.status == 422
    told = said(answer.text, "failure")
    assert error in told and told.endswith("Status 422 Home Manifests Executions")


def test_moments_without_a_zone_are_in_utc() -> None:
    nine = datetime(2026, 1, 5, 9, tzinfo=UTC)
    assert moment("since", "2026-01-05T09:00") == nine
    assert moment("since", "2026-01-05T10:00+01:00") == nine
    assert moment("since", "") is None
    assert (switched("on"), switched("off"), switched("dead")) == (True, False, None)
