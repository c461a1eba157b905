"""Pages of executions: whatever is combined, a page looks at a bounded number of rows."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from operator import attrgetter
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, select, union_all

from headway.domain.execution import ExecutionState
from headway.domain.views import ExecutionFilter, ExecutionOverview, Strip
from headway.store.reading.bounded import EXAMINED, Found, choose
from headway.store.reading.executions import overviews
from headway.store.reading.names import group_named, manifest_named
from headway.store.tables import execution, execution_history
from headway.store.transaction import Transaction, word

# Ids rise with the time of dispatch, but for what dispatchers do at the same time.
DISORDER = timedelta(minutes=1)

_NARROW = ("id", "state", "workflow", "source", "dispatched_at")
_LIVE = (ExecutionState.PENDING, ExecutionState.IN_PROGRESS)

Narrowing = dict[str, int]

# Said once more, because SQLite does not conclude it and would not use the index.
NOT_COMPLETED = execution_history.c.state != word(ExecutionState.COMPLETED)


def page(
    tx: Transaction, wanted: ExecutionFilter, before: int | None, limit: int
) -> tuple[list[ExecutionOverview], int | None]:
    """The newest executions below the id *before*, and the id to go on from."""
    narrowed = _narrowed(tx, wanted)
    if narrowed is None:
        return [], None
    found = _search(tx, wanted, narrowed, before_id(tx, wanted, before), limit)
    stopped = found.stopped_at and found.stopped_at.id
    return overviews(tx, [row.id for row in found.rows]), stopped


def _narrowed(tx: Transaction, wanted: ExecutionFilter) -> Narrowing | None:
    """The ids of manifest and group that were asked for; None if there is no such thing."""
    narrowed: Narrowing = {}
    if wanted.manifest is not None:
        manifest_id = manifest_named(tx, wanted.manifest)
        if manifest_id is None:
            return None
        narrowed["manifest_id"] = manifest_id
    if wanted.group is not None:
        group_id = group_named(tx, wanted.group)
        if group_id is None:
            return None
        narrowed["group_id"] = group_id
    return narrowed


def _search(
    tx: Transaction,
    wanted: ExecutionFilter,
    narrowed: Narrowing,
    below: int | None,
    limit: int,
) -> Found:
    matches = _matches(wanted, by_index=_by_index(wanted, narrowed))
    read = EXAMINED if matches else limit + 1
    rows: dict[int, Any] = {}
    reached = 0
    # What ends between the two statements is found in the second.
    for statement in _sources(wanted, narrowed, below, read):
        some = tx.connection.execute(statement).all()
        rows |= {row.id: row for row in some}
        if len(some) == read:
            reached = max(reached, some[-1].id)
    known = [rows[key] for key in sorted(rows, reverse=True) if key >= reached]
    found = choose(known, matches, limit, cut=reached > 0)
    return Found(found.rows, None) if _over(wanted, found.stopped_at) else found


def _over(wanted: ExecutionFilter, stopped_at: Any | None) -> bool:
    """Whether all that is left was dispatched too early."""
    if wanted.since is None or stopped_at is None:
        return False
    return bool(stopped_at.dispatched_at < wanted.since - DISORDER)


def _by_index(wanted: ExecutionFilter, narrowed: Narrowing) -> bool:
    """Whether an index tells the states that are asked for."""
    return not narrowed and ExecutionState.COMPLETED not in wanted.states


def _matches(wanted: ExecutionFilter, *, by_index: bool) -> Callable[[Any], bool] | None:
    """What no index has decided, asked of each row."""
    states = frozenset(wanted.states)
    checks: list[Callable[[Any], bool]] = []
    if states and not by_index:
        checks.append(lambda row: row.state in states)
    if wanted.workflow is not None:
        checks.append(lambda row: row.workflow == wanted.workflow)
    if wanted.source is not None:
        checks.append(lambda row: row.source == wanted.source)
    if wanted.since is not None:
        since = wanted.since
        checks.append(lambda row: row.dispatched_at >= since)
    if wanted.until is not None:
        until = wanted.until
        checks.append(lambda row: row.dispatched_at < until)
    return (lambda row: all(check(row) for check in checks)) if checks else None


def _sources(
    wanted: ExecutionFilter, narrowed: Narrowing, below: int | None, read: int
) -> Iterable[Any]:
    """The rows to look at, newest first: the live ones, then the finished ones."""
    states = frozenset(wanted.states)
    alive, ended = sorted(states & frozenset(_LIVE)), sorted(states - frozenset(_LIVE))
    if not states:
        yield _newest(execution, narrowed, below, read)
    elif alive:
        are = execution.c.state.in_([word(state) for state in alive])
        yield _newest(execution, narrowed, below, read, are)
    if not states or (ended and not _by_index(wanted, narrowed)):
        yield _newest(execution_history, narrowed, below, read)
    elif ended:
        # Each from its own part of the index.
        parts = [
            _newest(
                execution_history,
                narrowed,
                below,
                read,
                execution_history.c.state == word(state),
                NOT_COMPLETED,
            )
            for state in ended
        ]
        merged = union_all(*(select(part.subquery()) for part in parts)).subquery()
        yield select(merged).order_by(merged.c.id.desc()).limit(read)


def _newest(
    table: Table, narrowed: Narrowing, below: int | None, read: int, *more: ColumnElement[bool]
) -> Select[Any]:
    statement = select(*(table.c[name] for name in _NARROW)).where(*more)
    statement = statement.where(*(table.c[name] == value for name, value in narrowed.items()))
    if below is not None:
        statement = statement.where(table.c.id < below)
    return statement.order_by(table.c.id.desc()).limit(read)


def before_id(tx: Transaction, wanted: ExecutionFilter, before: int | None) -> int | None:
    """Below which id to begin: that of the page before, or one dispatched later than asked for."""
    if before is not None or wanted.until is None:
        return before
    history = execution_history.c
    later = wanted.until + DISORDER
    ended = (
        select(history.id, history.dispatched_at)
        .where(history.finished_at >= later)
        .order_by(history.finished_at, history.id)
        .limit(100)
    )
    rows = tx.connection.execute(ended).all()
    return min((row.id for row in rows if row.dispatched_at >= later), default=None)


def newest_of(tx: Transaction, manifest_id: int, limit: int) -> list[ExecutionOverview]:
    """The newest executions of a manifest, newest first."""
    ids: set[int] = set()
    for table in (execution, execution_history):
        newest = _newest(table, {"manifest_id": manifest_id}, None, limit)
        ids |= {row.id for row in tx.connection.execute(newest)}
    return overviews(tx, sorted(ids, reverse=True)[:limit])


def strips(tx: Transaction, manifest_ids: Iterable[int], each: int) -> dict[int, tuple[Strip, ...]]:
    """The last *each* finished runs of every manifest, oldest first."""
    history = execution_history.c
    columns = (
        history.id,
        history.manifest_id,
        history.state,
        history.dispatched_at,
        history.started_at,
        history.finished_at,
    )
    parts = [
        select(
            select(*columns)
            .where(history.manifest_id == one)
            .order_by(history.id.desc())
            .limit(each)
            .subquery()
        )
        for one in manifest_ids
    ]
    shown: dict[int, list[Strip]] = {}
    if parts:
        rows = tx.connection.execute(union_all(*parts)).all()
        for row in sorted(rows, key=attrgetter("id")):
            shown.setdefault(row.manifest_id, []).append(_strip(row))
    return {key: tuple(some) for key, some in shown.items()}


def _strip(row: Any) -> Strip:
    ran = row.finished_at - row.started_at if row.started_at else None
    seconds = None if ran is None else ran.total_seconds()
    return Strip(row.id, ExecutionState(row.state), row.dispatched_at, seconds)
