"""Links and pages as answers: what is quoted, what is kept by the browser, and what is not."""

from __future__ import annotations

import pytest
from fastapi import Request

from headway.web.rendering import html, see_other, url


def request(method: str = "GET", root_path: str = "", **headers: str) -> Request:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": method, "headers": raw, "root_path": root_path})


@pytest.mark.parametrize(
    ("path", "names", "query", "link"),
    [
        ("/", (), {}, "/"),
        ("/groups/", ("a/b", "trigger"), {}, "/groups/a%2Fb/trigger"),
        ("/groups", ("100% é",), {}, "/groups/100%25%20%C3%A9"),
        ("/executions", (7,), {}, "/executions/7"),
        ("/queue", (), {"group": "a&b", "page": 2}, "/queue?group=a%26b&page=2"),
        ("/queue", (), {"group": None, "source": "", "page": 0}, "/queue?page=0"),
        ("/groups", ("\ud800",), {"next": "\ud800"}, "/groups/%3F?next=%3F"),
    ],
)
def test_a_link_quotes_what_stands_in_it(
    path: str, names: tuple[object, ...], query: dict[str, object], link: str
) -> None:
    assert url(request(), path, *names, **query) == link
    assert url(request(root_path="/ops/"), path, *names, **query) == f"/ops{link}"


def test_after_a_form_the_browser_goes_and_looks() -> None:
    led = see_other(request("POST", "/ops"), "/groups", "a/b", told="x")
    assert (led.status_code, led.headers["location"]) == (303, "/ops/groups/a%2Fb?told=x")


def test_a_page_is_kept_by_the_browser_that_asked_for_it() -> None:
    page = html(request(), "<p>é</p>")
    assert (page.status_code, bytes(page.body).decode()) == (200, "<p>é</p>")
    kept = {"cache-control": "private, no-cache", "vary": "Cookie, HX-Request, HX-Boosted"}
    assert kept.items() <= dict(page.headers).items()
    assert "hx-push-url" not in page.headers
    tag = page.headers["etag"]
    assert html(request(), "<p>e</p>").headers["etag"] != tag
    again = html(request(if_none_match=tag), "<p>é</p>")
    assert (again.status_code, again.body) == (304, b"")
    assert kept | {"etag": tag} == dict(again.headers)
    assert html(request(if_none_match='W/"other"'), "<p>é</p>").status_code == 200


@pytest.mark.parametrize(("method", "status"), [("POST", 200), ("GET", 404), ("POST", 422)])
def test_what_answers_a_form_or_tells_of_an_error_is_kept_nowhere(method: str, status: int) -> None:
    answer = html(request(method), "<p>", status)
    assert (answer.status_code, answer.body) == (status, b"<p>")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["hx-push-url"] == "false"
    assert "etag" not in answer.headers


def test_text_that_cannot_be_utf_8_is_shown_escaped() -> None:
    assert html(request(), "<p>\ud800</p>").body == rb"<p>\ud800</p>"
