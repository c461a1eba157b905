"""What went wrong, as ``application/problem+json`` (RFC 9457)."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field

from headway.definition.problems import Problem as Finding
from headway.domain.masking import MASK
from headway.web.api.encoding import AsciiJson
from headway.web.failures import Failure

MEDIA_TYPE = "application/problem+json"
MOST_TOLD = 20

_PLACES = ("body", "query", "path", "header", "cookie")


class FieldProblem(BaseModel):
    """One thing that is wrong with a request."""

    model_config = ConfigDict(extra="forbid")

    field: str = Field(examples=["limit"])
    detail: str = Field(
        examples=["field 'limit' = '-1': Input should be greater than or equal to 1"]
    )


class Problem(BaseModel):
    """What went wrong; *detail* says it in one sentence, with what would be right."""

    model_config = ConfigDict(extra="forbid")

    type: str = Field(examples=["urn:headway:problem:not-found"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["no manifest has the external id 'load-users'"])
    errors: list[FieldProblem] = []


def problem(request: Request, failure: Failure) -> Response:
    """The answer of the API to whoever asked for what failed.

    >>> problem(request, failure_of(error)).status_code  # doctest: +SKIP
    404
    """
    status = HTTPStatus(failure.status)
    told = Problem(
        type=f"urn:headway:problem:{_slug(failure.title)}",
        title=failure.title,
        status=status.value,
        detail=failure.detail,
        errors=[FieldProblem(field=name, detail=said) for name, said in failure.fields[:MOST_TOLD]],
    )
    headers = {"cache-control": "no-store", **failure.headers}
    if status is HTTPStatus.UNAUTHORIZED:
        headers.setdefault("www-authenticate", 'Bearer realm="headway"')
    answer = AsciiJson(told.model_dump(exclude_defaults=True), status.value, headers)
    answer.headers["content-type"] = MEDIA_TYPE
    return answer


def invalid(error: RequestValidationError, schemas: Mapping[str, Mapping[str, Any]]) -> Failure:
    """What is wrong with a request, field by field; *schemas* describe query and body.

    >>> wrong = {"loc": ("query", "limit"), "input": "-1", "msg": "must be 1 or more", "type": "x"}
    >>> schema = {"properties": {"limit": {"type": "integer", "examples": [50]}}}
    >>> invalid(RequestValidationError([wrong]), {"query": schema}).detail
    "field 'limit' = '-1': must be 1 or more; for example 50"
    """
    fields = tuple(_told(found, schemas) for found in error.errors()[:MOST_TOLD])
    detail = "; ".join(said for _, said in fields[:3])
    return Failure(HTTPStatus.UNPROCESSABLE_ENTITY, detail or "not understood", fields=fields)


def _told(found: Mapping[str, Any], schemas: Mapping[str, Mapping[str, Any]]) -> tuple[str, str]:
    place, *path = found["loc"] if found["loc"] else ("body",)
    if place not in _PLACES:
        place, path = "body", [place, *path]
    name = _dotted(path) or str(place)
    if not path and found["type"] == "missing":
        return name, "the body is missing; for example {}"
    # Fields that no body has may hold an input in the wrong place, and with it secrets.
    misplaced = place == "body" and (not path or found["type"] == "extra_forbidden")
    value = MASK if misplaced else found.get("input")
    finding = Finding(tuple(path), value, str(found["msg"]), str(found["type"]))
    return name, finding.sentence(schemas.get(str(place), {}))


def _dotted(path: Sequence[str | int]) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def _slug(title: str) -> str:
    return title.lower().replace(" ", "-").replace("'", "")
