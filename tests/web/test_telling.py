"""What is said once: it travels in a cookie from a form to the next page, and is gone after it."""

from __future__ import annotations

import base64
import json
from http.cookies import SimpleCookie

import pytest
from fastapi import Request, Response

from headway.web.telling import COOKIE, Told, forget, tell, told


def request(cookie: str = "", root_path: str = "") -> Request:
    headers = [(b"cookie", cookie.encode())] if cookie else []
    return Request({"type": "http", "headers": headers, "root_path": root_path})


def carried(response: Response) -> str:
    morsel = SimpleCookie(response.headers["set-cookie"])[COOKIE]
    return f"{COOKIE}={morsel.value}"


def forged(*, said: object) -> str:
    return f"{COOKIE}={base64.urlsafe_b64encode(json.dumps(said).encode()).decode()}"


@pytest.mark.parametrize("kind", ["ok", "warning", "error"])
def test_the_next_page_says_what_was_told(kind: str) -> None:
    response = tell(request(), Response(), "odd/näme was triggered", kind)
    assert told(request(carried(response))) == Told("odd/näme was triggered", kind)


def test_it_is_good_news_unless_told_otherwise() -> None:
    assert told(request(carried(tell(request(), Response(), "done")))) == Told("done", "ok")


@pytest.mark.parametrize(("root_path", "path"), [("", "/"), ("/inside", "/inside")])
def test_the_cookie_is_short_lived_and_out_of_reach_of_scripts(root_path: str, path: str) -> None:
    headers = tell(request(root_path=root_path), Response(), "done").headers
    assert headers["set-cookie"].endswith(f"; HttpOnly; Max-Age=30; Path={path}; SameSite=strict")


def test_a_long_text_is_cut() -> None:
    assert told(request(carried(tell(request(), Response(), "x" * 600)))) == Told("x" * 500)
    assert told(request(forged(said=["ok", "x" * 600]))) == Told("x" * 500)


@pytest.mark.parametrize("said", [["good", "x"], ["ok", 7], ["ok"], ["ok", "x", "y"], "ok", 7])
def test_what_was_not_told_here_is_not_said(said: object) -> None:
    assert told(request(forged(said=said))) is None
    assert told(request(f"{COOKIE}=nonsense")) is None


@pytest.mark.parametrize(("root_path", "path"), [("", "/"), ("/inside", "/inside")])
def test_what_has_been_said_is_forgotten(root_path: str, path: str) -> None:
    seen = forget(request(f"{COOKIE}=x", root_path), Response()).headers["set-cookie"]
    assert seen.startswith(f'{COOKIE}="";')
    assert f"; HttpOnly; Max-Age=0; Path={path}; SameSite=strict" in seen
    assert "set-cookie" not in forget(request("other=x"), Response()).headers
