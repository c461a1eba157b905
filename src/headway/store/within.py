"""Verbs that open a transaction of their own, as parts of one that is open already."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from headway.store.engine import Store
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


class Redirectable:
    """Hands out transactions on a store that can be replaced by another for a while.

    >>> Redirectable(store).store  # doctest: +SKIP
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    def reading(self) -> AbstractContextManager[Transaction]:
        """A transaction of the present store that only reads."""
        return self.store.reading()

    def writing(self, hint: str | None = None) -> AbstractContextManager[Transaction]:
        """A transaction of the present store."""
        return self.store.writing(hint)

    def queueing(self, hint: str) -> AbstractContextManager[Transaction]:
        """A transaction of the present store, for one statement that queues something."""
        return self.store.queueing(hint)

    @contextmanager
    def redirected(self, store: Store) -> Iterator[None]:
        """Hand out transactions on *store* while the block lasts."""
        own, self.store = self.store, store
        try:
            yield
        finally:
            self.store = own


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
