"""Manifests: the list, and everything about one."""

from collections.abc import Iterable, Sequence

from fastapi import Request, Response
from markupsafe import Markup

from headway.definition.masking import shown_input
from headway.domain.views import ExecutionOverview, ManifestFilter, Strip
from headway.web.context import surface
from headway.web.drawing.strip import Ran, history_strip
from headway.web.pages.asked import switched
from headway.web.rendering import page, url
from headway.web.routing import Scope, ScopedRouter

router = ScopedRouter()

PER_PAGE = 50
KINDS = {
    "interval": "Interval",
    "cron": "Cron",
    "once": "Once",
    "none": "On request",
    "dependent": "Dependent",
    "dormant_dependent": "Dormant dependent",
}


@router.get("/manifests", scope=Scope.READ, include_in_schema=False)
def manifests(
    request: Request,
    search: str = "",
    group: str = "",
    kind: str = "",
    state: str = "",
    cursor: str = "",
) -> Response:
    """Every manifest, with its schedule in words and how its last runs ended."""
    wanted = ManifestFilter(
        search=search.strip(),
        anywhere=True,
        group=group.strip() or None,
        kind=kind if kind in KINDS else None,
        enabled=switched(state),
        dead_lettered=state == "dead",
    )
    history = surface(request).history
    found = history.manifests.page(wanted, cursor or None, PER_PAGE)
    strips = history.manifests.strips([one.id for one in found.items]) if found.items else {}
    return page(
        request,
        "manifests.html",
        found=found,
        strips={key: drawn(request, runs) for key, runs in strips.items()},
        no_runs=history_strip([]),
        kinds=KINDS,
        asked={"search": search, "group": group, "kind": kind, "state": state},
        filtered=any((search, group, kind, state)),
    )


@router.get("/manifests/{external_id:name}", scope=Scope.READ, include_in_schema=False)
def manifest(request: Request, external_id: str) -> Response:
    """One manifest: why it does not run, what was declared, what comes and what was."""
    asked = surface(request)
    found = asked.history.manifests.detail(external_id)
    workflow = found.overview.workflow
    return page(
        request,
        "manifest.html",
        detail=found,
        manifest=found.overview,
        why=asked.explaining.why(external_id),
        input=shown_input(asked.app.registry, workflow, found.definition.input),
        strip=_of_executions(request, found.executions),
        settings=asked.app.settings,
        known=workflow in asked.app.registry.names(),
    )


def drawn(request: Request, runs: Iterable[Strip]) -> Markup:
    """The strip of a manifest's last runs, each a link to its execution.

    >>> drawn(request, ())  # doctest: +SKIP
    """
    return history_strip(
        [
            Ran(run.state, run.seconds, href=url(request, "/executions", run.execution_id))
            for run in runs
        ]
    )


def _of_executions(request: Request, runs: Sequence[ExecutionOverview]) -> Markup:
    finished = [run for run in runs if run.finished_at is not None]
    in_order = sorted(finished, key=lambda run: run.id)
    return history_strip(
        [Ran(run.state, run.seconds, href=url(request, "/executions", run.id)) for run in in_order]
    )
