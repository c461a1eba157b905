"""Tokens: made, listed and revoked by an administrator."""

from datetime import datetime, timedelta
from typing import Literal, Self

from fastapi import Request
from pydantic import Field

from headway.domain.access import Scope as TokenScope
from headway.domain.setting_values import LONGEST
from headway.web.api.fields import Answer, Body, Name, NameInPath
from headway.web.api.route import ApiRouter
from headway.web.context import operator, surface
from headway.web.routing import Scope

router = ApiRouter(tags=["tokens"])


class TokenItem(Answer):
    """A token without its text, which nobody can read any more."""

    name: str = Field(examples=["ci"])
    prefix: str = Field(examples=["0a1b2c3d"])
    scope: TokenScope
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


class TokenList(Answer):
    """The newest tokens, revoked and expired ones too."""

    items: list[TokenItem]


class NewTokenAnswer(TokenItem):
    """A token just made; its text is shown this once."""

    text: str | None = Field(
        description="Send it as `Authorization: Bearer …`; none if this answer was given before",
        examples=["hw_0a1b2c3d_…"],
    )

    def kept(self) -> Self:
        """Everything but the text: no token is kept anywhere."""
        return self.model_copy(update={"text": None})


class TokenRequest(Body):
    """A token to make: whose it is, what it may do, and for how long."""

    name: Name = Field(examples=["ci"])
    scope: Literal["read", "operate", "admin"] = Field(default="read", examples=["operate"])
    expires_in_seconds: float | None = Field(
        default=None, ge=1, le=LONGEST.total_seconds(), examples=[7_776_000]
    )


@router.get("/tokens", scope=Scope.ADMIN)
def list_tokens(request: Request) -> TokenList:
    """The newest tokens, without their texts."""
    found = surface(request).runtime.tokens.all()
    return TokenList(items=[TokenItem.model_validate(token) for token in found])


@router.post("/tokens", scope=Scope.ADMIN, status_code=201)
def create_token(request: Request, wanted: TokenRequest) -> NewTokenAnswer:
    """Make a token; its text is shown once."""
    seconds = wanted.expires_in_seconds
    made = operator(request).tokens.create(
        wanted.name,
        wanted.scope,
        expires_in=None if seconds is None else timedelta(seconds=seconds),
    )
    item = TokenItem.model_validate(made.token)
    return NewTokenAnswer(**item.model_dump(), text=made.text)


@router.delete("/tokens/{name:name}", scope=Scope.ADMIN)
def revoke_token(request: Request, name: NameInPath) -> TokenItem:
    """End a token, at once and for good."""
    return TokenItem.model_validate(operator(request).tokens.revoke(name))
