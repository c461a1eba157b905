"""The outbox: executions that other task servers are still to be told of, or to be told of again.

A row is written in the transaction that creates its execution, so that neither is there without
the other. It is taken for a moment, published, and put off: what is claimed meanwhile is dropped
when its time comes, and everything else is published once more.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import and_, delete, exists, func, insert, select, update

from headway.domain.execution import Execution
from headway.domain.retry import RetryPolicy
from headway.store import outcomes
from headway.store.executions import PENDING
from headway.store.tables import execution, outbox
from headway.store.transaction import Transaction, among

# Whoever took rows and died costs this much; whoever publishes them slowly must not take longer.
HELD_FOR = timedelta(seconds=15)

# What nobody has claimed by then is published again, and then after twice as long each time.
UNCLAIMED_FOR = timedelta(seconds=60)
MOST_DOUBLINGS = 10

WAITS = exists().where(execution.c.id == outbox.c.execution_id, PENDING)


@dataclass(frozen=True)
class Letter:
    """An execution to be told of, and how often that was done before."""

    execution_id: int
    published: int


def put(tx: Transaction, task_servers: Mapping[int, str]) -> None:
    """Have these executions told to the task servers named with them."""
    rows = [
        {"execution_id": key, "task_server": name, "publish_at": tx.now}
        for key, name in sorted(task_servers.items())
    ]
    if rows:
        tx.connection.execute(insert(outbox), rows)


def take(tx: Transaction, task_server: str, workflows: Collection[str], limit: int) -> list[Letter]:
    """Take what is due for this server, of *workflows* one knows; nobody else gets it for a while.

    Another application may have a server of the same name.
    """
    due = (
        select(outbox.c.execution_id, outbox.c.published)
        .join(execution, execution.c.id == outbox.c.execution_id)
        .where(
            outbox.c.publish_at <= tx.now,
            outbox.c.task_server == task_server,
            PENDING,
            among(tx, execution.c.workflow, workflows),
        )
        .order_by(outbox.c.publish_at, outbox.c.execution_id)
        .limit(limit)
        .with_for_update(of=outbox, skip_locked=True)
    )
    letters = [Letter(row.execution_id, row.published) for row in tx.connection.execute(due)]
    _put_off(tx, [one.execution_id for one in letters], tx.now + HELD_FOR)
    return letters


def note_published(tx: Transaction, letters: Iterable[Letter]) -> None:
    """Look at these again once they should have been claimed."""
    by_count: dict[int, list[int]] = {}
    for one in letters:
        by_count.setdefault(one.published, []).append(one.execution_id)
    for count, ids in by_count.items():
        again = tx.now + UNCLAIMED_FOR * 2 ** min(count, MOST_DOUBLINGS)
        _put_off(tx, ids, again, published=count + 1)


def let_go(tx: Transaction, letters: Iterable[Letter]) -> None:
    """Leave these, which could not be published, to whoever comes next."""
    _put_off(tx, [one.execution_id for one in letters], tx.now)


def recall(tx: Transaction, task_server: str, workflows: Collection[str], reason: str) -> int:
    """Queue again what this server was never told of; nothing is charged. Returns how many.

    The *reason* for which the server does not answer is on record with each execution.

    In the queue limits, priorities and cancellation reach it, and it takes no slot from others.
    """
    untold = select(outbox.c.execution_id).where(
        outbox.c.task_server == task_server, outbox.c.published == 0
    )
    ids = tx.connection.execute(untold).scalars().all()
    if not ids:
        return 0
    chosen = and_(among(tx, execution.c.id, ids), among(tx, execution.c.workflow, workflows))
    sentence = f"task server {task_server!r} does not answer: {reason}"
    recalled = [one.id for one in outcomes.recall(tx, chosen, sentence)]
    tx.connection.execute(delete(outbox).where(among(tx, outbox.c.execution_id, recalled)))
    return len(recalled)


def take_back(
    tx: Transaction,
    execution_id: int,
    attempts: int,
    reason: str,
    backoff: RetryPolicy,
    patience: timedelta,
) -> list[Execution]:
    """Queue an execution again, a little later, whose server answers but did not take it.

    After so many *attempts*, and when the *patience* is over, its entry fails with the *reason*.
    """
    tx.connection.execute(delete(outbox).where(outbox.c.execution_id == execution_id))
    return outcomes.take_back(tx, [execution_id], attempts, reason, backoff, patience)


def drop_claimed(tx: Transaction, limit: int) -> int:
    """Forget what is due but has been claimed or ended; returns how much."""
    over = (
        select(outbox.c.execution_id)
        .where(outbox.c.publish_at <= tx.now, ~WAITS)
        .order_by(outbox.c.publish_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    ids = tx.connection.execute(over).scalars().all()
    if ids:
        tx.connection.execute(delete(outbox).where(among(tx, outbox.c.execution_id, ids)))
    return len(ids)


def next_due(tx: Transaction, task_servers: Collection[str]) -> datetime | None:
    """When the next row for these servers is to be looked at, if there is any."""
    theirs = among(tx, outbox.c.task_server, task_servers)
    first = select(func.min(outbox.c.publish_at)).where(theirs)
    moment: datetime | None = tx.connection.execute(first).scalar_one()
    return moment


def _put_off(
    tx: Transaction, execution_ids: list[int], until: datetime, published: int | None = None
) -> None:
    if not execution_ids:
        return
    values = {"publish_at": until} | ({} if published is None else {"published": published})
    chosen = among(tx, outbox.c.execution_id, execution_ids)
    tx.connection.execute(update(outbox).where(chosen).values(**values))
