"""Processes with their leases, the settings of this one, and who did what."""

from typing import Annotated

from fastapi import Query, Request, Response
from pydantic import Field

from headway.config import PREFIX
from headway.domain.setting_values import as_text
from headway.domain.views import AuditFilter, AuditRecord
from headway.store.urls import shown
from headway.web.api.encoding import stored
from headway.web.api.fields import Moment, Name, Paging
from headway.web.api.models.overview import (
    AuditItem,
    ServerItem,
    Servers,
    SettingItem,
    SettingsAnswer,
)
from headway.web.api.paging import Paged, paged
from headway.web.api.route import ApiRouter
from headway.web.context import surface
from headway.web.routing import Scope

router = ApiRouter(tags=["servers"])


class AuditQuery(Paging):
    """Which records; what is left out does not restrict."""

    actor: Name | None = None
    action: Name | None = Field(default=None, examples=["manifest.trigger"])
    subject: Name | None = None
    since: Moment | None = None


@router.get("/servers", scope=Scope.READ)
def list_servers(request: Request) -> Servers:
    """Every process that has a lease, with what it does."""
    found = surface(request).history.servers.all()
    return Servers(items=[ServerItem.model_validate(one) for one in found])


@router.get("/settings", scope=Scope.READ)
def read_settings(request: Request) -> SettingsAnswer:
    """The settings of the process that answers."""
    asked = surface(request)
    settings = asked.app.settings
    items = [
        SettingItem(
            name=name,
            variable=f"{PREFIX}{name.upper()}",
            value=as_text(getattr(settings, name)),
        )
        for name in type(settings).model_fields
    ]
    return SettingsAnswer(application=asked.app.name, database=shown(asked.store.url), items=items)


@router.get("/audit", scope=Scope.ADMIN)
def list_audit(
    request: Request, response: Response, query: Annotated[AuditQuery, Query()]
) -> Paged[AuditItem]:
    """Who did what, newest first."""
    wanted = AuditFilter(**query.model_dump(exclude={"limit", "cursor"}))
    page = surface(request).history.audit.page(wanted, query.cursor, query.limit)
    return paged(request, response, page, _audited)


def _audited(record: AuditRecord) -> AuditItem:
    values = {name: getattr(record, name) for name in AuditItem.model_fields}
    return AuditItem(**values | {"detail": stored(record.detail)})
