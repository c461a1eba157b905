"""Verbs that open a transaction of their own, as parts of one that is open already."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from headway.store.notifications import notify_at_commit
from headway.store.transaction import Transaction


class Transactions(Protocol):
    """Where transactions come from: a :class:`Store`, or one that is open already."""

    def reading(self) -> AbstractContextManager[Transaction]:
        """A transaction that only reads."""

    def writing(self, hint: str | None = None) -> AbstractContextManager[Transaction]:
        """A transaction that is rolled back on an error; *hint* is told once it has committed."""

    def queueing(self, hint: str) -> AbstractContextManager[Transaction]:
        """The same for one statement that queues something."""


class Within:
    """Hands out one open transaction, so that several verbs commit together or not at all.

    >>> with store.writing() as tx:  # doctest: +SKIP
    ...     Cancelling(Within(tx)).cancel("load", None, None, None, None)
    """

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """The open transaction."""
        yield self._tx

    @contextmanager
    def writing(self, hint: str | None = None) -> Iterator[Transaction]:
        """The open transaction; what fails in it leaves nothing, even if the rest goes on."""
        with self._tx.connection.begin_nested():
            yield self._tx
            if hint is not None:
                notify_at_commit(self._tx, hint)

    def queueing(self, hint: str) -> AbstractContextManager[Transaction]:
        """The same: what is queued is a part of the open transaction."""
        return self.writing(hint)
