"""Small facts about the deployment as a whole that have to outlive its processes."""

from sqlalchemy import insert, select, update

from headway.store.tables import mark
from headway.store.transaction import Transaction


def read_mark(tx: Transaction, name: str) -> str | None:
    """The value last written under *name*, if there is one."""
    statement = select(mark.c.value).where(mark.c.name == name)
    return tx.connection.execute(statement).scalar_one_or_none()


def write_mark(tx: Transaction, name: str, value: str) -> None:
    """Remember *value* under *name*."""
    statement = update(mark).where(mark.c.name == name).values(value=value)
    if not tx.connection.execute(statement).rowcount:
        tx.connection.execute(insert(mark).values(name=name, value=value))
