"""Locks of PostgreSQL that end with their transaction; SQLite has one writer and needs none."""

from enum import IntEnum
from functools import cache

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Connection,
    Text,
    TextualSelect,
    literal_column,
    text,
)

from headway.store.tables import work_queue
from headway.store.transaction import Transaction
from headway.store.types import Instant


class Lock(IntEnum):
    """What only one server does at a time; the number is part of the lock's key."""

    MIGRATE = 1
    APPLY = 2
    MANAGE = 3
    DISPATCH = 4
    SWEEP = 5


# The queue is full at one moment and empty at the next. A planner that goes by what it last counted
# reads all of it for every manifest there is: whatever is looked for has an index.
BY_INDEX = {"enable_seqscan": "off", "jit": "off"}

# And the order is in the index as well: one plan for any values is as good as another for these.
IN_ORDER = {**BY_INDEX, "enable_sort": "off", "plan_cache_mode": "force_generic_plan"}

# A cycle takes milliseconds. Whoever waits longer looks again whether its holder has been stopped.
A_MOMENT = "1s"

PLANNED = {Lock.MANAGE: BY_INDEX, Lock.SWEEP: BY_INDEX, Lock.DISPATCH: IN_ORDER}


def hold(tx: Transaction, lock: Lock) -> None:
    """Hold *lock* until the transaction ends, waiting for whoever has it.

    By the schema the tables are in, for a caller's connection may look in several. SQLite has one
    writer at a time and needs no other lock.
    """
    if tx.on_postgresql:
        statement = text(
            "SELECT pg_advisory_xact_lock((CAST(:lock AS bigint) << 32) + CAST(relnamespace AS "
            "bigint)) FROM pg_class WHERE oid = CAST(:table AS regclass)"
        )
        tx.connection.execute(statement, {"lock": int(lock), "table": work_queue.name})


def limits_transactions(connection: Connection) -> bool:
    """Whether this PostgreSQL has a timeout of whole transactions: it came with 17."""
    version = connection.dialect.server_version_info or (0,)
    return int(version[0]) >= 17


def settings_under(
    lock: Lock, seconds: int, patience: int, whole_transactions: bool
) -> dict[str, str]:
    """What holds in a transaction under *lock*: when it is ended, and how it is planned."""
    limits = {
        "statement_timeout": f"{seconds}s",
        "lock_timeout": f"{patience}s",
        "idle_in_transaction_session_timeout": f"{seconds}s",
    }
    if whole_transactions:
        limits["transaction_timeout"] = f"{seconds * 4}s"
    return limits | PLANNED.get(lock, {})


def settle(connection: Connection, lock: Lock, seconds: int, patience: int) -> None:
    """Have it hold in every transaction of *connection*, which leads to no pooler and is ours."""
    limits = settings_under(lock, seconds, patience, limits_transactions(connection))
    settings = (f"set_config('{name}', '{limit}', false)" for name, limit in limits.items())
    connection.execute(text("SELECT " + ", ".join(settings)))


KEY = "(CAST(:lock AS bigint) << 32) + CAST(current_schema()::regnamespace::oid AS bigint)"


@cache
def lock_statement(
    lock: Lock, seconds: int, patience: int, whole_transactions: bool, wait: bool
) -> TextualSelect:
    """Takes *lock*, with the settings of its transaction; with *wait*, in a moment perhaps."""
    limits = settings_under(lock, seconds, patience, whole_transactions)
    settings = (f", set_config('{name}', '{limit}', true)" for name, limit in limits.items())
    taking = f"pg_try_advisory_xact_lock({KEY}) AS taken"
    if wait:
        brief = f"set_config('lock_timeout', '{A_MOMENT}', true)"
        taking = f"{brief}, pg_advisory_xact_lock({KEY}), true AS taken"
    statement = text(f"SELECT {taking}, clock_timestamp() AS now" + "".join(settings))
    return statement.columns(taken=Boolean, now=Instant)


# Whether a transaction has its lock, for a statement that is sent before that is known here.
LEADS = "headway.leads"
IS_LEADING: ColumnElement[bool] = literal_column(f"current_setting('{LEADS}') = 'true'", Boolean)
TAKE_AND_NOTE = text(
    f"SELECT set_config('{LEADS}', CAST(pg_try_advisory_xact_lock({KEY}) AS text), true) AS noted"
).columns(noted=Text)


def end_stuck_holder(connection: Connection, lock: Lock, seconds: int) -> None:
    """End the session that holds *lock* if its statement has outlived its own timeouts.

    None of them reaches a session that waits to send rows to a client that was stopped: it would
    hold the lock until that client wakes up.
    """
    statement = text(
        "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)"
        " WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND classid = :lock"
        " AND objid = current_schema()::regnamespace AND datname = current_database()"
        " AND usename = current_user AND state = 'active'"
        " AND query_start < clock_timestamp() - make_interval(secs => :seconds)"
    )
    connection.execute(statement, {"lock": int(lock), "seconds": seconds})
