"""What somebody wanted to change on a page that was out of date by then."""

from http import HTTPStatus

from fastapi import Request, Response

from headway.web.rendering import page


def stale_page(request: Request, title: str, sentence: str, link: str) -> Response:
    """Says with status 409 that it is too late, and where to see how things stand.

    >>> stale_page(request, "Too late", "It has ended.", "/executions/7")  # doctest: +SKIP
    """
    return page(
        request,
        "stale.html",
        status=HTTPStatus.CONFLICT,
        title=title,
        sentence=sentence,
        link=link,
    )
