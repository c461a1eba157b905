"""Saying why something is not running, as a call of the application."""

from headway.config import Settings
from headway.definition.explaining import Explaining
from headway.definition.requests import Requests
from headway.definition.task_servers import TaskServers
from headway.domain.gates import Why


class Answering(Requests):
    """The part of an application that says why."""

    settings: Settings
    task_servers: TaskServers

    def why(
        self,
        external_id: str | None = None,
        *,
        execution: int | None = None,
        entry: int | None = None,
    ) -> Why:
        """Say why a manifest, an execution or an entry is not running, and when it can.

        The answer is one sentence; its ``gates`` are all that manager and dispatcher ask, each
        passed or not, asked of the same functions. Nothing is written.

        >>> print(hw.why("load-users"))  # doctest: +SKIP
        load-users does not run because it waits for the next success of 'extract'; it can then
        >>> hw.why(execution=17).gates, hw.why(entry=7).gates  # doctest: +SKIP
        """
        return self._explaining.why(external_id, execution=execution, entry=entry)

    @property
    def _explaining(self) -> Explaining:
        return Explaining(self.runtime.store, self.settings, self.task_servers)
