"""Where live executions begin: none has an id below the one that a dispatcher has noted.

As long as somebody's snapshot stays open, PostgreSQL keeps every execution that has ended since,
and whoever looks for those that live passes them all. Ids are drawn under the dispatcher's lock: if
nothing older lives at one moment, nothing older ever will. On SQLite what has ended is in nobody's
way.
"""

from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    and_,
    bindparam,
    func,
    literal_column,
    select,
    true,
)

from headway.store.marks import read_mark, write_mark
from headway.store.tables import execution
from headway.store.transaction import Asking, Draft, Transaction

OLDEST = "oldest_live_execution"
_NOTED: ColumnElement[int] = literal_column(
    "(SELECT CAST(value AS bigint) FROM headway_mark WHERE name = 'oldest_live_execution'"
    # Whatever a row says that somebody edited, or that was left from before ids began anew.
    r" AND CASE WHEN value ~ '^\d{1,18}$' THEN CAST(value AS bigint) <="
    " (SELECT last_value FROM headway_execution_id_seq) ELSE false END)",
    BigInteger,
)


def may_live(tx: Asking) -> ColumnElement[bool]:
    """Leaves out, by the index of their ids, those that are known to be gone."""
    return execution.c.id >= func.coalesce(_NOTED, 0) if tx.on_postgresql else true()


@cache
def counted(draft: Draft) -> Select[Any]:
    """How many live of each kind, and the oldest of them; none is older than ``live_from``."""
    kinds = (execution.c.group_id, execution.c.workflow, execution.c.task_server)
    many, oldest = func.count().label("active"), func.min(execution.c.id).label("oldest")
    live = and_(execution.c.id >= bindparam("live_from"), may_live(draft))
    return select(*kinds, many, oldest).where(live).group_by(*kinds)


@cache
def oldest(draft: Draft) -> Select[Any]:
    """The oldest that lives."""
    return select(func.min(execution.c.id).label("oldest")).where(may_live(draft))


def noted_oldest(tx: Transaction) -> int:
    """What was noted last, whether it holds or not."""
    value = read_mark(tx, OLDEST) or ""
    return int(value) if value.isdecimal() else 0


def note_oldest(tx: Transaction, execution_id: int) -> None:
    """Nothing older than this lives, says whoever has counted under the dispatcher's lock."""
    write_mark(tx, OLDEST, str(execution_id))
