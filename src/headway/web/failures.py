"""What went wrong, as a status and a sentence: the same for pages and for the API."""

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from headway.errors import (
    ChangedMeanwhile,
    CreatedMeanwhile,
    DatabaseLost,
    DatabaseUnavailable,
    DefinitionError,
    DependentBusyError,
    EntryNotFound,
    ExecutionNotFound,
    GroupNotFound,
    HeadwayError,
    IllegalTransition,
    KeyReused,
    ManifestNotFound,
    OwnedByAnother,
    QueueFull,
    SchemaError,
    SettingsError,
    TokenNotFound,
    TooLate,
    UnknownWorkflow,
)
from headway.health import FILE_LOST
from headway.history import DeadLetterNotFound
from headway.store.engine import TRANSIENT


class Unauthenticated(HeadwayError):
    """Nobody knows who asks."""

    def __init__(self) -> None:
        super().__init__("log in, or send a token")


class Forbidden(HeadwayError):
    """Whoever asks may not do this."""


class TooMany(HeadwayError):
    """Whoever asks has to wait so many *seconds* before they ask again."""

    def __init__(self, told: str, seconds: int) -> None:
        super().__init__(told)
        self.seconds = seconds


QUEUE_SECONDS = 60

STATUSES: dict[type[BaseException], HTTPStatus] = {
    Unauthenticated: HTTPStatus.UNAUTHORIZED,
    Forbidden: HTTPStatus.FORBIDDEN,
    TooMany: HTTPStatus.TOO_MANY_REQUESTS,
    QueueFull: HTTPStatus.TOO_MANY_REQUESTS,
    ManifestNotFound: HTTPStatus.NOT_FOUND,
    GroupNotFound: HTTPStatus.NOT_FOUND,
    ExecutionNotFound: HTTPStatus.NOT_FOUND,
    EntryNotFound: HTTPStatus.NOT_FOUND,
    DeadLetterNotFound: HTTPStatus.NOT_FOUND,
    TokenNotFound: HTTPStatus.NOT_FOUND,
    ChangedMeanwhile: HTTPStatus.PRECONDITION_FAILED,
    UnknownWorkflow: HTTPStatus.UNPROCESSABLE_ENTITY,
    KeyReused: HTTPStatus.CONFLICT,
    OwnedByAnother: HTTPStatus.CONFLICT,
    CreatedMeanwhile: HTTPStatus.CONFLICT,
    IllegalTransition: HTTPStatus.CONFLICT,
    TooLate: HTTPStatus.CONFLICT,
    DependentBusyError: HTTPStatus.CONFLICT,
    DefinitionError: HTTPStatus.UNPROCESSABLE_ENTITY,
    SettingsError: HTTPStatus.UNPROCESSABLE_ENTITY,
    DatabaseUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    SchemaError: HTTPStatus.SERVICE_UNAVAILABLE,
} | dict.fromkeys(TRANSIENT, HTTPStatus.SERVICE_UNAVAILABLE)

HEADINGS = {
    HTTPStatus.FORBIDDEN: "You may not do this",
    HTTPStatus.NOT_FOUND: "There is nothing here",
    HTTPStatus.CONFLICT: "Too late",
    HTTPStatus.PRECONDITION_FAILED: "It has changed meanwhile",
    HTTPStatus.UNPROCESSABLE_ENTITY: "That cannot be",
    HTTPStatus.TOO_MANY_REQUESTS: "Too many tries",
    HTTPStatus.INTERNAL_SERVER_ERROR: "Something went wrong",
    HTTPStatus.SERVICE_UNAVAILABLE: "Not now",
}

TOLD_FOR = {
    HTTPStatus.SERVICE_UNAVAILABLE: "the database does not answer; try again in a moment",
    HTTPStatus.INTERNAL_SERVER_ERROR: "something went wrong here; the server's log says what",
    HTTPStatus.NOT_FOUND: "this address leads nowhere, or what it led to has gone",
    HTTPStatus.METHOD_NOT_ALLOWED: "this cannot be asked in this way",
}
LOST = f"{FILE_LOST}; nothing works here until this server is started again"


@dataclass(frozen=True)
class Failure:
    """A status, one sentence for whoever asked, and for fields what is wrong with each.

    >>> failure_of(ManifestNotFound("load-users")).status
    <HTTPStatus.NOT_FOUND: 404>
    """

    status: HTTPStatus
    detail: str
    headers: dict[str, str] = field(default_factory=dict)
    fields: tuple[tuple[str, str], ...] = ()

    @property
    def title(self) -> str:
        """The status in words."""
        return self.status.phrase

    @property
    def heading(self) -> str:
        """The status as a page says it to a person."""
        return HEADINGS.get(self.status, self.title)


def failure_of(error: BaseException) -> Failure:
    """What *error* means to whoever asked; nothing of the inside is told.

    >>> failure_of(ValueError("secret")).detail
    "something went wrong here; the server's log says what"
    """
    if isinstance(error, HTTPException):
        return _http_failure(error)
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    status = next(
        (STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES),
        HTTPStatus.INTERNAL_SERVER_ERROR,
    )
    told = TOLD_FOR.get(status) if status >= 500 else None
    if isinstance(error, DatabaseLost):
        told = LOST
    return Failure(status, told or str(error), _waiting(error))


def _waiting(error: BaseException) -> dict[str, str]:
    """When whoever asked may come back."""
    if isinstance(error, TooMany):
        return {"retry-after": str(error.seconds)}
    return {"retry-after": str(QUEUE_SECONDS)} if isinstance(error, QueueFull) else {}


def _http_failure(error: HTTPException) -> Failure:
    status = HTTPStatus(error.status_code)
    told = error.detail if error.detail != status.phrase else TOLD_FOR.get(status, status.phrase)
    return Failure(status, told, dict(error.headers or {}))


def _invalid(error: RequestValidationError) -> Failure:
    fields = tuple((_place(found["loc"]), str(found["msg"])) for found in error.errors())
    told = "; ".join(f"{name}: {message}" for name, message in fields[:5])
    return Failure(HTTPStatus.UNPROCESSABLE_ENTITY, told or "not understood", fields=fields)


def _place(location: Any) -> str:
    named = [str(part) for part in location if part not in ("body", "query", "path", "header")]
    return ".".join(named) or "body"
