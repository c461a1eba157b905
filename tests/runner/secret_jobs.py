"""Steps that quote the secrets of their input, in every way an exception can."""

from __future__ import annotations

import json
from typing import Annotated, Any
from urllib.parse import quote, quote_plus

from pydantic import BaseModel, Field, PlainSerializer, SecretStr, TypeAdapter

from headway import Run

PASSWORD = 'ge heim/"s3\n-ß'
TOKEN = "tok-0123456789-" + "abcdefghij" * 6

Secret = Annotated[
    SecretStr,
    PlainSerializer(lambda secret: secret.get_secret_value(), when_used="json"),
]
Hidden = Annotated[str, Field(json_schema_extra={"format": "password"})]


class Login(BaseModel):
    """An account somewhere else."""

    user: str
    password: Secret
    token: Hidden = TOKEN
    pin: Hidden = "1"
    way: str = "message"


class Pair(BaseModel):
    """What the token is not."""

    user: int
    token: list[int]


def connect(login: Login, run: Run) -> Any:
    password = login.password.get_secret_value()
    run.logger.warning("connecting with %s and %s", password, login.token)
    run.progress(0.5, f"with {login.token}")
    return fail(login.way, password, login.token)


async def connect_quickly(login: Login) -> None:
    """The only step, async, without context: the short way."""
    fail(login.way, login.password.get_secret_value(), login.token)


def fail(way: str, password: str, token: str) -> Any:
    """Quote both in this way; ``return`` raises nothing."""
    if way == "pydantic":
        TypeAdapter(Pair).validate_python({"user": password, "token": token})
    if way == "return":
        return {"password": password, "url": f"https://{token}@host", "rows": 11}
    if way == "cause":
        raise RuntimeError("could not connect") from ValueError(password, token)
    raise error_of(way, password, token)


def error_of(way: str, password: str, token: str) -> BaseException:
    """An error that quotes both in this way."""
    noted = RuntimeError("could not connect")
    noted.add_note(f"with {password} and {token}")
    address = f"https://ada:{quote(password, safe='')}@host/?t={token}"
    errors: dict[str, BaseException] = {
        "message": RuntimeError(f"refused {password!s} and {token}; attempt 1 of 11"),
        "repr": RuntimeError(f"refused {password!r} and {token!r}"),
        "bytes": RuntimeError(f"refused {password.encode()!r} and {token}"),
        "json": RuntimeError(json.dumps({"password": password, "token": token})),
        "url": RuntimeError(address),
        "form": RuntimeError(f"password={quote_plus(password).lower()}&t={token}"),
        "note": noted,
        "group": ExceptionGroup("all", [ValueError(password), KeyError(token)]),
        "exit": SystemExit(f"refused {password} and {token}"),
    }
    return errors[way]
