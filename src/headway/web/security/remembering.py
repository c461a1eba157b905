"""What every web process knows of sessions that were ended and of wrong tries: in the database."""

from datetime import UTC, datetime, timedelta

from fastapi import Request

from headway.domain.actions import Action
from headway.store import audit, logouts, wrong_tries
from headway.web.context import surface
from headway.web.security.sessions import Session

MINUTE = timedelta(minutes=1)


def end_session(request: Request, session: Session, address: str) -> None:
    """Have no process take *session* any more, and note that somebody has logged out.

    >>> end_session(request, session, "192.0.2.1")  # doctest: +SKIP
    """
    with surface(request).store.writing() as tx:
        logouts.end(tx, session.id, datetime.fromtimestamp(session.until, UTC))
        audit.note(tx, session.name, Action.LOG_OUT, "dashboard", {"address": address})


def has_ended(request: Request, session: Session) -> bool:
    """Whether somebody has ended *session*, by whichever process.

    >>> has_ended(request, session)  # doctest: +SKIP
    False
    """
    with surface(request).store.unclocked() as tx:
        return logouts.has_ended(tx, session.id)


def count_wrong(request: Request, address: str) -> None:
    """Count a wrong try of *address*.

    >>> count_wrong(request, "192.0.2.1")  # doctest: +SKIP
    """
    with surface(request).store.writing() as tx:
        wrong_tries.count(tx, address)


def seconds_to_wait(request: Request, address: str, most: int) -> int:
    """How long *address* has to wait, if it was wrong *most* times in this minute.

    >>> seconds_to_wait(request, "192.0.2.1", most=10)  # doctest: +SKIP
    0
    """
    with surface(request).store.reading() as tx:
        if wrong_tries.counted(tx, address) < most:
            return 0
        left = wrong_tries.minute_of(tx.now) + MINUTE - tx.now
    return max(1, round(left.total_seconds()))
