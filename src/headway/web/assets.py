"""The files of the dashboard, under addresses that change with their content.

They are read once; what is asked for is looked up by name and never becomes a path.
"""

import hashlib
import mimetypes
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import Request, Response
from fastapi.responses import PlainTextResponse

from headway.web.routing import Scope, ScopedRouter

FOREVER = "public, max-age=31536000, immutable"
TYPES = {".js": "text/javascript", ".svg": "image/svg+xml", ".woff2": "font/woff2"}


@dataclass(frozen=True)
class Assets:
    """Every file, and one version over all of them."""

    contents: dict[str, bytes]
    version: str

    def address(self, name: str) -> str:
        """The path of a file.

        >>> Assets({"app.css": b""}, "1f3a").address("app.css")
        '/static/1f3a/app.css'
        """
        if name not in self.contents:
            raise LookupError(f"there is no file {name!r} in static/")
        return f"/static/{self.version}/{name}"


@cache
def assets() -> Assets:
    """The files that came with this version of headway.

    >>> assets() is assets()
    True
    """
    contents = dict(sorted(_read(files("headway.web").joinpath("static"))))
    digest = hashlib.sha256()
    for name, content in contents.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return Assets(contents, digest.hexdigest()[:12])


def _read(folder: Traversable, prefix: str = "") -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for item in folder.iterdir():
        if item.is_dir():
            found += _read(item, f"{prefix}{item.name}/")
        elif not item.name.startswith("."):
            found.append((prefix + item.name, item.read_bytes()))
    return found


router = ScopedRouter(prefix="/static")


@router.get("/{version}/{name:path}", scope=Scope.PUBLIC, include_in_schema=False)
def asset(request: Request, version: str, name: str) -> Response:
    """One file; only an address with the present version may be kept forever."""
    content = assets().contents.get(name)
    if content is None:
        return PlainTextResponse("there is no such file", 404, {"cache-control": "no-store"})
    kept = FOREVER if version == assets().version else "no-cache"
    return Response(content, headers={"cache-control": kept}, media_type=_type(name))


def _type(name: str) -> str:
    ending = name[name.rfind(".") :]
    return TYPES.get(ending) or mimetypes.guess_type(name)[0] or "application/octet-stream"
