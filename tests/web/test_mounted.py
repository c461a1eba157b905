"""The web application inside one of the user's own, with the user's own authentication."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI

from headway.web.assets import assets
from tests.web.site import Site, listening
from tests.web.test_gate import FORM, with_routes

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "dashboard.md"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """The example of the guide, running."""
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(# inside\.py\n.*?)```", PAGE.read_text("utf-8"), re.S)
    Path("inside.py").write_text(example)
    inside = runpy.run_path("inside.py")
    own: FastAPI = inside["site"]
    with_routes(own.routes[-1].app)  # type: ignore[attr-defined]
    own.get("/own")(lambda: "ours")
    with listening(own) as site:
        yield site
    inside["store"].close()


def test_the_users_own_function_decides_who_gets_in(site: Site) -> None:
    assert site.get("/own").text == '"ours"'
    assert site.get("/headway/api/v1/token-of-forms").status == 401
    assert site.get("/headway/token-of-forms", x_user="bob").status == 200
    sent = site.get("/headway/token-of-forms")
    assert sent.headers["location"] == "/headway/login?next=%2Fheadway%2Ftoken-of-forms"


def test_it_needs_its_own_forms_all_the_same(site: Site) -> None:
    token = site.get("/headway/token-of-forms", x_user="ada").json()["csrf"]
    own = FORM | {"origin": f"http://127.0.0.1:{site.port}"}
    body = f"what=a&csrf_token={token}".encode()

    def act(**headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return site.ask("POST", "/headway/act", body, own | named).status

    assert act(x_user="ada") == 200
    assert act(x_user="ada", origin="http://evil.com") == 403
    assert act(x_user="bob") == 403  # neither his token nor his scope
    assert act() == 401


def test_programs_say_who_they_are_as_bearers(site: Site) -> None:
    bearer = {"authorization": "Bearer of the user's own", "x-user": "ada"}
    assert site.ask("POST", "/headway/api/v1/act", b"", bearer).status == 200


def test_links_lead_below_the_place_it_is_mounted_at(site: Site) -> None:
    page = site.get("/headway/login").text
    assert 'action="/headway/login"' in page
    linked = re.findall(r'(?:href|src|action)="(/[^"]*)"', page)
    assert all(link.startswith("/headway/") for link in linked), linked
    name = sorted(assets().contents)[0]
    assert site.get(f"/headway{assets().address(name)}").status == 200


def test_names_keep_their_slashes_and_hosts_are_the_users_affair(site: Site) -> None:
    assert site.get("/headway/healthz", host="anything.example.com").status == 200
    assert site.get("/headway/nothing%2Fhere", x_user="bob").status == 404
