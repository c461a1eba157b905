"""Celery's consumer, but back within seconds when its broker is, and not ended by what it lost."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from celery.worker.consumer import Consumer as Celerys

logger = logging.getLogger("headway")

FIRST_PAUSE = 0.5
LONGER_BY = 0.5
LONGEST_PAUSE = 4.0


class Consumer(Celerys):  # type: ignore[misc] # Celery has no types
    """Asks for the broker every few seconds; Celery's own waits for up to half a minute."""

    def ensure_connected(self, conn: Any) -> Any:
        """Wait for the broker, with short pauses."""
        conn.ensure_connection = partial(
            conn.ensure_connection,
            interval_start=FIRST_PAUSE,
            interval_step=LONGER_BY,
            interval_max=LONGEST_PAUSE,
        )
        return super().ensure_connected(conn)

    def on_connection_error_after_connected(self, exc: BaseException) -> None:
        """Begin anew, however the lost connection takes its end.

        One to Redis whose messages cannot be given back raises what Celery does not expect, and
        its worker ends (kombu 5.7).
        """
        self.connection.close = partial(regardless, self.connection.close)
        super().on_connection_error_after_connected(exc)

    def create_task_handler(self, *arguments: Any, **options: Any) -> Callable[[Any], Any]:
        """Handle messages whose acknowledgement may come when their connection is long gone."""
        handle: Callable[[Any], Any] = super().create_task_handler(*arguments, **options)

        def on_task_received(message: Any) -> Any:
            lost = partial(self._has_lost, self.connection, message.channel)
            message.ack = partial(unless_lost, lost, message.ack)
            message.reject = partial(unless_lost, lost, message.reject)
            return handle(message)

        return on_task_received

    def _has_lost(self, connection: Any, channel: Any) -> bool:
        """A channel that could not be closed properly still looks open: its connection decides."""
        return connection is not self.connection or channel is None or channel.connection is None


def unless_lost(
    lost: Callable[[], bool], act: Callable[..., Any], *arguments: Any, **options: Any
) -> None:
    """Call *act*; when it fails on a connection that is *lost*, nobody waits for it any more.

    >>> unless_lost(lambda: True, [].pop)  # is logged
    >>> unless_lost(lambda: False, [].pop)
    Traceback (most recent call last):
    IndexError: pop from empty list
    """
    try:
        act(*arguments, **options)
    except Exception as error:
        if not lost():
            raise
        logger.info("a message of a lost connection could not be acknowledged: %r", error)


def regardless(close: Callable[[], Any]) -> None:
    """Close what is broken anyway."""
    try:
        close()
    except Exception as error:
        logger.info("a lost connection to the broker could not be closed: %r", error)
