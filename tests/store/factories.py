"""Rows to start from: manifests declared as users declare them, jobs brought to a wanted state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any, TypeVar

from sqlalchemy import Table, select, text, update

from headway.domain.declaration import Declaration
from headway.domain.execution import Execution, ExecutionState, Failure, Outcome
from headway.domain.manifest import Group, Manifest, ManifestDispatchView, Terms
from headway.domain.schedule import every
from headway.domain.work_queue import NewEntry, Source
from headway.store import declarations, executions, manifests, outcomes, work_queue
from headway.store.dead_letters import NewDeadLetter, create
from headway.store.declarations import Applied
from headway.store.engine import Store
from headway.store.tables import manifest, manifest_group, manifest_state, schema, wake
from headway.store.transaction import Transaction

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)
NOBODY = 10**12
ME = "worker-1"
OTHER = "worker-2"
COMPLETED = Outcome(ExecutionState.COMPLETED)
CANCELLED = Outcome(ExecutionState.CANCELLED)
FAILED = Outcome(ExecutionState.FAILED, Failure("load", "ValueError", "no rows"))

T = TypeVar("T")


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **span: float) -> datetime:
        self.now += timedelta(**span)
        return self.now


def a_manifest(external_id: str = "extract", **changes: Any) -> Manifest:
    terms: dict[str, Any] = {
        "workflow": "work",
        "input_type": "None",
        "schedule": every(hours=1),
        "group": Group("etl"),
    } | changes
    input, parents = terms.pop("input", "null"), terms.pop("parents", ())
    return Manifest(external_id, input, Terms(**terms), parents)


def a_declaration(
    *items: Manifest, groups: Iterable[Group] = (), application: str = "warehouse"
) -> Declaration:
    return Declaration(application, {group.name: group for group in groups}, items)


def apply(store: Store, wanted: Declaration, **options: Any) -> Applied:
    with store.writing() as tx:
        return declarations.apply(tx, wanted, **options)


def declare(store: Store, *items: Manifest | str, groups: Iterable[Group] = ()) -> dict[str, int]:
    """Declare manifests; returns their ids by external id. Nothing is left in the wake inbox."""
    declared = [a_manifest(item) if isinstance(item, str) else item for item in items]
    apply(store, a_declaration(*declared, groups=groups), go_back=True)
    return manifest_ids(store)


def manifest_ids(store: Store) -> dict[str, int]:
    with store.reading() as tx:
        chosen = select(manifest.c.external_id, manifest.c.id).where(
            manifest.c.removed_at.is_(None)
        )
        return {row.external_id: row.id for row in tx.connection.execute(chosen)}


def entry_for(tx: Transaction, external_id: str, **changes: Any) -> NewEntry:
    row = tx.connection.execute(
        select(manifest).where(
            manifest.c.external_id == external_id, manifest.c.removed_at.is_(None)
        )
    ).one()
    fields: dict[str, Any] = {
        "workflow": row.workflow,
        "source": Source.SCHEDULE,
        "input": row.input,
        "input_type": row.input_type,
        "manifest_id": row.id,
        "group_id": row.group_id,
    }
    return NewEntry(**fields | changes)


def queue(store: Store, external_id: str = "extract", **changes: Any) -> int:
    """Queue an entry of a declared manifest and return its id."""
    with store.writing() as tx:
        [entry] = work_queue.enqueue(tx, [entry_for(tx, external_id, **changes)])
    return entry


def queue_ad_hoc(store: Store, **changes: Any) -> int:
    fields: dict[str, Any] = {"workflow": "work", "source": Source.AD_HOC, "input": "null"}
    with store.writing() as tx:
        [entry] = work_queue.enqueue(tx, [NewEntry(**fields | changes)])
    return entry


def dispatched(store: Store, external_id: str = "extract", **changes: Any) -> int:
    """A pending execution of a declared manifest; returns its id."""
    entry = queue(store, external_id, **changes)
    with store.writing() as tx:
        return work_queue.dispatch(tx, [entry])[entry]


def started(
    store: Store, external_id: str = "extract", owner: str = ME, **changes: Any
) -> Execution:
    """An execution in progress in the name of *owner*."""
    execution_id = dispatched(store, external_id, **changes)
    with store.writing() as tx:
        claimed = executions.claim_one(tx, owner, execution_id)
    assert claimed is not None
    return claimed


def finish(
    store: Store, execution: Execution, outcome: Outcome = COMPLETED, owner: str = ME
) -> list[Execution]:
    """End it, if it is *owner*'s; what is on record of it then."""
    with store.writing() as tx:
        ended = outcomes.finish(tx, owner, {execution.id: outcome})
        found = [executions.find(tx, one.id) for one in ended]
    return [one for one in found if one is not None]


