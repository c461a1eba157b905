"""What is said once, on the page that is seen next: a cookie carries it over the redirect.

The text is shown as text; whoever forges the cookie can only tell something to themselves.
"""

import base64
import json
from dataclasses import dataclass

from fastapi import Request, Response

COOKIE = "headway-told"
SECONDS = 30
LONGEST = 500
KINDS = ("ok", "warning", "error")


@dataclass(frozen=True)
class Told:
    """A sentence, and whether it is good news.

    >>> Told("load-users was triggered").kind
    'ok'
    """

    text: str
    kind: str = "ok"


def tell(request: Request, response: Response, text: str, kind: str = "ok") -> Response:
    """*response*, after which the next page says *text*.

    >>> tell(Request({"type": "http"}), Response(), "done").headers["set-cookie"][:13]
    'headway-told='
    """
    sent = base64.urlsafe_b64encode(json.dumps([kind, text[:LONGEST]]).encode()).decode()
    path = request.scope.get("root_path", "") or "/"
    response.set_cookie(COOKIE, sent, max_age=SECONDS, path=path, httponly=True, samesite="strict")
    return response


def told(request: Request) -> Told | None:
    """What is to be said on the page that *request* asks for.

    >>> told(Request({"type": "http", "headers": []})) is None
    True
    """
    try:
        kind, text = json.loads(base64.urlsafe_b64decode(request.cookies.get(COOKIE, "")))
    except (TypeError, ValueError, RecursionError):
        return None
    if kind not in KINDS or not isinstance(text, str):
        return None
    return Told(text[:LONGEST], kind)


def forget(request: Request, response: Response) -> Response:
    """*response*, after which it has been said.

    >>> forget(Request({"type": "http", "headers": []}), Response()).headers.get("set-cookie")
    """
    if COOKIE in request.cookies:
        response.delete_cookie(
            COOKIE, path=request.scope.get("root_path", "") or "/", httponly=True, samesite="strict"
        )
    return response
