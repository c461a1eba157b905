"""Sessions that PostgreSQL has ended: whoever meets that tries again, like after any outage."""

from sqlalchemy import Engine, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import OperationalError

# Idle in a transaction for too long, or a transaction that took too long: this process was
# stopped in the middle. The driver files them with faults of the server itself.
ENDED = frozenset({"25P03", "25P04"})


def take_for_an_outage(engine: Engine) -> None:
    """Have *engine* say ``OperationalError`` where a session was ended, and drop that session."""

    @event.listens_for(engine, "handle_error")
    def say_so(context: ExceptionContext) -> OperationalError | None:
        error = context.original_exception
        if getattr(error, "sqlstate", None) not in ENDED:
            return None
        context.is_disconnect = True
        return OperationalError(context.statement, None, error)
