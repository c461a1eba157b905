"""Handing out operators, as a call of the application."""

from typing import Any

from headway.definition.answering import Answering
from headway.definition.operating import Operator
from headway.definition.runtime import NOT_GIVEN
from headway.definition.tokens import Tokens


class Operators(Answering):
    """The part of an application that acts in somebody's name."""

    @property
    def tokens(self) -> Tokens:
        """Tokens by which programs and people are known to the REST API and the dashboard.

        >>> [one.name for one in hw.tokens.all()]  # doctest: +SKIP
        ['alice']
        """
        return self.runtime.tokens

    def operator(self, name: str) -> Operator:
        """The same verbs in the name of a person: what they do is noted in the audit.

        >>> hw.operator("alice").set_group("nightly", max_active_jobs=2)  # doctest: +SKIP
        """
        return Operator(name, self.runtime)

    def rerun(
        self,
        execution: int,
        input: Any = NOT_GIVEN,
        *,
        max_attempts: int = 1,
        connection: Any = None,
    ) -> int:
        """Queue what an execution ran once more, with its input or another one; returns the
        entry's id.

        >>> hw.rerun(17)  # doctest: +SKIP
        8
        """
        return self.runtime.rerun(
            execution, input, max_attempts=max_attempts, connection=connection
        )
