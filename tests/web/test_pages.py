"""Pages on a real socket and both databases: what they show, and that all of it is inert."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import pytest

from headway.domain.execution import ExecutionState
from tests.web.shop import (
    CANARY,
    FAILING,
    GROUP,
    NASTY,
    PAYLOAD,
    TAME,
    WORKFLOW,
    Shop,
    opened_shop,
    path_of,
    toast,
)
from tests.web.site import Answered

FORBIDDEN = re.compile(r"\sstyle=|\son[a-z]+=[\"']|<style|<script(?![^>]*\ssrc=)|javascript:")


@pytest.fixture
def shop(database_url: str) -> Iterator[Shop]:
    with opened_shop(database_url) as shop:
        yield shop


def run_of(shop: Shop, name: str) -> int:
    return shop.box.last(name).id


def letter_of(shop: Shop) -> int:
    return shop.box.dead_letters()[0].id


def every_page(shop: Shop) -> list[str]:
    shop.hw.trigger(NASTY)
    entry = shop.entries()[0]
    failed, completed = run_of(shop, FAILING), run_of(shop, NASTY)
    return [
        "/",
        "/?span=week",
        "/manifests",
        path_of("manifests", NASTY),
        path_of("manifests", FAILING),
        path_of("manifests", NASTY, "trigger"),
        "/executions",
        f"/executions/{failed}",
        f"/executions/{completed}",
        f"/executions/{completed}/rerun",
        "/queue",
        f"/queue/{entry}",
        "/dead-letters",
        f"/dead-letters/{letter_of(shop)}",
        f"/dead-letters/{letter_of(shop)}/requeue",
        "/manifests?search=%3Cimg&group=%3Cscript%3E",
        "/manifests/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        "/executions?state=%3Cscript%3E",
    ]


def test_no_stored_text_becomes_more_than_text_and_no_secret_is_shown(shop: Shop) -> None:
    for path in every_page(shop):
        answer = shop.browser.get(path)
        assert answer.status in (200, 404, 422), (path, answer.text)
        assert "<img src=x" not in answer.text, path
        assert "<script>alert" not in answer.text, path
        assert not FORBIDDEN.search(without_text(answer)), path
        assert CANARY not in answer.text, path
        assert "49" not in re.findall(r"nasty [^<]*?(\d+)", answer.text), path


def without_text(answer: Answered) -> str:
    """The page without what is written between its elements, where everything is only text."""
    return "".join(re.findall(r"<[^>]*>", answer.text))


def test_the_payload_is_there_and_only_escaped(shop: Shop) -> None:
    text = shop.browser.get(path_of("manifests", NASTY)).text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text
    assert "{{7*7}}" in text


def test_home_tells_how_things_stand(shop: Shop) -> None:
    text = shop.browser.get("/").text
    assert "Success rate" in text
    assert "waits for a person" in text
    assert "no worker is alive" in text
    assert path_of("manifests", FAILING) in text


def test_manifests_are_searched_in_the_middle_of_their_names(shop: Shop) -> None:
    text = shop.browser.get("/manifests?search=rder").text
    assert f'data-manifest="{TAME}"' in text
    assert text.count("data-manifest=") == 1
    assert "Nothing matches" in shop.browser.get("/manifests?search=zebra").text


def test_manifests_that_are_off_or_dead_lettered_are_found(shop: Shop) -> None:
    assert re.findall(
        r'data-manifest="([^"]*)"', shop.browser.get("/manifests?state=off").text
    ) == ["asleep"]
    dead = shop.browser.get("/manifests?state=dead").text
    assert dead.count("data-manifest=") == 1
    assert "dead letter" in dead


def test_a_manifest_says_why_and_what_it_was_declared_with(shop: Shop) -> None:
    text = shop.browser.get(path_of("manifests", TAME)).text
    gates = dict(re.findall(r'data-gate="([^"]*)" data-passed="([^"]*)"', text))
    assert gates["enabled"] == "yes"
    assert gates["parents"] == "no"
    assert "Runs after" in text
    assert "Followed by" in text
    assert "tame" in text


def test_a_reader_sees_no_buttons_and_may_not_press_them(shop: Shop) -> None:
    reader = shop.as_reader()
    assert "/switch" not in reader.get(path_of("manifests", TAME)).text
    refused = reader.send(path_of("manifests", TAME, "switch"), {"enabled": "no"})
    assert refused.status == 403
    assert "operate" in refused.text


def test_a_manifest_is_switched_off_and_says_so_once(shop: Shop) -> None:
    answer = shop.browser.send(path_of("manifests", TAME, "switch"), {"enabled": "no"})
    page = shop.browser.followed(answer)
    assert toast(page).startswith(f"{TAME} is off")
    assert 'aria-checked="false"' in page.text
    assert "max-age=0" in page.headers["set-cookie"].lower()
    assert toast(shop.browser.get(path_of("manifests", TAME))) == ""


def test_an_execution_shows_its_way_and_what_went_wrong(shop: Shop) -> None:
    text = shop.browser.get(f"/executions/{run_of(shop, FAILING)}").text
    for station in ("Queued", "Dispatched", "Started", "Failed"):
        assert f'way-name">{station}<' in text
    assert "ValueError" in text
    assert 'id="traceback"' in text
    assert 'data-copy="traceback"' in text
    assert "data-live" not in text.partition("<body")[2].partition("<main")[2]


def test_an_execution_shows_the_idempotency_key_that_its_job_was_given(shop: Shop) -> None:
    run = shop.box.last(TAME)
    text = shop.browser.get(f"/executions/{run.id}").text
    shown = re.search(r"<dt>Idempotency key</dt><dd[^>]*>([^<]*)</dd>", text)
    assert shown and unescape(shown[1]) == run.idempotency_key


def test_the_output_that_was_kept_is_shown(shop: Shop) -> None:
    assert 'id="output"' in shop.browser.get(f"/executions/{run_of(shop, NASTY)}").text


def test_executions_are_filtered(shop: Shop) -> None:
    failed = shop.browser.get("/executions?state=failed").text
    states = set(re.findall(r'<tr data-state="(\w+)"', failed))
    assert states == {ExecutionState.FAILED}
    wrong = shop.browser.get("/executions?state=odd")
    assert wrong.status == 422
    assert "must be one of" in wrong.text


def test_pages_lead_to_the_next_one(shop: Shop) -> None:
    for _ in range(60):
        shop.hw.trigger(TAME)
    first = shop.browser.get("/queue").text
    link = re.search(r'rel="next" href="(\?[^"]*)"', first)
    assert link
    second = shop.browser.get("/queue" + link[1].replace("&amp;", "&")).text
    seen = re.findall(r'id="entry-(\d+)"', first), re.findall(r'id="entry-(\d+)"', second)
    assert len(set(seen[0]) | set(seen[1])) == 60


def test_what_has_not_changed_is_not_sent_again(shop: Shop) -> None:
    for path in ("/", "/manifests", "/executions", path_of("manifests", TAME)):
        first = shop.browser.get(path, hx_request="true")
        again = shop.browser.get(path, hx_request="true", if_none_match=first.headers["etag"])
        assert (again.status, again.body) == (304, b""), path


def test_what_is_not_there_is_told_with_404(shop: Shop) -> None:
    for path in ("/manifests/nobody", "/executions/999999", "/queue/999999", "/dead-letters/99999"):
        assert shop.browser.get(path).status == 404, path


def test_groups_workflows_and_names_with_odd_signs_have_pages(shop: Shop) -> None:
    text = shop.browser.get(path_of("manifests", NASTY)).text
    assert path_of("groups", GROUP) in text
    assert WORKFLOW.replace("<", "&lt;").partition("&")[0] in text
    assert PAYLOAD not in text
