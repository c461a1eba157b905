"""The processes of a deployment: roles, leases, slots, and what each runs."""

from collections import defaultdict

from fastapi import Request, Response

from headway.domain.execution import ExecutionState
from headway.history import ExecutionFilter, ExecutionOverview
from headway.web.context import surface
from headway.web.rendering import page
from headway.web.routing import Scope, ScopedRouter

router = ScopedRouter(prefix="/servers")

SHOWN_RUNS = 200


@router.get("", scope=Scope.READ, include_in_schema=False)
def servers(request: Request) -> Response:
    """Every process that has a lease, those that are late or dead first."""
    history = surface(request).history
    running = ExecutionFilter(states=[ExecutionState.IN_PROGRESS])
    runs: dict[str, list[ExecutionOverview]] = defaultdict(list)
    for run in history.executions.page(running, limit=SHOWN_RUNS).items:
        runs[run.owner or ""].append(run)
    found = sorted(history.servers.all(), key=lambda one: (one.alive and not one.late, one.id))
    known = {one.id for one in found}
    lost = [run for owner, own in runs.items() if owner not in known for run in own]
    return page(request, "servers.html", servers=found, runs=runs, lost=lost)
