"""Executions on Celery workers; needs the extra ``headway-scheduler[celery]``."""

from typing import Any

from headway.domain.text import shown
from headway.errors import DefinitionError
from headway.extras import require

require("celery")

from celery import Celery  # noqa: E402 - what is missing is said first

TASK = "headway.run"
"""The name of the one task that all executions are delivered to."""

# Whatever the broker does not answer within this many seconds counts as unanswered.
PATIENCE = 5.0

# By the protocol a broker speaks: what makes a publisher wait for its answer, but not for ever.
CAREFULLY: dict[str, dict[str, Any]] = {
    "amqp": {"confirm_publish": True, "read_timeout": PATIENCE, "write_timeout": PATIENCE},
    "redis": {"socket_timeout": PATIENCE, "socket_connect_timeout": PATIENCE},
}


class CeleryServer:
    """Sends executions to the workers of a Celery application, as messages with nothing but an id.

    *queue*, *exchange*, *routing_key* and *priority* are Celery's own. Add several for several:
    workflows and groups say what goes to which.

    >>> from headway import Headway
    >>> hw = Headway()
    >>> app = Celery("warehouse", broker="redis://localhost:6379/0")
    >>> hw.task_servers.add("celery", CeleryServer(app), default=True)
    >>> urgent = CeleryServer(app, queue="urgent", priority=9)
    >>> hw.task_servers.add("celery-urgent", urgent, groups=["payments"])
    >>> hw.task_servers.routing.server_of("pay", "payments")
    'celery-urgent'
    """

    def __init__(
        self,
        app: Celery,
        *,
        queue: str | None = None,
        exchange: str | None = None,
        routing_key: str | None = None,
        priority: int | None = None,
    ) -> None:
        if not isinstance(app, Celery):
            raise DefinitionError(
                f"CeleryServer({shown(app)}): takes your Celery application; for example "
                "CeleryServer(Celery('warehouse', broker='redis://localhost'))"
            )
        if priority is not None and (not isinstance(priority, int) or not 0 <= priority <= 255):
            raise DefinitionError(
                f"CeleryServer: priority = {shown(priority)}: must be a whole number from 0 to 255 "
                "as your broker understands it; for example priority=9"
            )
        wishes = {"exchange": exchange, "routing_key": routing_key, "priority": priority}
        self._app = app
        self._options = {name: value for name, value in wishes.items() if value is not None}
        if queue is not None:
            self._options["queue"] = queue
        self._connection: Any = None
        self._producer: Any = None

    def publish(self, execution_id: int) -> None:
        """Send the message, and return once the broker has it."""
        try:
            self._connect()
            self._app.send_task(
                TASK,
                args=[execution_id],
                task_id=f"headway-{execution_id}",
                serializer="json",
                compression=None,
                ignore_result=True,
                retry=False,
                producer=self._producer,
                **self._options,
            )
        except BaseException:
            self._disconnect()
            raise

    def reach(self) -> None:
        """Raise unless the broker answers."""
        self._disconnect()
        self._connect()

    def close(self) -> None:
        """Let go of the connection to the broker; the next message opens another."""
        self._disconnect()

    def _connect(self) -> None:
        if self._producer is not None:
            return
        connection = self._app.connection_for_write(connect_timeout=PATIENCE)
        connection.transport_options.update(CAREFULLY.get(connection.transport.driver_type, {}))
        try:
            connection.connect()
            self._producer = self._app.amqp.Producer(connection, auto_declare=False)
        except BaseException:
            connection.release()
            raise
        self._connection = connection

    def _disconnect(self) -> None:
        connection, self._connection, self._producer = self._connection, None, None
        if connection is not None:
            connection.release()