def ran(
    store: Store, external_id: str = "extract", outcome: Outcome = COMPLETED, **changes: Any
) -> Execution:
    """A whole run that ended with *outcome*."""
    [ended] = finish(store, started(store, external_id, **changes), outcome)
    return ended


def dead_letter_for(store: Store, external_id: str = "extract") -> None:
    manifest_id = manifest_ids(store)[external_id]
    with store.writing() as tx:
        create(tx, [NewDeadLetter(manifest_id, "max retries exceeded", 3)])


def view_of(store: Store, external_id: str = "extract") -> ManifestDispatchView:
    with store.reading() as tx:
        [view] = manifests.load_views(tx, [manifest_ids(store)[external_id]])
    return view


def state_of(store: Store, external_id: str = "extract") -> Any:
    """The narrow row that goes with a manifest."""
    key = manifest_ids(store)[external_id]
    with store.reading() as tx:
        chosen = select(manifest_state).where(manifest_state.c.manifest_id == key)
        return tx.connection.execute(chosen).one()


def wakes_of(store: Store) -> list[tuple[int, str]]:
    """The wake inbox as (manifest or group id, scope), sorted; it is emptied."""
    with store.writing() as tx:
        rows = tx.connection.execute(wake.delete().returning(*wake.c)).all()
    return sorted((row.manifest_id or row.group_id, row.scope) for row in rows)


def change_group(store: Store, name: str, **values: Any) -> None:
    """What an operator does to a group."""
    with store.writing() as tx:
        tx.connection.execute(
            update(manifest_group).where(manifest_group.c.name == name).values(**values)
        )


def change_manifest(store: Store, external_id: str, **values: Any) -> None:
    with store.writing() as tx:
        chosen = manifest.c.external_id == external_id
        tx.connection.execute(update(manifest).where(chosen).values(**values))


def change_state(store: Store, external_id: str, **values: Any) -> None:
    key = manifest_ids(store)[external_id]
    with store.writing() as tx:
        chosen = manifest_state.c.manifest_id == key
        tx.connection.execute(update(manifest_state).where(chosen).values(**values))


def has_session(store: Store, pid: int) -> bool:
    """Whether PostgreSQL has a session with this process id.

    Every look is a transaction of its own: within one, the first answer stays.
    """
    with store.reading() as tx:
        found = text("SELECT 1 FROM pg_stat_activity WHERE pid = :pid")
        return tx.connection.execute(found, {"pid": pid}).first() is not None


def rows_of(store: Store, table: Table) -> list[dict[str, Any]]:
    with store.reading() as tx:
        found = tx.connection.execute(select(table).order_by(*table.primary_key)).mappings()
        return [dict(row) for row in found]


def everything(store: Store) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table, to show that something wrote nothing."""
    return {table.name: rows_of(store, table) for table in schema.sorted_tables}


def at_once(*acts: Callable[[], T]) -> list[T]:
    """Run each of *acts* in a thread of its own, all let go at the same moment."""
    barrier = Barrier(len(acts))

    def act_together(act: Callable[[], T]) -> T:
        barrier.wait(30)
        return act()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(act_together, acts))
