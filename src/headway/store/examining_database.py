"""How the database itself is: its indexes, its settings, and who keeps it from cleaning up.

PostgreSQL tells most of this; SQLite has one writer, no vacuum to block and few settings.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Index, inspect, text
from sqlalchemy.exc import DBAPIError, InternalError, ProgrammingError

from headway.store.tables import schema
from headway.store.tables.views import view_schema
from headway.store.transaction import Transaction

# A table that this user may not read, say: one check fails, not all.
NOT_ANSWERED = (ProgrammingError, InternalError)

OLD = timedelta(minutes=5)
# A cluster stops at two billion; autovacuum begins to hurry at a tenth of that.
TRANSACTIONS = 1_000_000_000
DEAD_ROWS = 100_000
DEAD_PER_LIVING = 10

SNAPSHOTS = text(
    "SELECT pid, usename, application_name, state, xact_start FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start < :before"
    " AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL OR state LIKE 'idle in%')"
    " ORDER BY xact_start"
)
PREPARED = text(
    "SELECT gid, owner, prepared FROM pg_prepared_xacts"
    " WHERE database = current_database() AND prepared < :before ORDER BY prepared"
)
SLOTS = text(
    "SELECT slot_name, slot_type FROM pg_replication_slots"
    " WHERE NOT active AND (xmin IS NOT NULL OR catalog_xmin IS NOT NULL"
    " OR restart_lsn IS NOT NULL) ORDER BY slot_name"
)
AGE = text("SELECT age(datfrozenxid) FROM pg_database WHERE datname = current_database()")
DEAD = text(
    "SELECT relname, n_dead_tup, n_live_tup FROM pg_stat_user_tables"
    " WHERE schemaname = current_schema() AND relname LIKE 'headway\\_%'"
    " AND n_dead_tup > :dead AND n_dead_tup > :ratio * n_live_tup ORDER BY relname"
)
UNSAFE = text(
    "SELECT name, setting FROM pg_settings WHERE setting = 'off'"
    " AND name IN ('fsync', 'full_page_writes', 'synchronous_commit') ORDER BY name"
)
NO_VACUUM = text(
    "SELECT 'autovacuum' AS name FROM pg_settings WHERE name = 'autovacuum' AND setting = 'off'"
    " UNION ALL SELECT relname || ': autovacuum_enabled' FROM pg_class"
    " WHERE relnamespace = current_schema()::regnamespace AND relname LIKE 'headway\\_%'"
    " AND reloptions::text LIKE '%autovacuum_enabled=false%'"
)
READ_ONLY = text(
    "SELECT 'the server is a standby' AS reason WHERE pg_is_in_recovery() UNION ALL"
    " SELECT 'default_transaction_read_only is on'"
    " WHERE current_setting('default_transaction_read_only') = 'on'"
)
PRIVILEGES = text("SELECT rolname FROM pg_roles WHERE rolname = current_user AND rolsuper")
CLOCK = text("SELECT clock_timestamp()")
INVALID = text(
    "SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid"
    " WHERE relnamespace = current_schema()::regnamespace AND NOT (indisvalid AND indisready)"
)


def missing_tables(tx: Transaction) -> list[str]:
    """Tables and views that belong to the schema and are not there."""
    looking = inspect(tx.connection)
    there = {*looking.get_table_names(), *looking.get_view_names()}
    needed = {*schema.tables, *view_schema.tables}
    return [f"{name} is missing" for name in sorted(needed - there)]


def old_snapshots(tx: Transaction) -> list[str]:
    """Sessions whose transaction has been open so long that nothing behind it is cleaned up."""
    return [
        f"pid {row.pid} ({row.application_name or 'no name'}, user {row.usename}): {row.state}"
        f" for {_minutes(tx, row.xact_start)}"
        for row in _rows(tx, SNAPSHOTS, before=_now(tx) - OLD)
    ]


def prepared_transactions(tx: Transaction) -> list[str]:
    """Transactions that were prepared and neither committed nor rolled back since."""
    return [
        f"{row.gid!r} of {row.owner}, prepared for {_minutes(tx, row.prepared)}"
        for row in _rows(tx, PREPARED, before=_now(tx) - OLD)
    ]


def idle_slots(tx: Transaction) -> list[str]:
    """Replication slots nobody reads, for which the server keeps what it could throw away."""
    return [f"slot {row.slot_name} ({row.slot_type})" for row in _rows(tx, SLOTS)]


def transaction_age(tx: Transaction) -> list[str]:
    """How many transactions old the oldest unfrozen row is, if that is too many."""
    ages = [int(row[0]) for row in _rows(tx, AGE)]
    return [f"age(datfrozenxid) is {age:,}" for age in ages if age > TRANSACTIONS]


def dead_rows(tx: Transaction) -> list[str]:
    """Tables with far more dead rows than living ones."""
    found = _rows(tx, DEAD, dead=DEAD_ROWS, ratio=DEAD_PER_LIVING)
    return [f"{row.relname}: {row.n_dead_tup:,} dead, {row.n_live_tup:,} living" for row in found]


def vacuum_switched_off(tx: Transaction) -> list[str]:
    """Where autovacuum is switched off: everywhere, or for one of headway's tables."""
    return [f"{row.name} is off" for row in _rows(tx, NO_VACUUM)]


