"""Groups: the list with the graph of all, and everything about one."""

from fastapi import Request, Response

from headway.domain.versions import version_of
from headway.domain.views import GroupFilter, ManifestFilter, QueueFilter
from headway.web.context import surface
from headway.web.drawing.occupancy import occupancy, slots_text
from headway.web.drawing.strip import Ran, history_strip
from headway.web.pages.graph_nodes import MOST_AROUND, MOST_BESIDE, Drawing
from headway.web.pages.group_form import GroupForm
from headway.web.rendering import page, url
from headway.web.routing import Scope, ScopedRouter

router = ScopedRouter()

PER_PAGE = 50
FIRST_MANIFESTS = 25
FIRST_ENTRIES = 10
SWITCHED = {"on": True, "off": False}


@router.get("/groups", scope=Scope.READ, include_in_schema=False)
def groups(request: Request, search: str = "", switched: str = "", cursor: str = "") -> Response:
    """Every group with its slots, and how they depend on one another."""
    history = surface(request).history
    wanted = GroupFilter(search.strip(), anywhere=True, enabled=SWITCHED.get(switched))
    graph = history.groups.graph(limit=MOST_BESIDE)
    return page(
        request,
        "groups.html",
        groups=history.groups.page(wanted, cursor or None, PER_PAGE),
        search=search,
        switched=switched,
        graph=graph,
        drawing=Drawing(request, graph),
        most=MOST_BESIDE,
        occupancy=occupancy,
        slots_text=slots_text,
    )


@router.get("/groups/{name:name}", scope=Scope.READ, include_in_schema=False)
def group(request: Request, name: str) -> Response:
    """One group: its settings, its place in the graph, who holds its slots, and what waits."""
    return group_page(request, name)


def group_page(
    request: Request, name: str, form: GroupForm | None = None, status: int = 200
) -> Response:
    """The page of a group, with the form as it was sent if something was wrong with it.

    >>> group_page(request, "users")  # doctest: +SKIP
    """
    history = surface(request).history
    found = history.groups.detail(name)
    graph = history.groups.graph(name, MOST_AROUND)
    manifests = history.manifests.page(ManifestFilter(group=name), limit=FIRST_MANIFESTS)
    strips = (
        history.manifests.strips([one.id for one in manifests.items]) if manifests.items else {}
    )
    return page(
        request,
        "group.html",
        status=status,
        group=found.overview,
        detail=found,
        form=form or GroupForm.of(found.overview, version_of(found.updated_at)),
        graph=graph,
        drawing=Drawing(request, graph, name),
        most=MOST_AROUND,
        manifests=manifests,
        strips={
            one.id: history_strip(
                [
                    Ran(run.state, run.seconds, href=url(request, "/executions", run.execution_id))
                    for run in strips.get(one.id, ())
                ]
            )
            for one in manifests.items
        },
        entries=history.queue.page(QueueFilter(group=name), limit=FIRST_ENTRIES),
        occupancy=occupancy,
    )
