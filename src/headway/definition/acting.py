"""Doing something for a person and noting it, in one transaction."""

from collections.abc import Callable
from typing import TypeVar

from headway.definition.runtime import Runtime
from headway.domain.actions import Action
from headway.errors import QueueFull
from headway.store import audit
from headway.store.notifications import EVERYBODY
from headway.store.transaction import Transaction

T = TypeVar("T")
Depth = Callable[[Transaction, int], int]


class Acting:
    """Whoever acts, and on which deployment."""

    def __init__(self, name: str, runtime: Runtime) -> None:
        self.name = name
        self.runtime = runtime

    def act(
        self,
        action: Action,
        subject: object,
        verb: Callable[[Runtime], T],
        facts: Callable[[T], dict[str, object] | None],
    ) -> T:
        """Do what *verb* does and note it with what *facts* tells of its answer; both or neither.

        An answer about which there are no facts (None) has changed nothing: it is not noted.
        """
        # PostgreSQL tells with the transaction what the verb has to tell.
        hint = None if self.runtime.store.on_postgresql else EVERYBODY
        with self.runtime.transactions.writing(hint) as tx:
            answer = verb(self.runtime.within(tx))
            told = facts(answer)
            if told is not None:
                audit.note(tx, self.name, action, subject, told)
        return answer

    def queue(
        self,
        action: Action,
        subject: object,
        verb: Callable[[Runtime], T],
        facts: Callable[[T], dict[str, object] | None],
        where: str,
        depth: Depth,
    ) -> T:
        """The same for a *verb* that queues: not *where* very much waits already, by *depth*.

        One sender must not bury the others, nor the database: who is refused has written nothing,
        and kept nobody from writing.
        """
        most = self.runtime.most_queued
        if most is not None:
            with self.runtime.transactions.reading() as tx:
                if depth(tx, most) >= most:
                    raise QueueFull(most, where)
        return self.act(action, subject, verb, facts)
