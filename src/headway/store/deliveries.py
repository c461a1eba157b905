"""Executions that another task server delivers by their ids, once or several times."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, select

from headway.domain.execution import Execution
from headway.store.executions import IS_LOCAL, PENDING, Steps, start
from headway.store.tables import execution
from headway.store.transaction import Transaction, among


def claim_delivered(
    tx: Transaction,
    owner: str,
    execution_id: int,
    workflows: Collection[str],
    first_steps: Steps | None = None,
    crashes: int = 0,
) -> Execution | None:
    """Start this execution if it still waits, *owner* knows its workflow, and it has taken no more
    workers along than so many *crashes*.

    The guard makes a delivery harmless that comes twice, too late, or with an id made up.
    """
    this_one = select(execution.c.id).where(
        _waits(execution_id),
        among(tx, execution.c.workflow, workflows),
        execution.c.crashes <= crashes,
    )
    started = start(tx, owner, this_one.with_for_update(skip_locked=True), first_steps)
    return started[0] if started else None


@dataclass(frozen=True)
class Waiting:
    """An execution that was sent to another task server and is still pending."""

    workflow: str
    crashes: int


def find_waiting(tx: Transaction, execution_id: int) -> Waiting | None:
    """This execution, if it still waits."""
    chosen = select(execution.c.workflow, execution.c.crashes).where(_waits(execution_id))
    row = tx.connection.execute(chosen).one_or_none()
    return None if row is None else Waiting(row.workflow, row.crashes)


def _waits(execution_id: int) -> ColumnElement[bool]:
    return and_(execution.c.id == execution_id, PENDING, ~IS_LOCAL)
