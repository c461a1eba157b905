"""What an error is answered with: a status, a sentence, and when to come back."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import InterfaceError, OperationalError
from starlette.exceptions import HTTPException

from headway.errors import (
    ChangedMeanwhile,
    CreatedMeanwhile,
    DatabaseLost,
    DatabaseOutage,
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
    ScheduleError,
    SchemaMissing,
    SettingsError,
    TokenNotFound,
    TooLate,
    UnknownWorkflow,
)
from headway.history import DeadLetterNotFound
from headway.web.failures import Failure, Forbidden, TooMany, Unauthenticated, failure_of

AWAY = "the database does not answer; try again in a moment"
UNEXPECTED = "something went wrong here; the server's log says what"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Unauthenticated(), 401),
        (Forbidden("no"), 403),
        (ManifestNotFound("load"), 404),
        (GroupNotFound("etl"), 404),
        (ExecutionNotFound(7), 404),
        (EntryNotFound(7), 404),
        (DeadLetterNotFound(7), 404),
        (TokenNotFound("ci"), 404),
        (ChangedMeanwhile("group 'etl'", "1"), 412),
        (KeyReused("k"), 409),
        (OwnedByAnother("load", "shop"), 409),
        (CreatedMeanwhile(), 409),
        (IllegalTransition("completed", "pending"), 409),
        (TooLate("manager", 1, 2), 409),
        (DependentBusyError("load"), 409),
        (UnknownWorkflow("load"), 422),
        (DefinitionError("cap = -1: must be at least 1"), 422),
        (ScheduleError("cron = 'x': is none"), 422),
        (SettingsError("port = -1: is none"), 422),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_what_is_refused_says_why(error: Exception, status: int) -> None:
    assert failure_of(error) == Failure(HTTPStatus(status), str(error))


@pytest.mark.parametrize(
    ("error", "seconds"), [(TooMany("wait", 7), "7"), (QueueFull(3, "in group 'etl'"), "60")]
)
def test_what_is_too_much_now_says_when_to_come_back(error: Exception, seconds: str) -> None:
    expected = Failure(HTTPStatus.TOO_MANY_REQUESTS, str(error), {"retry-after": seconds})
    assert failure_of(error) == expected


@pytest.mark.parametrize(
    "error",
    [
        OperationalError("SELECT canary", {}, Exception("canary")),
        InterfaceError("SELECT canary", {}, Exception("canary")),
        DatabaseOutage("canary"),
        DatabaseUnavailable("canary"),
        SchemaMissing(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_database_that_is_away_is_told_without_its_error(error: Exception) -> None:
    assert failure_of(error) == Failure(HTTPStatus.SERVICE_UNAVAILABLE, AWAY)


def test_a_lost_file_needs_a_restart() -> None:
    assert failure_of(DatabaseLost("/x", "SQLite", "was deleted")) == Failure(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "the database file was deleted or replaced; nothing works here until this server is "
        "started again",
    )


@pytest.mark.parametrize("error", [ValueError("canary"), HeadwayError("canary")])
def test_what_is_not_expected_is_told_to_the_log_alone(error: Exception) -> None:
    assert failure_of(error) == Failure(HTTPStatus.INTERNAL_SERVER_ERROR, UNEXPECTED)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (HTTPException(404), "this address leads nowhere, or what it led to has gone"),
        (HTTPException(404, "none of this id waits"), "none of this id waits"),
        (HTTPException(405), "this cannot be asked in this way"),
        (HTTPException(409), "Conflict"),
    ],
)
def test_an_error_of_http_says_what_it_was_given(error: HTTPException, told: str) -> None:
    assert failure_of(error) == Failure(HTTPStatus(error.status_code), told)


def test_an_error_of_http_keeps_its_headers() -> None:
    error = HTTPException(405, headers={"allow": "GET"})
    assert failure_of(error).headers == {"allow": "GET"}


def test_what_is_wrong_with_fields_is_told_for_each() -> None:
    wrong = [
        {"loc": ("query", "limit"), "msg": "must be 1 or more"},
        {"loc": ("body", "ids", 3), "msg": "must be a number"},
        {"loc": ("body",), "msg": "is missing"},
        *({"loc": ("path", f"name{n}"), "msg": "is too long"} for n in range(3)),
    ]
    failure = failure_of(RequestValidationError(wrong))
    assert failure.status == 422
    assert failure.fields == (
        ("limit", "must be 1 or more"),
        ("ids.3", "must be a number"),
        ("body", "is missing"),
        *((f"name{n}", "is too long") for n in range(3)),
    )
    assert failure.detail == (
        "limit: must be 1 or more; ids.3: must be a number; body: is missing; "
        "name0: is too long; name1: is too long"
    )
    assert failure_of(RequestValidationError([])).detail == "not understood"


@pytest.mark.parametrize(
    ("status", "title", "heading"),
    [
        (403, "Forbidden", "You may not do this"),
        (404, "Not Found", "There is nothing here"),
        (405, "Method Not Allowed", "Method Not Allowed"),
        (409, "Conflict", "Too late"),
        (412, "Precondition Failed", "It has changed meanwhile"),
        (429, "Too Many Requests", "Too many tries"),
        (500, "Internal Server Error", "Something went wrong"),
        (503, "Service Unavailable", "Not now"),
    ],
)
def test_a_status_has_a_title_for_programs_and_a_heading_for_people(
    status: int, title: str, heading: str
) -> None:
    failure = Failure(HTTPStatus(status), "x")
    assert (failure.title, failure.heading) == (title, heading)
