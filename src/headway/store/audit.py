"""Who did or asked for what: rows that are written once and go only when they are old.

What people do is noted in the transaction that does it. What others can cause at will, questions
of peers and refusals, is bounded in number, so that nobody can fill the disk.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import delete, insert

from headway.domain.actions import TEXT_LIMIT, Action, detail_of
from headway.domain.text import printable
from headway.store.tables import audit
from headway.store.transaction import Transaction, word

QUERIES_KEPT = 10_000
FORGOTTEN_AT_ONCE = 100
QUERY = "membrane.query"


def note(
    tx: Transaction,
    actor: str,
    action: Action,
    subject: object,
    facts: Mapping[str, object] | None = None,
) -> None:
    """*actor* does *action* to *subject*, in this very transaction.

    >>> audit.note(tx, "alice", Action.TRIGGER, "load", {"entry": 7})  # doctest: +SKIP
    """
    _insert(tx, actor, action, _shortened(subject), detail_of(facts or {}))


def denied(
    tx: Transaction,
    actor: str,
    subject: object,
    facts: Mapping[str, object] | None = None,
) -> None:
    """*actor* was refused *subject*, for want of a scope or of any identity.

    >>> audit.denied(tx, "alice", "POST /groups/nightly", {"needed": "operate"})  # doctest: +SKIP
    """
    noted = _insert(tx, actor, Action.DENIED, _shortened(subject), detail_of(facts or {}))
    _forget_oldest(tx, noted)


def note_query(tx: Transaction, source: str, subject: str, detail: str) -> None:
    """A peer has asked about *subject*, and was answered with *detail*."""
    _forget_oldest(tx, _insert(tx, source, QUERY, subject, detail))


def _insert(tx: Transaction, actor: str, action: str, subject: str, detail: str | None) -> int:
    row: dict[str, Any] = {
        "at": tx.now,
        "actor": actor,
        "action": str(action),
        "subject": subject,
        "detail": detail,
    }
    noted: int = tx.connection.execute(insert(audit).values(row).returning(audit.c.id)).scalar_one()
    return noted


def _shortened(subject: object) -> str:
    return printable(str(subject), TEXT_LIMIT)


def _forget_oldest(tx: Transaction, noted: int) -> None:
    """Of what others can cause at will, what is ten thousand rows older than the one just noted."""
    oldest = noted - QUERIES_KEPT
    tx.connection.execute(
        delete(audit).where(
            audit.c.id.between(oldest - FORGOTTEN_AT_ONCE, oldest),
            audit.c.action.in_([word(QUERY), word(Action.DENIED)]),
        )
    )
