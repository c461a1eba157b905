"""Sessions on a PostgreSQL server: counted, and ended."""

from sqlalchemy import text

from headway.store.transaction import Transaction

_OTHERS = """
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


def count_others(tx: Transaction) -> int:
    """How many sessions there are on this database besides this one."""
    return int(tx.connection.execute(text(f"SELECT count(*) {_OTHERS}")).scalar_one())


def end_any(tx: Transaction) -> bool:
    """End one of the others, whichever; whether there was one."""
    chosen = text(f"SELECT pg_terminate_backend(pid) {_OTHERS} ORDER BY random() LIMIT 1")
    return bool(tx.connection.execute(chosen).scalar())
