"""What cannot be in the queue or among the live executions, and how it is put right.

Each look returns at most a page of rows, in words; nothing here is asked in a cycle.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, and_, exists, func, or_, select, true, update

from headway.domain.work_queue import EntryStatus, Source
from headway.store.activation import HELD, release_held
from headway.store.cancelled_entries import cancel_entries
from headway.store.eligibility import QUEUED
from headway.store.executions import IN_PROGRESS, PENDING, count_active
from headway.store.outcomes import take_back
from headway.store.servers import living_workers
from headway.store.tables import execution, manifest, manifest_group, server, work_queue
from headway.store.transaction import Transaction, among, word

PAGE = 1000
BY_TIME_OR_PARENT = [word(Source.SCHEDULE), word(Source.DEPENDENT)]

# Of each of these a manifest has at most one; the unique indexes of the queue say the same.
AT_MOST_ONE = (
    and_(QUEUED, work_queue.c.source.in_(BY_TIME_OR_PARENT)),
    and_(QUEUED, work_queue.c.source == word(Source.ACTIVATION)),
    HELD,
)


def orphans(tx: Transaction, started_before: datetime) -> list[str]:
    """Runs that began before then and whose owner has no row."""
    lives = exists().where(server.c.id == execution.c.owner)
    lost = select(execution).where(IN_PROGRESS, ~lives, execution.c.started_at < started_before)
    return [f"{_run(row)}, owner {row.owner}" for row in _page(tx, lost)]


def queued_twice(tx: Transaction) -> list[str]:
    """Entries beside which an older one of the same manifest and kind waits."""
    return [_entry(row) for row in _surplus_entries(tx)]


def end_queued_twice(tx: Transaction) -> int:
    """Cancel all but the oldest: that one stands for what the others were queued for.

    Queued activations are left, for each has an input of its own; they run one after another.
    """
    surplus = [row.id for row in _surplus_entries(tx) if not _is_queued_activation(row)]
    return _cancel(tx, surplus, "it was queued twice, and the older entry stays")


def _is_queued_activation(row: Any) -> bool:
    return (row.source, row.status) == (Source.ACTIVATION, EntryStatus.QUEUED)


def _surplus_entries(tx: Transaction) -> list[Any]:
    pages = (_page(tx, _later_ones(work_queue, rule)) for rule in AT_MOST_ONE)
    return [row for page in pages for row in page]


def running_twice(tx: Transaction) -> list[str]:
    """Executions beside which an older one of the same manifest is pending or running."""
    return [f"{_run(row)}, {row.state}" for row in _surplus_executions(tx)]


def take_back_running_twice(tx: Transaction) -> int:
    """Queue again those that have not begun; what runs is left to whoever runs it."""
    pending = [row.id for row in _surplus_executions(tx) if row.state == "pending"]
    return len(take_back(tx, pending, PAGE, "it was dispatched twice"))


def _surplus_executions(tx: Transaction) -> list[Any]:
    return _page(tx, _later_ones(execution, execution.c.single_flight.is_(True)))


def _later_ones(table: Table, rule: ColumnElement[bool]) -> Select[Any]:
    """All but the first of those of one manifest to which *rule* applies; what runs comes first."""
    began = [execution.c.state != word("in_progress")] if table is execution else []
    order = [*began, table.c.id]
    place = func.row_number().over(partition_by=table.c.manifest_id, order_by=order)
    ranked = select(table, place.label("place")).where(rule, table.c.manifest_id.is_not(None))
    ranks = ranked.subquery("ranks")
    return select(ranks).where(ranks.c.place > 1)


def groups_over_their_cap(tx: Transaction) -> list[str]:
    """Groups with more live executions than their cap allows."""
    active = (
        select(execution.c.group_id, func.count().label("active"))
        .group_by(execution.c.group_id)
        .subquery("active")
    )
    over = (
        select(manifest_group.c.name, manifest_group.c.max_active_jobs, active.c.active)
        .join(active, active.c.group_id == manifest_group.c.id)
        .where(active.c.active > manifest_group.c.max_active_jobs)
        .order_by(manifest_group.c.name)
    )
    rows = tx.connection.execute(over.limit(PAGE))
    return [f"group {row.name}: {row.active} at once, cap {row.max_active_jobs}" for row in rows]


def over_the_limit(tx: Transaction, limit: int | None, excluded: Sequence[str]) -> list[str]:
    """How many executions live beyond the global limit, if there are."""
    total = count_active(tx, excluded).total
    if limit is None or total <= limit:
        return []
    return [f"{total} at once, max_active_jobs {limit}"]


def entries_of_nobody(tx: Transaction) -> list[str]:
    """Entries that wait although their manifest or group is gone."""
    return [_entry(row) for row in _page(tx, _of_nobody())]


def end_entries_of_nobody(tx: Transaction) -> int:
    """Cancel them: nothing would ever dispatch them."""
    return _cancel(tx, [row.id for row in _page(tx, _of_nobody())], "its manifest is gone")


def _of_nobody() -> Select[Any]:
    living = exists().where(
        manifest.c.id == work_queue.c.manifest_id, manifest.c.removed_at.is_(None)
    )
    group = exists().where(manifest_group.c.id == work_queue.c.group_id)
    lost = or_(
        and_(work_queue.c.manifest_id.is_not(None), ~living),
        and_(work_queue.c.group_id.is_not(None), ~group),
    )
    return select(work_queue).where(or_(QUEUED, HELD), lost)


def held_for_the_free(tx: Transaction) -> list[str]:
    """Activations kept for dependents that are neither queued nor running."""
    return [_entry(row) for row in _page(tx, _held_for_the_free())]


def release_held_for_the_free(tx: Transaction) -> int:
    """Queue them: what would have done it is over."""
    return release_held(tx, [row.manifest_id for row in _page(tx, _held_for_the_free())])


def _held_for_the_free() -> Select[Any]:
    other = work_queue.alias("other")
    queued = exists().where(
        other.c.manifest_id == work_queue.c.manifest_id, other.c.status == word(EntryStatus.QUEUED)
    )
    runs = exists().where(execution.c.manifest_id == work_queue.c.manifest_id)
    return select(work_queue).where(HELD, ~queued, ~runs)


def pending_for_nobody(tx: Transaction, dispatched_before: datetime) -> list[str]:
    """Executions that have waited since before then for a worker that knows their workflow."""
    served = among(tx, execution.c.workflow, living_workers(tx).workflows)
    waits = select(execution).where(PENDING, ~served, execution.c.dispatched_at < dispatched_before)
    return [f"{_run(row)}, workflow {row.workflow}" for row in _page(tx, waits)]


def queued_for_nobody(tx: Transaction, created_before: datetime) -> list[str]:
    """Workflows that entries have waited for since before then, and no living server knows."""
    rows = tx.connection.execute(select(server.c.workflows).where(server.c.expires_at > tx.now))
    known = {name for row in rows for name in json.loads(row.workflows)}
    due = or_(work_queue.c.scheduled_at.is_(None), work_queue.c.scheduled_at <= created_before)
    statement = (
        select(work_queue.c.workflow, func.count().label("number"))
        .where(QUEUED, work_queue.c.created_at < created_before, due)
        .where(~among(tx, work_queue.c.workflow, known))
        .group_by(work_queue.c.workflow)
        .order_by(work_queue.c.workflow)
    )
    rows = tx.connection.execute(statement.limit(PAGE))
    return [f"workflow {row.workflow}: {row.number} queued" for row in rows]


def unreadable_parents(tx: Transaction) -> list[str]:
    """Entries and executions whose note about their parents is no such note."""
    return [_entry(row) for row in _unreadable(tx, work_queue)] + [
        _run(row) for row in _unreadable(tx, execution)
    ]


def forget_unreadable_parents(tx: Transaction) -> int:
    """Clear the notes: the dependents may run once more, and no success is lost."""
    cleared = 0
    for table in (work_queue, execution):
        chosen = among(tx, table.c.id, [row.id for row in _unreadable(tx, table)])
        forgotten = update(table).where(chosen).values(parents_seen=None)
        cleared += tx.connection.execute(forgotten).rowcount
    return cleared


def _unreadable(tx: Transaction, table: Table) -> list[Any]:
    live = or_(QUEUED, HELD) if table is work_queue else true()
    # Without the inputs, which may be long: all that is queued is read here.
    short = [column for column in table.c if column.name != "input"]
    noted = select(*short).where(table.c.parents_seen.is_not(None), live)
    rows = (row for row in tx.connection.execute(noted) if not _notes_parents(row.parents_seen))
    return list(islice(rows, PAGE))


def _notes_parents(text: str) -> bool:
    try:
        noted = json.loads(text)
        return all(int(edge) > 0 and type(seen) is int for edge, seen in noted.items())
    except (ValueError, AttributeError):
        return False


def _cancel(tx: Transaction, entry_ids: Iterable[int], reason: str) -> int:
    return len(cancel_entries(tx, among(tx, work_queue.c.id, entry_ids), reason))


def _page(tx: Transaction, statement: Select[Any]) -> list[Any]:
    return list(tx.connection.execute(statement.order_by("id").limit(PAGE)))


def _run(row: Any) -> str:
    return f"execution {row.id} of {row.external_id or row.workflow}"


def _entry(row: Any) -> str:
    return f"entry {row.id} ({row.source}) of manifest {row.manifest_id}, {row.workflow}"
