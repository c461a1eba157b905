"""Events: each is dealt with once, the oldest first; one that keeps failing is parked."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, false, literal_column, select, update

from headway.domain.azolla.artifacts import Event, EventType, ResourceType, TerminalReason
from headway.domain.text import printable
from headway.store.artifact_rows import from_row, to_row
from headway.store.claims import held
from headway.store.tables import event
from headway.store.transaction import Transaction, insert_or_ignore, word

ERROR_LIMIT = 500
# Who is killed cannot say so: an attempt without an error.
KILLED = "whoever worked on it was killed"


@dataclass(frozen=True)
class KnownEvent:
    """An event with what is kept beside it."""

    event: Event
    attempts: int
    terminal_reason: TerminalReason | None
    parked_at: datetime | None
    last_error: str | None

    @property
    def trouble(self) -> str:
        """Why the last attempt failed."""
        return self.last_error or KILLED


def announce(tx: Transaction, new: Event) -> bool:
    """Write an event; False if it was written before."""
    statement = insert_or_ignore(tx, event).values(**to_row(new)).returning(event.c.event_id)
    return tx.connection.execute(statement).first() is not None


def waiting(tx: Transaction, kind: EventType, limit: int) -> list[KnownEvent]:
    """Of the oldest *limit* that are neither processed nor parked, those nobody has claimed."""
    claimed = held(tx, ResourceType.EVENT, event.c.event_id)
    order = (event.c.created_at, event.c.event_id)
    oldest = select(event, claimed.label("claimed")).where(to_do(kind)).order_by(*order)
    line = oldest.limit(limit).subquery()
    free = select(line).where(line.c.claimed == false())
    return known(tx, free.order_by(line.c.created_at, line.c.event_id))


def to_do(kind: EventType) -> ColumnElement[bool]:
    """Neither processed nor parked."""
    # In the words of the partial index, without which SQLite would not use it.
    unprocessed: ColumnElement[bool] = literal_column(f"(NOT {event.name}.processed)")
    return and_(unprocessed, event.c.type == word(kind), event.c.parked_at.is_(None))


def newest(tx: Transaction, limit: int) -> list[KnownEvent]:
    """What was asked for last, whatever became of it."""
    order = (event.c.created_at.desc(), event.c.event_id)
    return known(tx, select(event).order_by(*order).limit(limit))


def find(tx: Transaction, event_id: str) -> KnownEvent | None:
    """The event of this id."""
    found = known(tx, select(event).where(event.c.event_id == event_id))
    return found[0] if found else None


def count_attempt(tx: Transaction, event_id: str) -> None:
    """Remember that somebody begins with it: whoever is killed by it cannot say so afterwards."""
    _change(tx, event_id, attempts=event.c.attempts + 1)


def uncount_attempt(tx: Transaction, event_id: str) -> None:
    """Somebody began and had to leave it for later, through no fault of the event."""
    _change(tx, event_id, attempts=event.c.attempts - 1)


def note_failure(tx: Transaction, owner: str, error: str) -> None:
    """Remember why *owner* failed with the event it holds, if it still does."""
    its_own = held(tx, ResourceType.EVENT, event.c.event_id, by=owner)
    noted = update(event).where(its_own, event.c.processed == false())
    tx.connection.execute(noted.values(last_error=printable(error, ERROR_LIMIT)))


def park(tx: Transaction, event_id: str) -> None:
    """Take it out of the line until a person puts it back."""
    _change(tx, event_id, parked_at=tx.now)


def unpark(tx: Transaction, event_id: str) -> bool:
    """Put it back into the line with all its attempts; False if it is not parked."""
    parked = and_(event.c.event_id == event_id, event.c.parked_at.is_not(None))
    statement = update(event).where(parked).values(parked_at=None, attempts=0)
    return tx.connection.execute(statement).rowcount > 0


def mark_processed(tx: Transaction, event_id: str, reason: TerminalReason) -> bool:
    """End it; False if it has ended before."""
    unprocessed = and_(event.c.event_id == event_id, event.c.processed == false())
    statement = update(event).where(unprocessed)
    ended = statement.values(processed=True, terminal_reason=reason.value)
    return tx.connection.execute(ended).rowcount > 0


def _change(tx: Transaction, event_id: str, **values: Any) -> None:
    unprocessed = and_(event.c.event_id == event_id, event.c.processed == false())
    tx.connection.execute(update(event).where(unprocessed).values(**values))


def known(tx: Transaction, statement: Any) -> list[KnownEvent]:
    """The events a *statement* selects, with all their columns."""
    rows: Sequence[Any] = tx.connection.execute(statement).mappings().all()
    return [
        KnownEvent(
            from_row(Event, dict(row)),
            row["attempts"],
            None if row["terminal_reason"] is None else TerminalReason(row["terminal_reason"]),
            row["parked_at"],
            row["last_error"],
        )
        for row in rows
    ]
