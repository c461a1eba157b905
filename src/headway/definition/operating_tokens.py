"""Giving and taking tokens in somebody's name: ``hw.operator("alice").tokens``."""

from datetime import timedelta

from headway.definition.acting import Acting
from headway.definition.tokens import NewToken
from headway.domain.access import Scope, Token
from headway.domain.actions import Action


class OperatedTokens:
    """The writing verbs of ``hw.tokens``, each with its row in the audit."""

    def __init__(self, acting: Acting) -> None:
        self._act = acting.act
        self._name = acting.name

    def create(
        self, name: str, scope: str = Scope.READ, *, expires_in: timedelta | None = None
    ) -> NewToken:
        """Make a token; its text is in the answer and nowhere else.

        >>> hw.operator("alice").tokens.create("ci", "operate").text  # doctest: +SKIP
        'hw_0a1b2c3d_…'
        """
        return self._act(
            Action.CREATE_TOKEN,
            name,
            lambda on: on.tokens.create(name, scope, expires_in=expires_in, created_by=self._name),
            lambda made: {
                "token": made.token.prefix,
                "scope": made.token.scope,
                "expires_at": made.token.expires_at,
            },
        )

    def revoke(self, name: str) -> Token:
        """End a token, at once and for good.

        >>> hw.operator("alice").tokens.revoke("ci").prefix  # doctest: +SKIP
        '0a1b2c3d'
        """
        return self._act(
            Action.REVOKE_TOKEN,
            name,
            lambda on: on.tokens.revoke(name),
            lambda ended: {"token": ended.prefix},
        )