def unsafe_settings(tx: Transaction) -> list[str]:
    """Settings with which a commit that was acknowledged may be lost."""
    if tx.on_postgresql:
        return [f"{row.name} = {row.setting}" for row in _rows(tx, UNSAFE)]
    found = tx.connection.execute(text("PRAGMA synchronous")).scalar_one()
    return [] if found >= 2 else [f"PRAGMA synchronous = {found}"]


def read_only(tx: Transaction) -> list[str]:
    """Why PostgreSQL takes no writes, if it takes none."""
    return [str(row.reason) for row in _rows(tx, READ_ONLY)]


def superuser(tx: Transaction) -> list[str]:
    """The user headway connects as, if that user may do everything."""
    return [f"user {row.rolname} is a superuser" for row in _rows(tx, PRIVILEGES)]


def clock_of(tx: Transaction) -> datetime:
    """What the database's clock says at this moment."""
    if not tx.on_postgresql:
        return datetime.now(UTC)  # it is this machine's
    moment: datetime = tx.connection.execute(CLOCK).scalar_one()
    return moment


def dangling_references(tx: Transaction) -> list[str]:
    """Rows that refer to rows which do not exist; only SQLite lets a person write such."""
    if tx.on_postgresql:
        return []
    found = tx.connection.execute(text("PRAGMA foreign_key_check")).all()
    ours = (row for row in found if str(row[0]).startswith("headway_"))
    return [f"{row[0]} row {row[1]} refers to a row of {row[2]} that is gone" for row in ours]


def broken_indexes(tx: Transaction) -> list[str]:
    """Indexes of the schema that are missing, or that the database does not use."""
    return [f"index {index.name} {why}" for index, why in _broken(tx)]


def rebuild_indexes(tx: Transaction) -> int:
    """Create them anew, each on its own account: one that rows contradict is left."""
    built = 0
    if tx.on_postgresql:
        tx.connection.execute(text("SELECT set_config('lock_timeout', '5s', true)"))
    for index, _ in list(_broken(tx)):
        try:
            with tx.connection.begin_nested():
                index.drop(tx.connection, checkfirst=True)
                index.create(tx.connection)
            built += 1
        except DBAPIError as error:
            if error.connection_invalidated:
                raise
    return built


def _broken(tx: Transaction) -> Iterator[tuple[Index, str]]:
    looking = inspect(tx.connection)
    invalid = {row.relname for row in _rows(tx, INVALID)}
    for table in schema.sorted_tables:
        found = {one["name"]: bool(one["unique"]) for one in looking.get_indexes(table.name)}
        for index in sorted(table.indexes, key=lambda one: str(one.name)):
            if index.info.get("only", tx.connection.dialect.name) != tx.connection.dialect.name:
                continue
            if index.name not in found:
                yield index, "is missing"
            elif index.name in invalid:
                yield index, "is invalid"
            elif found[index.name] != bool(index.unique):
                yield index, "is not unique"


def _rows(tx: Transaction, statement: Any, **values: Any) -> list[Any]:
    """What PostgreSQL answers; SQLite has nothing of the kind."""
    return list(tx.connection.execute(statement, values)) if tx.on_postgresql else []


def _now(tx: Transaction) -> datetime:
    """The server's own clock, also under a clock of a test: sessions are dated by it."""
    return clock_of(tx)


def _minutes(tx: Transaction, since: datetime) -> str:
    return f"{(_now(tx) - since).total_seconds() / 60:.0f} minutes"


def first_line(error: BaseException) -> str:
    """What the database itself said, without the statement it said it about.

    >>> first_line(ValueError("no such thing"))
    'no such thing'
    """
    cause = getattr(error, "orig", None) or error
    return (str(cause).strip().splitlines() or [type(cause).__name__])[0]
