"""Entity tags: what somebody has already, and what they have looked at before they change it.

A tag is a fingerprint of the answer; that of something editable begins with its version. Asking
again compares the whole tag, changing compares the version alone: counts may have moved meanwhile.
"""

import hashlib
import re
from typing import Annotated

from fastapi import Header
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from headway.domain.text import shown

_TAG = re.compile(r'(?:W/)?"([\x21\x23-\x7e]*)"')
_VERSION = re.compile(r'"([0-9a-f]{1,20})\.[0-9a-f]{16}"')

PRIVATE = "private, no-cache"


def tag_of(body: bytes, version: str = "") -> str:
    """The tag of an answer, and the version of what it shows if that can be edited.

    >>> tag_of(b"{}"), tag_of(b"{}", "647a3")
    ('"44136fa355b3678a"', '"647a3.44136fa355b3678a"')
    """
    fingerprint = hashlib.sha256(body).hexdigest()[:16]
    return f'"{version}.{fingerprint}"' if version else f'"{fingerprint}"'


def is_known(if_none_match: str, tag: str) -> bool:
    """Whether somebody who sent these tags has the answer already.

    >>> is_known('"a", W/"b"', '"b"'), is_known("*", '"b"'), is_known('"a"', '"b"')
    (True, True, False)
    """
    return if_none_match.strip() == "*" or tag.strip('"') in _TAG.findall(if_none_match)


def tagged(request: Request, response: Response) -> Response:
    """*response* with its tag, or a short answer if whoever asked has it already.

    >>> tagged(request, response).status_code  # doctest: +SKIP
    304
    """
    if response.status_code != 200 or not hasattr(response, "body"):
        return response
    tag = tag_of(bytes(response.body), response.headers.get("etag", ""))
    headers = MutableHeaders(raw=list(response.raw_headers))
    headers["etag"] = tag
    headers.setdefault("cache-control", PRIVATE)
    if is_known(request.headers.get("if-none-match", ""), tag):
        del headers["content-length"]
        del headers["content-type"]
        return Response(status_code=304, headers=dict(headers))
    response.raw_headers = headers.raw
    return response


def versioned(response: Response) -> Response:
    """The answer to a change, with the tag that the next change needs.

    >>> versioned(Response(b"{}", headers={"etag": "647a3"})).headers["etag"]
    '"647a3.44136fa355b3678a"'
    """
    if "etag" in response.headers:
        response.headers["etag"] = tag_of(bytes(response.body), response.headers["etag"])
    return response


def expected_version(if_match: str | None) -> str:
    """The version somebody has seen of what they want to change.

    >>> expected_version('"647a3.44136fa355b3678a"')
    '647a3'
    """
    if if_match is None:
        raise HTTPException(
            428, "If-Match is missing: send the ETag that a GET of the same address has given"
        )
    found = _VERSION.fullmatch(if_match.strip())
    if found is None:
        raise HTTPException(
            412,
            f"If-Match = {shown(if_match)}: is no ETag of this; for example "
            '"647a3.44136fa355b3678a", as a GET of the same address has given',
        )
    return found.group(1)


IfMatch = Annotated[
    str | None,
    Header(
        max_length=200,
        description="The `ETag` of what is changed, as a GET of the same address has given it",
        examples=['"647a3.44136fa355b3678a"'],
    ),
]
