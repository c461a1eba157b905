"""Celery's consumer, but back within seconds when its broker is."""

from functools import partial
from typing import Any

from celery.worker.consumer import Consumer as Celerys

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
