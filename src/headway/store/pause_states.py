"""Why work rests, written with the fact itself: each pause once, whoever repeats it.

What real life leaves behind belongs to the standing objective, which is looked up where the pause
is written. A deployment that has none, because it was never started, leaves nothing behind.
"""

import json
from collections.abc import Iterable, Sequence

from sqlalchemy import bindparam, literal, select, true

from headway.domain.azolla.artifacts import ObjectiveType, PauseState
from headway.domain.azolla.pausing import Pause, pause_of_run
from headway.domain.execution import Execution, Outcome
from headway.store.artifact_rows import to_row
from headway.store.rows import unnested
from headway.store.tables import objective, pause_state
from headway.store.transaction import Transaction, insert_or_ignore, word
from headway.store.types import Instant

IS_STANDING = objective.c.objective_type == word(ObjectiveType.STANDING)

_GIVEN = (pause_state.c.pause_id, pause_state.c.reason, pause_state.c.prioritized_actions)
_COLUMNS = (*_GIVEN, pause_state.c.created_at, pause_state.c.objective_id, pause_state.c.azolla_id)


def add(tx: Transaction, pauses: Sequence[tuple[str, PauseState]]) -> None:
    """Write pause states under the ids given; those that stand already are left as they are."""
    if pauses:
        rows = [to_row(one, pause_id=pause_id) for pause_id, one in pauses]
        tx.connection.execute(insert_or_ignore(tx, pause_state), rows)


def leave(tx: Transaction, pauses: Sequence[Pause]) -> None:
    """Write what real life leaves behind, in the name of the standing objective, if there is one.

    Whoever has nothing to leave sends no statement.
    """
    if not pauses:
        return
    rows = [(one.pause_id, one.reason.value, json.dumps(one.actions)) for one in pauses]
    owner = (objective.c.objective_id, objective.c.azolla_id)
    into = insert_or_ignore(tx, pause_state)
    if tx.on_postgresql:
        given = unnested(_GIVEN, rows)
        every = select(*given.c, literal(tx.now, Instant), *owner).where(IS_STANDING)
        every = every.select_from(given.join(objective, true()))
        tx.connection.execute(into.from_select(_COLUMNS, every))
        return
    named = [bindparam(f"b_{column.name}", type_=column.type) for column in _GIVEN]
    each = select(*named, literal(tx.now, Instant), *owner).where(IS_STANDING)
    values = [dict(zip([one.key for one in named], row, strict=True)) for row in rows]
    tx.connection.execute(into.from_select(_COLUMNS, each), values)


def leave_after_runs(tx: Transaction, ended: Iterable[tuple[Execution, Outcome]]) -> None:
    """Write a pause for each run that timed out, or completed and asked for it."""
    found = (pause_of_run(one, outcome) for one, outcome in ended)
    leave(tx, [pause for pause in found if pause is not None])
