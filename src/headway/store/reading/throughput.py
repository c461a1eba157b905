"""What ended when, as charts show it: tallies, and for the last minutes the history itself."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select, union_all

from headway.domain.spans import DAY, HOUR, MINUTE, floored
from headway.domain.views import Throughput, ThroughputPoint
from headway.store.tables import tally
from headway.store.tallies import ALL, COUNTED, bucket, history, not_counted, sums
from headway.store.transaction import Transaction, among, word

# Up to this span a chart is drawn by the minute.
BY_THE_MINUTE = timedelta(hours=3)


def throughput(tx: Transaction, span: timedelta) -> Throughput:
    """What ended during the last *span*, by the minute or by the hour."""
    step = MINUTE if span <= BY_THE_MINUTE else HOUR
    last = floored(tx.now, step)
    first = last - (span // step - 1) * step
    found = _points(tx, step, first)
    starts = [first + number * step for number in range(span // step)]
    return Throughput(step, tuple(found.get(start, ThroughputPoint(start)) for start in starts))


def _points(tx: Transaction, step: timedelta, first: datetime) -> dict[datetime, ThroughputPoint]:
    name = "minute" if step == MINUTE else "hour"
    counted = select(tally.c.starts_at, *(tally.c[name] for name in COUNTED)).where(
        tally.c.span == word(name), tally.c.group_id == ALL, tally.c.starts_at >= first
    )
    starts_at = bucket(tx, step).label("starts_at")
    rest = select(starts_at, *sums(tx)).where(not_counted(first, tx.now)).group_by(starts_at)
    both = union_all(counted, rest).subquery()
    statement = select(
        both.c.starts_at, *(func.sum(both.c[name]).label(name) for name in COUNTED)
    ).group_by(both.c.starts_at)
    rows = tx.connection.execute(statement)
    return {row.starts_at: ThroughputPoint(row.starts_at, **_numbers(row)) for row in rows}


def ended_by_group(tx: Transaction, ids: Iterable[int]) -> dict[int, dict[str, Any]]:
    """What has ended in each of these groups during the last day, to the hour."""
    since, chosen = floored(tx.now - DAY, HOUR), list(ids)
    counted = select(tally.c.group_id, *(tally.c[name] for name in COUNTED)).where(
        tally.c.span == word("hour"),
        among(tx, tally.c.group_id, chosen),
        tally.c.starts_at >= since,
    )
    rest = (
        select(history.group_id, *sums(tx))
        .where(not_counted(since, tx.now), among(tx, history.group_id, chosen))
        .group_by(history.group_id)
    )
    both = union_all(counted, rest).subquery()
    statement = select(
        both.c.group_id, *(func.sum(both.c[name]).label(name) for name in COUNTED)
    ).group_by(both.c.group_id)
    return {row.group_id: _numbers(row) for row in tx.connection.execute(statement)}


def _numbers(row: Any) -> dict[str, Any]:
    counts: dict[str, Any] = {name: int(getattr(row, name)) for name in COUNTED[:-1]}
    return counts | {"run_seconds": float(row.run_seconds)}
