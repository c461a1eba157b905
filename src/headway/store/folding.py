"""The statement that folds queue entries into executions (docs/decisions/001)."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Select,
    Text,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    literal,
    not_,
    null,
    select,
    true,
)

from headway.domain.execution import ExecutionState
from headway.domain.routing import LOCAL
from headway.store.edges import parents_seen
from headway.store.eligibility import QUEUED, in_order
from headway.store.tables import execution, manifest, manifest_group, work_queue
from headway.store.transaction import (
    Draft,
    among_found,
    among_given,
    locked_in_order,
    told_of,
    word,
)

# What an execution takes over from its entry, under the execution's names.
FOLDED: dict[str, str] = {
    "entry_id": "id",
    "manifest_id": "manifest_id",
    "group_id": "group_id",
    "workflow": "workflow",
    "input_type": "input_type",
    "input": "input",
    "source": "source",
    "priority": "priority",
    "queued_at": "created_at",
    "scheduled_at": "scheduled_at",
    "scheduled_for": "scheduled_for",
    "max_attempts": "max_attempts",
    "dispatch_attempts": "dispatch_attempts",
    "crashes": "crashes",
    "dead_letter_id": "dead_letter_id",
}


RETURNED = ("id", "entry_id", "manifest_id", "dead_letter_id", "single_flight", "owner")
# Where these stand: a row that is asked by name takes ten times as long to answer.
ID, ENTRY_ID, MANIFEST_ID, DEAD_LETTER_ID, SINGLE_FLIGHT, OWNER = range(len(RETURNED))
STARTED = (
    "external_id",
    "group_name",
    "workflow",
    "input",
    "source",
    "priority",
    "attempt",
    "max_attempts",
    "queued_at",
    "scheduled_for",
    "parents_seen",
    "running_step",
)


# As many as there are ways to route and sets of workflows in one process.
@lru_cache(maxsize=64)
def fold_entries(
    draft: Draft, servers: tuple[str, ...], first_steps: tuple[tuple[str, str], ...] | None
) -> Any:
    """Entries become executions of the own workers, or of these *servers*; with *first_steps*,
    some of them start at once."""
    taken = _taken(draft, starting=first_steps is not None)
    beginning = _beginning(draft, taken, first_steps)
    beginning["task_server"] = _task_server(draft, taken.c.id, servers)
    returned = RETURNED if first_steps is None else (*RETURNED, *STARTED)
    return _folded(draft, taken, beginning, returned, of_manifests=True)


def fold_found(
    draft: Draft,
    found: Select[Any],
    first_steps: tuple[tuple[str, str], ...],
    *,
    of_manifests: bool,
) -> Any:
    """All entries *found*, which are locked, become executions that start at once; returns when,
    besides what is returned of any that starts. Some are *of_manifests*, or none is."""
    taken = (
        delete(work_queue)
        .where(among_found(draft, work_queue.c.id, found))
        .returning(*work_queue.c)
        .cte("taken")
    )
    beginning = _in_progress(draft, taken, first_steps) | {"task_server": word(LOCAL)}
    returned = ("dispatched_at", *RETURNED, *STARTED)
    return _folded(draft, taken, beginning, returned, of_manifests=of_manifests)


def _folded(
    draft: Draft,
    taken: Any,
    beginning: dict[str, Any],
    returned: Sequence[str],
    *,
    of_manifests: bool,
) -> Any:
    """The entries *taken* are written as executions, in the order of dispatch.

    Their ids rise in that order, and with it the order in which workers and task servers get them.
    """
    row = {name: taken.c[FOLDED[name]] for name in FOLDED}
    row |= {"attempt": taken.c.attempts + 1, "dispatched_at": draft.now, **beginning}
    source, order = taken, list(in_order(taken))
    if of_manifests:
        order.insert(0, func.coalesce(manifest_group.c.priority, 0).desc())
        source = taken.outerjoin(manifest, manifest.c.id == taken.c.manifest_id)
        source = source.outerjoin(manifest_group, manifest_group.c.id == taken.c.group_id)
        row["parents_seen"] = parents_seen(draft, taken.c.manifest_id)
        row["external_id"], row["group_name"] = manifest.c.external_id, manifest_group.c.name
        row["single_flight"] = func.coalesce(not_(manifest.c.allow_overlap), true())
    else:
        row["single_flight"] = true()
    created: Select[Any] = select(*row.values()).select_from(source).order_by(*order)
    return (
        insert(execution)
        .from_select(list(row), created)
        .returning(*(execution.c[name] for name in returned))
    )


def _taken(draft: Draft, *, starting: bool) -> Any:
    """The entries; with *starting*, each with whether it starts at once.

    Whatever has taken a worker along waits to be claimed: beside whom it may run is asked there.
    """
    chosen = and_(among_given(draft, work_queue.c.id, "entry_ids"), QUEUED)
    columns: list[ColumnElement[Any]] = [*work_queue.c]
    if starting:
        named = told_of(draft, work_queue.c.id, "starting")
        columns.append(and_(named, work_queue.c.crashes == 0).label("starts"))
    if not draft.on_postgresql:
        return select(*columns).where(chosen).subquery("taken")
    # An entry somebody else is changing waits for the next cycle; it must not hold up this one.
    return (
        delete(work_queue)
        .where(locked_in_order(draft, work_queue, chosen, wait=False))
        .returning(*columns)
        .cte("taken")
    )


def _beginning(
    draft: Draft, taken: Any, first_steps: tuple[tuple[str, str], ...] | None
) -> dict[str, Any]:
    """How executions begin: pending, or in progress where there is a hand free for them."""
    if first_steps is None:
        return {"state": word(ExecutionState.PENDING)}
    in_progress = _in_progress(draft, taken, first_steps)
    pending = dict.fromkeys(in_progress, null()) | {"state": word(ExecutionState.PENDING)}
    return {
        name: case((taken.c.starts, in_progress[name]), else_=pending[name]) for name in in_progress
    }


def _in_progress(
    draft: Draft, taken: Any, first_steps: tuple[tuple[str, str], ...]
) -> dict[str, Any]:
    step = case(dict(first_steps), value=taken.c.workflow, else_=null()) if first_steps else null()
    return {
        "state": word(ExecutionState.IN_PROGRESS),
        "owner": bindparam("owner", type_=Text),
        "started_at": draft.now,
        "running_step": step,
        "step_started_at": draft.now,
    }


def _task_server(draft: Draft, entry_id: Column[Any], servers: Sequence[str]) -> ColumnElement[str]:
    """One branch for each server, not for each entry."""
    branches = [
        (told_of(draft, entry_id, f"sent_{place}"), literal(name, Text))
        for place, name in enumerate(servers)
    ]
    return case(*branches, else_=word(LOCAL)) if branches else word(LOCAL)
