"""What user code sees of the run it is part of, and may say about its failure."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from headway.errors import DefinitionError, HeadwayError, JobCancelled, NoParentRunError

_LONGEST_DELAY = timedelta(days=3653)

MOST_ACTIONS = 3

ActivateMany = Callable[[Iterable[tuple[str, Any]], int], int]


def _ignore(fraction: float, note: str | None) -> None:
    """Nobody watches a run made by hand."""


def _forget(actions: tuple[str, ...]) -> None:
    """Nobody takes over from a run made by hand."""


def _orphan(activations: Iterable[tuple[str, Any]], max_attempts: int) -> int:
    raise NoParentRunError


def _never() -> bool:
    return False


@dataclass(frozen=True)
class Run:
    """The run a step belongs to; a step that wants it asks for a parameter annotated ``Run``.

    >>> def load(table: str, run: Run) -> None:
    ...     run.logger.info("loading %s, attempt %d", table, run.attempt)
    ...     run.progress(0.5, "half of it")
    >>> load("users", Run(execution_id=7, workflow="load"))
    """

    execution_id: int
    workflow: str
    manifest: str | None = None
    attempt: int = 1
    scheduled_for: datetime | None = None
    idempotency_key: str = ""
    logger: logging.Logger = field(default_factory=lambda: logging.getLogger("headway.run"))
    _report: Callable[[float, str | None], None] = field(default=_ignore, repr=False)
    _is_cancelled: Callable[[], bool] = field(default=_never, repr=False)
    _activate_many: ActivateMany = field(default=_orphan, repr=False)
    _hand_over: Callable[[tuple[str, ...]], None] = field(default=_forget, repr=False)

    @property
    def fencing_token(self) -> int:
        """A number that rises over all attempts of a manifest; store it with what you write.

        >>> Run(execution_id=7, workflow="load").fencing_token
        7
        """
        return self.execution_id

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked this run to stop; long steps look at it now and then.

        >>> Run(execution_id=7, workflow="load").cancelled
        False
        """
        return self._is_cancelled()

    def raise_if_cancelled(self) -> None:
        """Raise :class:`JobCancelled` if somebody asked this run to stop.

        >>> Run(execution_id=7, workflow="load").raise_if_cancelled()
        """
        if self.cancelled:
            raise JobCancelled("this run was asked to stop")

    def activate(self, external_id: str, input: Any = None, *, max_attempts: int = 1) -> int:
        """Let a dormant dependent of this manifest run with *input*; see :meth:`activate_many`.

        >>> Run(execution_id=7, workflow="load").activate("bronze-users")
        Traceback (most recent call last):
        headway.errors.NoParentRunError: this run belongs to no manifest, so it has no dormant ...
        """
        return self._activate_many([(external_id, input)], max_attempts)

    def activate_many(
        self, activations: Iterable[tuple[str, Any]], *, max_attempts: int = 1
    ) -> int:
        """Let dormant dependents of this manifest run, each with its own input; all or none.

        Returns how many will run: a dependent that is queued or running already is passed over,
        unless it was declared to keep, replace or reject the activation (``when_busy``). One that
        fails is tried again after its backoff, *max_attempts* times in all.

        >>> def queue_changed(tables: list[str], run: Run) -> None:
        ...     run.activate_many((f"bronze-{table}", table) for table in tables)
        """
        return self._activate_many(activations, max_attempts)

    def progress(self, fraction: float, note: str | None = None) -> None:
        """Say how far this run has come, from 0 to 1, for everyone who watches it.

        >>> Run(execution_id=7, workflow="load").progress(0.25, "first quarter")
        """
        if not 0 <= fraction <= 1:
            raise ValueError(f"progress = {fraction!r}: must be from 0 to 1; for example 0.5")
        self._report(float(fraction), note)

    def hand_over(self, *actions: str) -> None:
        """Say what a person is to do once this run has completed: one to three short sentences,
        the most important first.

        They become a pause state, which the operator's page shows; a run that fails leaves none.
        Said again, the new sentences stand in for the old ones.

        >>> Run(execution_id=7, workflow="load").hand_over("check the figures", "publish them")
        """
        if not 1 <= len(actions) <= MOST_ACTIONS:
            raise DefinitionError(
                f"hand_over: {len(actions)} actions: must be 1 to {MOST_ACTIONS} texts; "
                "for example run.hand_over('check the figures')"
            )
        for action in actions:
            if not isinstance(action, str) or not action.strip():
                raise DefinitionError(
                    f"hand_over action = {repr(action)[:60]}: must be a text that says something; "
                    "for example 'check the figures'"
                )
        self._hand_over(actions)


class DoNotRetry(HeadwayError):
    """Raise it in a step when trying again would not help: the manifest gets a dead letter at once.

    >>> raise DoNotRetry("the table is gone")
    Traceback (most recent call last):
    headway.run.DoNotRetry: the table is gone
    """


class RetryAfter(HeadwayError):
    """Raise it in a step that knows when trying again makes sense; it counts as a failure.

    >>> raise RetryAfter(timedelta(seconds=90), "too many requests")
    Traceback (most recent call last):
    headway.run.RetryAfter: too many requests (to be tried again after 0:01:30)
    """

    def __init__(self, delay: timedelta, message: str = "not now") -> None:
        if not isinstance(delay, timedelta) or not timedelta(0) <= delay <= _LONGEST_DELAY:
            raise DefinitionError(
                f"RetryAfter delay = {delay!r}: must be a timedelta from 0 seconds to 10 years; "
                "for example timedelta(minutes=5)"
            )
        super().__init__(f"{message} (to be tried again after {delay})")
        self.delay = delay
