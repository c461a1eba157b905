"""What an application may ask to be run: a manifest, a group, a workflow once or many times."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from headway.definition.registry import Reference
from headway.definition.runtime import NOT_GIVEN, Runtime


class Queueing(ABC):
    """The verbs that queue something; each joins the caller's transaction if it is given one.

    >>> hw.enqueue_many("extract", ["users", "orders"])  # doctest: +SKIP
    2
    """

    @property
    @abstractmethod
    def runtime(self) -> Runtime:
        """What they are carried out by."""

    def trigger(
        self,
        external_id: str,
        input: Any = NOT_GIVEN,
        *,
        delay: timedelta | None = None,
        max_attempts: int = 1,
        connection: Any = None,
    ) -> int:
        """Queue a run of a manifest now or after *delay*, with its own input or another one;
        returns the entry's id.

        If it fails, it is tried again after the manifest's backoff, *max_attempts* times in all.
        With *connection*, a SQLAlchemy connection or session, it joins the caller's transaction.

        >>> hw.trigger("extract-users", delay=timedelta(minutes=30))  # doctest: +SKIP
        7
        """
        return self.runtime.trigger(
            external_id, input, delay=delay, max_attempts=max_attempts, connection=connection
        )

    def trigger_group(self, group: str, *, connection: Any = None) -> int:
        """Queue a run of every enabled manifest of a group, dependents aside.

        >>> hw.trigger_group("nightly")  # doctest: +SKIP
        12
        """
        return self.runtime.trigger_group(group, connection=connection)

    def enqueue(
        self,
        workflow: Reference,
        input: Any = None,
        *,
        priority: int = 0,
        max_attempts: int = 1,
        connection: Any = None,
    ) -> int:
        """Queue a single run of a workflow without any manifest; returns the entry's id.

        >>> hw.enqueue("extract", "users")  # doctest: +SKIP
        7
        """
        return self.runtime.enqueue(
            workflow, input, priority=priority, max_attempts=max_attempts, connection=connection
        )

    def enqueue_many(
        self,
        workflow: Reference,
        inputs: Iterable[Any],
        *,
        priority: int = 0,
        max_attempts: int = 1,
        connection: Any = None,
    ) -> int:
        """Queue a run of a workflow for each of *inputs*, all or none; returns how many.

        Any iterable will do, a generator too: they are written in portions of one transaction.

        >>> hw.enqueue_many("extract", (f"table-{n}" for n in range(100_000)))  # doctest: +SKIP
        100000
        """
        return self.runtime.enqueue_many(
            workflow, inputs, priority=priority, max_attempts=max_attempts, connection=connection
        )
