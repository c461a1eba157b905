"""Errors of PostgreSQL after which a session is of no more use, though the driver does not say so.

A session that was ended, and one on a server that takes no writes: the attempt is repeated on a new
connection, as after any outage.
"""

from sqlalchemy import Engine, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import OperationalError

from headway.store.outages import READ_ONLY

# Idle in a transaction for too long, or a transaction that took too long: this process was
# stopped in the middle. The driver files them with faults of the server itself.
# And read-only: after a failover a new connection may lead to the new primary.
ENDED = frozenset({"25P03", "25P04", READ_ONLY})


def take_for_an_outage(engine: Engine) -> None:
    """Have *engine* say ``OperationalError`` where a session is of no more use, and drop it."""

    @event.listens_for(engine, "handle_error")
    def say_so(context: ExceptionContext) -> OperationalError | None:
        error = context.original_exception
        if getattr(error, "sqlstate", None) not in ENDED:
            return None
        context.is_disconnect = True
        return OperationalError(context.statement, None, error)
