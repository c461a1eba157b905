"""Task servers that do not answer, and why: kept in one mark for each, for other processes to read.

The relay that asks a task server writes the mark each time it does not answer. A mark that has not
been written for a while counts no more: the process that asked may be gone.
"""

import json
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import delete, select, update

from headway.domain.text import printable
from headway.store.tables import mark
from headway.store.transaction import Transaction, insert_or_ignore

PREFIX = "task-server-absent:"
REASON_LIMIT = 500
# A relay asks an absent server every few seconds.
VALID_FOR = timedelta(seconds=30)


class AbsentServer(NamedTuple):
    """A task server that does not answer: since when, and what it was last answered with."""

    since: datetime
    asked_at: datetime
    reason: str


def note_absent(tx: Transaction, name: str, reason: str) -> None:
    """Keep that the task server *name* has just not answered."""
    known = absent_servers(tx).get(name)
    since = tx.now if known is None else known.since
    told = [since.isoformat(), tx.now.isoformat(), printable(reason, REASON_LIMIT)]
    value = json.dumps(told)
    statement = insert_or_ignore(tx, mark)
    tx.connection.execute(statement, [{"name": PREFIX + name, "value": value}])
    tx.connection.execute(update(mark).where(mark.c.name == PREFIX + name).values(value=value))


def note_present(tx: Transaction, name: str) -> None:
    """Forget that the task server *name* did not answer."""
    tx.connection.execute(delete(mark).where(mark.c.name == PREFIX + name))


def absent_servers(tx: Transaction) -> dict[str, AbsentServer]:
    """The task servers that did not answer a moment ago, by name."""
    marked = select(mark.c.name, mark.c.value).where(mark.c.name.startswith(PREFIX))
    found = {}
    for name, value in tx.connection.execute(marked):
        since, asked_at, reason = json.loads(value)
        one = AbsentServer(datetime.fromisoformat(since), datetime.fromisoformat(asked_at), reason)
        if tx.now - one.asked_at < VALID_FOR:
            found[name.removeprefix(PREFIX)] = one
    return found
