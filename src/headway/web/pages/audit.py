"""Who did what: the audit trail."""

from fastapi import Request, Response

from headway.domain.actions import Action
from headway.history import AuditFilter
from headway.web.context import surface
from headway.web.rendering import page
from headway.web.routing import Scope, ScopedRouter

router = ScopedRouter(prefix="/audit")


@router.get("", scope=Scope.ADMIN, include_in_schema=False)
def audit(
    request: Request, cursor: str = "", actor: str = "", action: str = "", subject: str = ""
) -> Response:
    """What people did, newest first, of one person, one kind or about one thing."""
    wanted = AuditFilter(actor=actor or None, action=action or None, subject=subject or None)
    found = surface(request).history.audit.page(wanted, cursor)
    return page(
        request,
        "audit.html",
        records=found,
        actor=actor,
        action=action,
        subject=subject,
        actions=sorted({*Action, "membrane.query"}),
    )
