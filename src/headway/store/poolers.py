"""Poolers such as PgBouncer, which lend a session of PostgreSQL for one transaction at a time.

What a session remembers then belongs to nobody: a statement prepared in one transaction is missing
in the next, and a channel listened to is heard by strangers. Headway keeps everything else it needs
inside one transaction (locks, timeouts), so that these two are all it has to do without.
"""

import re
from typing import Any

from sqlalchemy import URL, Connection, Engine, event, text

from headway.errors import SettingsError
from headway.store.urls import shown

POOLED = "headway_pooled"
SEARCH_PATH = re.compile(r"(?:^|\s)(?:-c\s*|--)search[_-]path=((?:\\.|\S)+)")

# What poolers answer with, and what to change then.
ADVICE = {
    "unsupported startup parameter: options": (
        "take options out of database_url, and if it names a schema, say so to the database: "
        "ALTER ROLE user SET search_path = schema"
    ),
    "not allowed in statement pooling mode": "set pool_mode = transaction in the pooler",
}


def note_poolers(engine: Engine) -> None:
    """Have every new connection of *engine* know whether it leads to a pooler, and live with it.

    A pooler greets its clients itself, with a process id of its own making; PostgreSQL greets them
    with the id of the very process that answers.
    """

    @event.listens_for(engine, "connect")
    def look(driver: Any, record: Any) -> None:
        driver.autocommit = True
        answering = driver.execute("SELECT pg_backend_pid()").fetchone()[0]
        driver.autocommit = False
        record.info[POOLED] = answering != driver.info.backend_pid
        if record.info[POOLED]:
            driver.prepare_threshold = None


def is_pooled(connection: Connection) -> bool:
    """Whether *connection*, of an engine that notes it, leads to a pooler."""
    return bool(connection.info[POOLED])


def with_advice(refusal: str) -> str:
    """What a database or a pooler has refused, and what to change where that is known.

    >>> with_advice("transactions not allowed in statement pooling mode")
    'transactions not allowed in statement pooling mode; set pool_mode = transaction in the pooler'
    """
    known = (advice for answer, advice in ADVICE.items() if answer in refusal)
    return "; ".join([refusal, *known])


def check_schema_arrives(connection: Connection, url: URL) -> None:
    """Raise :class:`SettingsError` if *url* names a schema and the pooler has not passed it on."""
    wanted = schema_in(url)
    if wanted is None or not is_pooled(connection):
        return
    found = connection.execute(text("SELECT current_setting('search_path')")).scalar_one()
    if found != wanted:
        raise SettingsError(
            f"database_url = {shown(url)!r}: the pooler there does not pass on search_path = "
            f"{wanted!r}; take options out, and say so to the database: "
            f"ALTER ROLE user SET search_path = {wanted}"
        )


def schema_in(url: URL) -> str | None:
    r"""The search path that *url* asks for.

    >>> from sqlalchemy import make_url
    >>> schema_in(make_url("postgresql://db/app?options=-csearch_path%3Dmine%2C%5C%20public"))
    'mine, public'
    """
    found = SEARCH_PATH.findall(str(url.query.get("options", "")))
    return re.sub(r"\\(.)", r"\1", found[-1]) if found else None
