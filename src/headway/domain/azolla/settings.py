"""The settings of the federation; :class:`headway.config.Settings` has them among its own."""

from datetime import timedelta
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from headway.domain.setting_values import (
    Count,
    File,
    Period,
    Rule,
    parse_duration,
)

Claim = Annotated[
    timedelta,
    Field(ge=timedelta(seconds=1), le=timedelta(hours=1)),
    BeforeValidator(parse_duration),
    Rule("must be a duration from 1 second to 1 hour", timedelta(seconds=30)),
]


def _default(value: Any, description: str) -> Any:
    return Field(default=value, description=description)


class AzollaSettings(BaseModel):
    """How a deployment takes part in a federation."""

    azolla_registry: File = _default(
        None, "File of the blueprint registry; none = this deployment knows no other."
    )
    azolla_claim_lease: Claim = _default(
        timedelta(seconds=30),
        "Time after which a request whose worker has died is taken over, a duration.",
    )
    azolla_max_attempts: Count = _default(
        5, "Attempts at a request before it is parked for a person, a number."
    )
    azolla_query_timeout: Period = _default(
        timedelta(seconds=5), "Time another deployment has to answer a query, a duration."
    )
    azolla_query_budget: Period = _default(
        timedelta(seconds=20), "Time all peers together have to answer, a duration."
    )
    azolla_manifest_budget: Period = _default(
        timedelta(seconds=60), "Time a builder has to make the page, a duration."
    )
