"""Executions that another task server delivers by their ids, once or several times."""

from collections.abc import Collection

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
) -> Execution | None:
    """Start this execution if it still waits and *owner* knows its workflow.

    The guard makes a delivery harmless that comes twice, too late, or with an id made up.
    """
    this_one = select(execution.c.id).where(
        _waits(execution_id), among(tx, execution.c.workflow, workflows)
    )
    started = start(tx, owner, this_one.with_for_update(skip_locked=True), first_steps)
    return started[0] if started else None


def workflow_of_waiting(tx: Transaction, execution_id: int) -> str | None:
    """The workflow of an execution that was sent to another task server and is still pending."""
    chosen = select(execution.c.workflow).where(_waits(execution_id))
    return tx.connection.execute(chosen).scalar_one_or_none()


def _waits(execution_id: int) -> ColumnElement[bool]:
    return and_(execution.c.id == execution_id, PENDING, ~IS_LOCAL)
