"""The path somebody asked for, as routes see it."""

from collections.abc import MutableMapping
from typing import Any
from urllib.parse import quote, unquote

# No name holds a control character, so this one can stand for a slash inside a name.
ENCODED_SLASH = "\x1f"

FOR_PROGRAMS = ("/api", "/healthz", "/readyz", "/metrics")


def route_path(scope: MutableMapping[str, Any]) -> str:
    """The path below the place this application is mounted at.

    >>> route_path({"path": "/ops/groups", "root_path": "/ops"})
    '/groups'
    """
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if path == root or path.startswith(root + "/") else path


def encoded_path(scope: MutableMapping[str, Any]) -> str:
    """The same path percent-encoded, as it stands in an address.

    >>> encoded_path({"path": f"/groups/a{ENCODED_SLASH}b c"})
    '/groups/a%2Fb%20c'
    """
    return quote(route_path(scope)).replace(quote(ENCODED_SLASH), "%2F")


def is_for_programs(scope: MutableMapping[str, Any]) -> bool:
    """Whether a program asks, not a person with a browser.

    >>> is_for_programs({"path": "/api/v1/groups"}), is_for_programs({"path": "/groups"})
    (True, False)
    """
    path = route_path(scope)
    return path in FOR_PROGRAMS or path.startswith("/api/")


def keep_encoded_slashes(scope: MutableMapping[str, Any]) -> None:
    """Tell slashes inside names apart from those between them.

    >>> scope = {"path": "/manifests/a/b", "raw_path": b"/manifests/a%2Fb"}
    >>> keep_encoded_slashes(scope)
    >>> scope["path"]
    '/manifests/a\\x1fb'
    """
    raw: bytes = scope.get("raw_path") or b""
    if b"%2f" in raw.lower():
        stand_in = quote(ENCODED_SLASH)
        path = raw.decode("latin-1").replace("%2f", stand_in).replace("%2F", stand_in)
        scope["path"] = unquote(path)
