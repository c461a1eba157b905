"""Pages of lists, with a link to the next one."""

from collections.abc import Callable
from typing import Generic, TypeVar
from urllib.parse import parse_qsl, urlencode

from fastapi import Request, Response
from pydantic import Field

from headway.domain.paging import Page
from headway.web.api.fields import Answer

Item = TypeVar("Item")
View = TypeVar("View")


class Paged(Answer, Generic[Item]):
    """Some items of a list; a page may be short and still have a next one."""

    items: list[Item]
    next: str | None = Field(
        default=None, description="The cursor of the next page; none at the end", examples=[None]
    )


def paged(
    request: Request, response: Response, page: Page[View], item: Callable[[View], Item]
) -> Paged[Item]:
    """*page* as it is answered; the header ``Link`` names the next one.

    >>> paged(request, response, history.queue.page(), EntryItem.of)  # doctest: +SKIP
    """
    if page.next is not None:
        asked = parse_qsl(request.url.query, keep_blank_values=True)
        kept = [(name, value) for name, value in asked if name != "cursor"]
        query = urlencode([*kept, ("cursor", page.next)])
        response.headers["link"] = f'<?{query}>; rel="next"'
    return Paged(items=[item(view) for view in page.items], next=page.next)
