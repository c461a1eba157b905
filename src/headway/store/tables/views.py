"""The views that show live and finished as one, as tables to select from.

They have a schema object of their own: the migrations create them, nothing else does.
"""

from sqlalchemy import BigInteger, Column, MetaData, Table, Text

from headway.store.tables.work import execution_history
from headway.store.types import Instant

view_schema = MetaData()

# Only the manager asks for the first two, of the history alone; steps are read with one execution.
UNSEEN = frozenset({"final", "retry_at", "steps"})

executions = Table(
    "headway_executions",
    view_schema,
    *(
        Column(column.name, column.type)
        for column in execution_history.columns
        if column.name not in UNSEEN
    ),
)

work_queue_entries = Table(
    "headway_work_queue_entries",
    view_schema,
    Column("id", BigInteger),
    Column("manifest_id", BigInteger),
    Column("group_id", BigInteger),
    Column("workflow", Text),
    Column("source", Text),
    Column("status", Text),
    Column("priority", BigInteger),
    Column("created_at", Instant),
    Column("scheduled_at", Instant),
    Column("execution_id", BigInteger),
    Column("dispatched_at", Instant),
)
