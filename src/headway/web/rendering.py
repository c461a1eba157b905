"""Pages from templates: everything is escaped, whatever a template is called.

A template knows ``request``, ``identity`` (None before login), ``now``, ``version``,
``url(path, *names)`` for links below the place this application is mounted at,
``with_query(**changes)`` for the same page asked otherwise, ``asset(name)`` for files,
``csrf_token`` and ``once_key()`` for forms, ``told``, what is to be said once, ``waiting``, the
numbers beside links, and ``frame``, the template around it: nothing but what may have changed for
a page that asks for its own content again.
"""

import hashlib
import secrets
from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context

import headway
from headway.domain.text import encodable
from headway.web.assets import assets
from headway.web.context import known_identity, surface
from headway.web.filters import FILTERS
from headway.web.telling import forget, told

CSRF = "headway.csrf"
# What answers a form has no address of its own: a browser that shows it stays where it is.
NOT_A_PLACE = {"cache-control": "no-store", "hx-push-url": "false"}
PRIVATE = {"cache-control": "private, no-cache", "vary": "Cookie, HX-Request, HX-Boosted"}


@cache
def environment() -> Environment:
    """The one environment of all pages.

    >>> environment().from_string("{{ name }}").render(name="<script>")
    '&lt;script&gt;'
    """
    made = Environment(
        loader=PackageLoader("headway.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(FILTERS)
    made.globals.update(
        url=_url_in_page,
        asset=_asset_in_page,
        with_query=_with_query,
        once_key=_once_key,
        version=headway.__version__,
    )
    return made


def page(
    request: Request, template: str, /, *, status: int = HTTPStatus.OK, **values: Any
) -> Response:
    """*template* with *values*; unchanged since the reader's last look, only that it is.

    >>> page(request, "manifests.html", manifests=found)  # doctest: +SKIP
    """
    return forget(request, html(request, rendered(request, template, values), status))


def rendered(request: Request, template: str, values: Mapping[str, Any]) -> str:
    """The text of *template* with *values* and what every page knows.

    >>> rendered(request, "_queue.html", {"entries": []})  # doctest: +SKIP
    """
    identity = known_identity(request)
    known = {
        "request": request,
        "identity": identity,
        "frame": "refresh.html" if _refreshing(request) else "base.html",
        "csrf_token": request.scope.get(CSRF, ""),
        "now": surface(request).clock(),
        "told": told(request),
    }
    if "waiting" not in values:
        known["waiting"] = surface(request).history.overview.waiting() if identity else None
    return environment().get_template(template).render(known | dict(values))


def _refreshing(request: Request) -> bool:
    """Whether a page asks for its own content again; forms and filters are boosted."""
    asked = request.headers
    return request.method == "GET" and "hx-request" in asked and "hx-boosted" not in asked


def html(request: Request, text: str, status: int = HTTPStatus.OK) -> Response:
    """*text* as an answer with an ETag, or 304 if the reader has it.

    >>> html(Request({"type": "http", "method": "GET", "headers": []}), "<p>").body
    b'<p>'
    """
    text = encodable(text)  # rows stored by earlier versions may hold what cannot be UTF-8
    if request.method != "GET" or status != HTTPStatus.OK:
        return HTMLResponse(text, status, NOT_A_PLACE)
    etag = f'W/"{hashlib.sha256(text.encode()).hexdigest()[:24]}"'
    headers = {"etag": etag} | PRIVATE
    if etag in request.headers.get("if-none-match", ""):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return HTMLResponse(text, status, headers)


def url(request: Request, path: str, /, *names: object, **query: object) -> str:
    """A link below the place this application is mounted at, with *names* quoted behind *path*.

    >>> url(Request({"type": "http"}), "/manifests", "a/b", "trigger", page=2)
    '/manifests/a%2Fb/trigger?page=2'
    """
    root = str(request.scope.get("root_path", "")).rstrip("/")
    place = "".join(f"/{quote(str(name), safe='', errors='replace')}" for name in names)
    asked = {name: value for name, value in query.items() if value not in (None, "")}
    behind = f"?{urlencode(asked, errors='replace')}" if asked else ""
    return f"{root}{path.rstrip('/') if names else path}{place}{behind}"


def see_other(request: Request, path: str, /, *names: object, **query: object) -> Response:
    """After a form was handled: go and look at *path*.

    >>> see_other(Request({"type": "http"}), "/groups", "users").headers["location"]
    '/groups/users'
    """
    return RedirectResponse(url(request, path, *names, **query), HTTPStatus.SEE_OTHER)


@pass_context
def _url_in_page(context: Context, path: str, *names: object, **query: object) -> str:
    return url(context["request"], path, *names, **query)


@pass_context
def _with_query(context: Context, **changes: object) -> str:
    asked = {**context["request"].query_params, **changes}
    named = {name: value for name, value in asked.items() if value is not None}
    return "?" + urlencode(named, errors="replace")


@pass_context
def _once_key(context: Context) -> str:
    """What tells one form from the same sent twice.

    A page that is asked for again and again must not change by it: there the page makes one.
    """
    request: Request = context["request"]
    again = request.method == "GET" and "hx-request" in request.headers
    return "" if again else secrets.token_urlsafe(16)


@pass_context
def _asset_in_page(context: Context, name: str) -> str:
    return url(context["request"], assets().address(name))
