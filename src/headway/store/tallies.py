"""How many executions ended when: counted once from the history, so that charts never read it.

What ended before the line ``until`` is in the tallies, and what ended later is in the history
alone; whoever reads adds the two in one statement. The line follows the present at a distance: a
finishing transaction carries the time at which it began, and must be over before its minute is
counted.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Float,
    Integer,
    ScalarSelect,
    and_,
    case,
    cast,
    func,
    literal,
    literal_column,
    select,
    type_coerce,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from headway.domain.execution import ExecutionState
from headway.domain.spans import HOUR, MINUTE, floored
from headway.store.tables import execution_history, tally
from headway.store.transaction import Transaction, insert_or_ignore, word
from headway.store.types import BigId, Instant

# Longer than any finishing transaction lives: the database ends an idle one after seconds.
BEHIND = timedelta(minutes=2)
KEPT = timedelta(days=8)
ALL = 0
ALL_GROUPS = literal_column("CAST(0 AS BIGINT)", BigId)

COUNTED = ("completed", "failed", "cancelled", "run_seconds")
_ENDS = (ExecutionState.COMPLETED, ExecutionState.FAILED, ExecutionState.CANCELLED)
_KEY = ("span", "group_id", "starts_at")
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)

history = execution_history.c
# What was handed back has not ended, and runs again.
_ENDED = history.state != word(ExecutionState.HANDED_BACK)
_UNTIL = and_(tally.c.span == word("until"), tally.c.group_id == ALL)


def not_counted(since: datetime, now: datetime) -> ColumnElement[bool]:
    """Rows of the history that ended after *since* and are not in the tallies."""
    # Between two bounds, or a plan for any value would expect a third of all there is.
    later = and_(history.finished_at >= since, history.finished_at < now + timedelta(days=1))
    return and_(later, history.finished_at >= _counted_until(), _ENDED)


def _counted_until() -> ColumnElement[Any]:
    line: ScalarSelect[Any] = select(tally.c.starts_at).where(_UNTIL).scalar_subquery()
    return func.coalesce(line, literal(_BEGINNING, Instant))


def sums(tx: Transaction) -> list[ColumnElement[Any]]:
    """What is counted of rows of the history, under the names of the tallies."""
    counts: list[ColumnElement[Any]] = [
        func.sum(case((history.state == word(state), 1), else_=0)).label(state.value)
        for state in _ENDS
    ]
    return [*counts, func.coalesce(func.sum(_seconds(tx)), 0.0).label("run_seconds")]


def _seconds(tx: Transaction) -> ColumnElement[Any]:
    if tx.on_postgresql:
        ran = history.finished_at - history.started_at
        return cast(func.extract("epoch", ran), Float)
    ended, began = (type_coerce(one, Integer) for one in (history.finished_at, history.started_at))
    return (ended - began) / literal(1e6, Float)


def bucket(tx: Transaction, step: timedelta) -> ColumnElement[Any]:
    """The span of length *step* that a row of the history ended in."""
    # As text: with parameters in it, what is selected is not what is grouped by.
    seconds = int(step.total_seconds())
    if tx.on_postgresql:
        length: ColumnElement[Any] = literal_column(str(seconds))
        passed = func.extract("epoch", history.finished_at)
        return func.to_timestamp(func.floor(passed / length) * length, type_=Instant)
    micros: ColumnElement[Any] = literal_column(f"{seconds}000000")
    ended = type_coerce(history.finished_at, Integer)
    return type_coerce(ended - ended % micros, Instant)


def more_to_count(tx: Transaction) -> bool:
    """Whether anything has ended that should be in the tallies by now."""
    return _first_after(tx, None, _line(tx)) is not None


def count_more(tx: Transaction) -> bool:
    """Count what ended in one more hour, or in what has passed of it; whether there may be more.

    Only one counts at a time.
    """
    line, counted = _line(tx), _take_up(tx)
    start = None if counted is None else _first_after(tx, counted, line)
    if start is None:
        return False
    end = min(line, floored(start, HOUR) + HOUR)
    _add(tx, "minute", ALL_GROUPS, MINUTE, start, end)
    _add(tx, "hour", ALL_GROUPS, HOUR, start, end)
    _add(tx, "hour", history.group_id, HOUR, start, end)
    tx.connection.execute(update(tally).where(_UNTIL).values(starts_at=end))
    return end < line


def _line(tx: Transaction) -> datetime:
    return floored(tx.now - BEHIND, MINUTE)


def _take_up(tx: Transaction) -> datetime | None:
    """Up to where everything is counted; None if somebody else is counting."""
    first = {"span": "until", "group_id": ALL, "starts_at": _BEGINNING}
    tx.connection.execute(insert_or_ignore(tx, tally), first)
    line = select(tally.c.starts_at).where(_UNTIL).with_for_update(skip_locked=True)
    return tx.connection.execute(line).scalar_one_or_none()


def _first_after(tx: Transaction, since: datetime | None, line: datetime) -> datetime | None:
    """The first minute in which something ended, not before *since*, all of it before *line*."""
    start = _counted_until() if since is None else literal(since, Instant)
    statement = (
        select(history.finished_at)
        .where(history.finished_at >= start, history.finished_at < line)
        .order_by(history.finished_at)
        .limit(1)
    )
    found = tx.connection.execute(statement).scalar_one_or_none()
    return None if found is None else floored(found, MINUTE)


def _add(
    tx: Transaction,
    span: str,
    group: ColumnElement[Any],
    step: timedelta,
    start: datetime,
    end: datetime,
) -> None:
    """Add what ended between *start* and *end* to the tallies of its *span*."""
    counted = (
        select(word(span), group, bucket(tx, step), *sums(tx))
        .where(
            history.finished_at >= start,
            history.finished_at < end,
            _ENDED,
            group.is_not(None),
        )
        .group_by(group, bucket(tx, step))
    )
    insert = postgresql.insert if tx.on_postgresql else sqlite.insert
    adding = insert(tally).from_select([*_KEY, *COUNTED], counted)
    added = {name: tally.c[name] + adding.excluded[name] for name in COUNTED}
    tx.connection.execute(adding.on_conflict_do_update(index_elements=list(_KEY), set_=added))
