"""The commonest end, a run that returned, as one statement on PostgreSQL.

What is deleted from the live table is what is written to the history: nothing of it travels to this
process and back but what follows from the end.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Text, TextualSelect, bindparam, text

from headway.domain.execution import Ended, ExecutionState, Outcome
from headway.domain.work_queue import Source
from headway.store.step_rows import steps_to_json
from headway.store.tables import execution, execution_history
from headway.store.transaction import Transaction
from headway.store.types import Instant, Listed


class Completed(NamedTuple):
    """A run that completed, and which successes of its parents it had seen."""

    ended: Ended
    parents_seen: str | None = None


_TOLD = (
    "id",
    "manifest_id",
    "external_id",
    "group_name",
    "workflow",
    "source",
    "scheduled_for",
    "started_at",
    "parents_seen",
)

_KEPT = [one.name for one in execution.c if one.name in execution_history.c]
_WRITTEN = {name: f"gone.{name}" for name in _KEPT} | {
    "state": f"'{ExecutionState.COMPLETED}'",
    "finished_at": "CAST(:now AS timestamptz)",
    "output": "given.output",
    "steps": "coalesce(given.steps, gone.steps)",
    # An outcome without steps leaves the last one where readers of the steps still find it.
    "running_step": "CASE WHEN given.steps IS NULL THEN gone.running_step END",
    "step_started_at": "CASE WHEN given.steps IS NULL THEN gone.step_started_at END",
}

_LIVE, _OLD = execution.name, execution_history.name

# Locked in the order of ids before any is touched, as everywhere. One whose id is in the history
# already, because somebody has edited it, is left to those who give it another.
_COMPLETING = f"""
    WITH given AS (
        SELECT * FROM unnest(
            :ids, :outputs, :steps
        ) AS given (id, output, steps)
    ), locked AS MATERIALIZED (
        SELECT id FROM {_LIVE}
        WHERE id = ANY (:ids) AND owner = :owner
        AND state = '{ExecutionState.IN_PROGRESS}'
        AND NOT EXISTS (SELECT FROM {_OLD} WHERE {_OLD}.id = {_LIVE}.id)
        ORDER BY {_LIVE}.id FOR UPDATE
    ), gone AS (
        DELETE FROM {_LIVE} WHERE id = ANY (ARRAY(SELECT id FROM locked)) RETURNING *
    ), written AS (
        INSERT INTO {_OLD} ({", ".join(_WRITTEN)})
        SELECT {", ".join(_WRITTEN.values())} FROM gone JOIN given USING (id)
    )
    SELECT {", ".join(_TOLD)}, NULL AS others FROM gone"""

# Where nobody asks for more, runs without a manifest are but their ids, all in one row.
_IDS_ALONE = f"""
    WHERE manifest_id IS NOT NULL
    UNION ALL SELECT {", ".join(["NULL"] * len(_TOLD))}, array_agg(id) FROM gone
    WHERE manifest_id IS NULL"""


def _completing(statement: str) -> TextualSelect:
    return (
        text(statement)
        .bindparams(
            bindparam("ids", type_=Listed(BigInteger())),
            bindparam("outputs", type_=Listed(Text())),
            bindparam("steps", type_=Listed(Text())),
            bindparam("now", type_=Instant),
        )
        .columns(*(execution.c[name] for name in _TOLD))
    )


_IN_FULL = _completing(f"{_COMPLETING} ORDER BY id")
_IN_BRIEF = _completing(_COMPLETING + _IDS_ALONE)


def complete(
    tx: Transaction, owner: str, returned: Mapping[int, Outcome], *, in_brief: bool = False
) -> list[Completed]:
    """End those of *owner*'s executions that have *returned*; returns those that were still so.

    *in_brief*, of a run without a manifest nothing is told but its id and that it completed.
    """
    ids = sorted(returned)
    given = {
        "ids": ids,
        "outputs": [returned[key].output for key in ids],
        "steps": [_steps(returned[key]) for key in ids],
        "owner": owner,
        "now": tx.now,
    }
    rows = tx.ask(_IN_BRIEF if in_brief else _IN_FULL, given)
    told = [_completed(row, tx.now) for row in rows if row[0] is not None]
    others = (key for *_, keys in rows for key in keys or ())
    return [*told, *(_brief(key, tx.now) for key in others)]


def _completed(row: Any, now: datetime) -> Completed:
    key, manifest_id, external_id, group, workflow, source, scheduled_for, *rest = row
    started_at, seen, _ = rest
    ended = Ended(
        key,
        manifest_id,
        external_id,
        group,
        workflow,
        source,
        scheduled_for,
        started_at,
        now,
        ExecutionState.COMPLETED,
    )
    return Completed(ended, seen)


def _brief(key: int, now: datetime) -> Completed:
    completed = ExecutionState.COMPLETED
    return Completed(Ended(key, None, None, None, "", Source.AD_HOC, None, None, now, completed))


def _steps(outcome: Outcome) -> str | None:
    return None if outcome.steps is None else steps_to_json(outcome.steps)
