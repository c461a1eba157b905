"""The dependency graph of groups and of manifests, whole or around one of them."""

from fastapi import Request, Response

from headway.domain.views import Graph
from headway.web.context import surface
from headway.web.pages.graph_nodes import MOST_NODES, Drawing
from headway.web.rendering import html, page
from headway.web.routing import Scope, ScopedRouter

router = ScopedRouter()

VIEWS = ("groups", "manifests")


@router.get("/graph", scope=Scope.READ, include_in_schema=False)
def graph(
    request: Request,
    view: str = "groups",
    around: str = "",
    group: str = "",
    most: int = MOST_NODES,
) -> Response:
    """What runs after what."""
    view = view if view in VIEWS else VIEWS[0]
    found = _found(request, view, around, group, most)
    return page(
        request,
        "graph.html",
        view=view,
        around=around,
        group=group,
        graph=found,
        drawing=Drawing(request, found, around or None),
        most=MOST_NODES,
    )


@router.get("/graph/nodes", scope=Scope.READ, include_in_schema=False)
def nodes(
    request: Request,
    view: str = "groups",
    around: str = "",
    group: str = "",
    most: int = MOST_NODES,
) -> Response:
    """How the nodes of a graph stand now: asked for every few seconds by whoever looks at it."""
    found = _found(request, view, around, group, most)
    return html(request, str(Drawing(request, found, around or None).nodes))


def _found(request: Request, view: str, around: str, group: str, most: int) -> Graph:
    history = surface(request).history
    if view == "manifests":
        return history.manifests.graph(group or None, around or None, most)
    return history.groups.graph(around or None, most)
