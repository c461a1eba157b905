"""Answers to requests with a key, written in the transaction that does what was asked for.

Whoever sends the same request meanwhile waits at the unique key: if the first commits, its answer
is found; if it rolls back, there is nothing, and the second does it.
"""

import json
from datetime import timedelta

from sqlalchemy import ColumnElement, and_, delete, select, update

from headway.domain.idempotency import Answer
from headway.errors import KeyReused
from headway.store.tables import idempotency
from headway.store.transaction import Transaction, insert_or_ignore

KEPT = timedelta(hours=24)


def begin(tx: Transaction, actor: str, key: str, digest: str) -> Answer | None:
    """The answer this request was given before, or None if it is to be done now.

    >>> idempotency.begin(tx, "alice", "key-1", digest)  # doctest: +SKIP
    """
    one = _one(actor, key)
    tx.connection.execute(delete(idempotency).where(one, idempotency.c.created_at < tx.now - KEPT))
    row = {"actor": actor, "key": key, "digest": digest, "created_at": tx.now}
    statement = insert_or_ignore(tx, idempotency).values(row).returning(idempotency.c.key)
    found = None
    while found is None:  # retention may take it away between the two statements
        if tx.connection.execute(statement).first() is not None:
            return None
        found = tx.connection.execute(select(idempotency).where(one)).one_or_none()
    if found.digest != digest:
        raise KeyReused(key)
    return Answer(found.status, found.body, json.loads(found.headers))


def finish(tx: Transaction, actor: str, key: str, answer: Answer) -> None:
    """Keep what is answered, in the transaction of :func:`begin`."""
    values = {
        "status": answer.status,
        "body": answer.body,
        "headers": json.dumps(dict(answer.headers)),
    }
    tx.connection.execute(update(idempotency).where(_one(actor, key)).values(values))


def forget(tx: Transaction, actor: str, key: str) -> None:
    """Nothing was done: the next request with this key begins anew."""
    tx.connection.execute(delete(idempotency).where(_one(actor, key)))


def _one(actor: str, key: str) -> ColumnElement[bool]:
    return and_(idempotency.c.actor == actor, idempotency.c.key == key)
