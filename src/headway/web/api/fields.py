"""The kinds of values that requests are made of."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Self

from fastapi import Path
from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from headway.domain.names import NAME_LIMIT, checked_name
from headway.domain.paging import DEFAULT_LIMIT, LONGEST_CURSOR, MOST_PER_PAGE

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)
LARGEST_ID = 2**63 - 1


def _within_reason(moment: datetime) -> datetime:
    if not EARLIEST <= moment <= LATEST:
        raise ValueError("must lie between 1970 and 2200")
    return moment


def _name(value: str) -> str:
    return checked_name("name", value)


def _searchable(value: str) -> str:
    return checked_name("search", value) if value else value


Name = Annotated[
    str, Field(min_length=1, max_length=NAME_LIMIT, examples=["nightly"]), AfterValidator(_name)
]
Search = Annotated[
    str, Field(max_length=NAME_LIMIT, examples=["load-"]), AfterValidator(_searchable)
]
Moment = Annotated[
    AwareDatetime, Field(examples=["2030-01-31T12:00:00Z"]), AfterValidator(_within_reason)
]
Text = Annotated[str, Field(max_length=2000)]
Json = Annotated[Any, Field(description="Any JSON value")]

NameInPath = Annotated[
    str, Path(min_length=1, max_length=NAME_LIMIT, examples=["nightly"]), AfterValidator(_name)
]
IdInPath = Annotated[int, Path(ge=1, le=LARGEST_ID, examples=[17])]


class Query(BaseModel):
    """Parameters of a request; those not named here are refused."""

    model_config = ConfigDict(extra="forbid")


class Paging(Query):
    """Where a page of a list begins and how long it is."""

    limit: int = Field(default=DEFAULT_LIMIT, ge=1, le=MOST_PER_PAGE, examples=[DEFAULT_LIMIT])
    cursor: str | None = Field(
        default=None,
        max_length=LONGEST_CURSOR,
        description="The `next` of the page before; none for the first page",
    )


class Body(BaseModel):
    """What a request asks for; fields not named here are refused, and so are other types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Answer(BaseModel):
    """What is answered, made of the read side's values."""

    model_config = ConfigDict(from_attributes=True)

    def kept(self) -> Self:
        """What may be kept of it, to be answered again."""
        return self


def _seconds(value: object) -> object:
    return value.total_seconds() if isinstance(value, timedelta) else value


Seconds = Annotated[float, BeforeValidator(_seconds)]
