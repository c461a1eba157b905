"""Dispatching: queued entries become executions, for whoever claims them or started at once.

A dispatched entry is folded into its execution row (docs/decisions/001).
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import (
    delete,
)
from sqlalchemy.exc import DBAPIError, IntegrityError

from headway.domain.execution import Execution
from headway.domain.starting import Start
from headway.errors import HeadwayError
from headway.store.dead_letters import link_retries
from headway.store.engine import TRANSIENT
from headway.store.execution_rows import just_started
from headway.store.folding import (
    DEAD_LETTER_ID,
    ENTRY_ID,
    ID,
    MANIFEST_ID,
    OWNER,
    SINGLE_FLIGHT,
    fold_entries,
)
from headway.store.tables import work_queue
from headway.store.transaction import (
    Draft,
    Transaction,
    among,
    draft_for,
)
from headway.store.wakes import Scope, leave_wakes

# How each database names the rule that a manifest runs once at a time.
SINGLE_FLIGHT_BROKEN = {
    True: "headway_execution_single_flight",
    False: "headway_execution.manifest_id",
}
NOWHERE_ELSE: Mapping[int, str] = MappingProxyType({})


class Refused(HeadwayError):
    """The database refuses one of these entries; who is careful finds out which."""


class Dispatched(NamedTuple):
    """Entry → execution of those dispatched, why others were refused, and what has started."""

    executions: dict[int, int]
    refused: dict[int, str]
    started: list[Execution]


def dispatch_each(
    tx: Transaction,
    entry_ids: Sequence[int],
    elsewhere: Mapping[int, str] = NOWHERE_ELSE,
    start: Start | None = None,
    *,
    careful: bool = True,
) -> Dispatched:
    """Dispatch entries, each on its own account: one the database refuses costs no other.

    Those *elsewhere* go to the task server named there; those to *start* are not left pending. One
    whose manifest has come to run in the meantime is in no part of the answer: it waits. Whoever
    is not *careful* is told by :class:`Refused` to begin again, in another transaction.
    """
    try:
        with tx.connection.begin_nested() if careful else nullcontext():
            created = _dispatch(tx, entry_ids, elsewhere, start)
            return Dispatched(_by_entry(created), {}, _started(created, tx.now))
    except DBAPIError as error:
        if isinstance(error, TRANSIENT) or error.connection_invalidated:
            raise
        if not careful:
            raise Refused from error
        if len(entry_ids) == 1:
            busy = isinstance(error, IntegrityError) and SINGLE_FLIGHT_BROKEN[
                tx.on_postgresql
            ] in str(error.orig)
            return Dispatched({}, {} if busy else {entry_ids[0]: repr(error.orig)}, [])
    middle = len(entry_ids) // 2
    some = dispatch_each(tx, entry_ids[:middle], elsewhere, start)
    rest = dispatch_each(tx, entry_ids[middle:], elsewhere, start)
    return Dispatched(
        some.executions | rest.executions, some.refused | rest.refused, some.started + rest.started
    )


def dispatch(
    tx: Transaction, entry_ids: Sequence[int], elsewhere: Mapping[int, str] = NOWHERE_ELSE
) -> dict[int, int]:
    """Turn queued entries into pending executions; returns entry id → execution id.

    All are for the own workers but those *elsewhere*, by the name of their task server. An entry
    that is no longer queued is left out: somebody else ended it in between.
    """
    return _by_entry(_dispatch(tx, entry_ids, elsewhere, None))


def _by_entry(created: Sequence[Any]) -> dict[int, int]:
    return {row[ENTRY_ID]: row[ID] for row in created}


def _started(created: Sequence[Any], now: datetime) -> list[Execution]:
    return [just_started(row, now) for row in created if row[OWNER] is not None]


def _dispatch(
    tx: Transaction, entry_ids: Sequence[int], elsewhere: Mapping[int, str], start: Start | None
) -> Sequence[Any]:
    if not entry_ids:
        return ()
    fold = _fold_on_postgresql if tx.on_postgresql else _fold_on_sqlite
    created = fold(tx, entry_ids, elsewhere, start)
    link_retries(tx, {row[DEAD_LETTER_ID]: row[ID] for row in created if row[DEAD_LETTER_ID]})
    # The schedule of what may overlap waits for no end: it goes on as soon as the queue is free.
    overlapping = [row[MANIFEST_ID] for row in created if not row[SINGLE_FLIGHT]]
    leave_wakes(tx, [(key, Scope.SELF) for key in overlapping])
    return created


def _fold_on_postgresql(
    tx: Transaction, entry_ids: Sequence[int], elsewhere: Mapping[int, str], start: Start | None
) -> Sequence[Any]:
    """One statement: what the DELETE returns is what the INSERT writes."""
    statement, given = _folding(tx, entry_ids, elsewhere, start)
    return tx.ask(statement, given)


def _fold_on_sqlite(
    tx: Transaction, entry_ids: Sequence[int], elsewhere: Mapping[int, str], start: Start | None
) -> Sequence[Any]:
    """SQLite has no DELETE inside WITH; its one writer makes two statements as good as one."""
    statement, given = _folding(tx, entry_ids, elsewhere, start)
    created = tx.connection.execute(statement, given).all()
    ids = [row.entry_id for row in created]
    tx.connection.execute(delete(work_queue).where(among(tx, work_queue.c.id, ids)))
    return created


def folding_of(draft: Draft, first_steps: Mapping[str, str]) -> Any:
    """The statement behind :func:`dispatch_each` where some start at once and none goes elsewhere,
    with the first step of each workflow."""
    return fold_entries(draft, (), tuple(sorted(first_steps.items())))


def _folding(
    tx: Transaction, entry_ids: Sequence[int], elsewhere: Mapping[int, str], start: Start | None
) -> tuple[Any, dict[str, Any]]:
    """The statement that folds entries into executions, and what it is given."""
    names = tuple(sorted(set(elsewhere.values())))
    given: dict[str, Any] = {"now": tx.now, "entry_ids": sorted(entry_ids)}
    for place, name in enumerate(names):
        given[f"sent_{place}"] = sorted(key for key, sent in elsewhere.items() if sent == name)
    if start is None:
        return fold_entries(draft_for(tx), names, None), given
    given |= {"starting": sorted(start.entry_ids), "owner": start.owner}
    if not names:
        return folding_of(draft_for(tx), start.first_steps), given
    steps = tuple(sorted(start.first_steps.items()))
    return fold_entries(draft_for(tx), names, steps), given
