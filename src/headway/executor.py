"""Running what a task server delivers: the other side of ``hw.task_servers``."""

import time
from collections.abc import Collection
from contextlib import ExitStack
from typing import Self

from headway.definition import isolated_steps
from headway.definition.app import Headway
from headway.domain.execution import ExecutionState
from headway.domain.lease_time import LeaseTime
from headway.domain.text import shown
from headway.errors import HeadwayError
from headway.federation.building import install
from headway.lease import LeaseKeeper, lease_of, this_process
from headway.observe import told
from headway.runner.deliveries import Deliveries, NotLeased
from headway.store import notifications
from headway.store.durability import check_durability
from headway.store.engine import Store
from headway.store.migrate import prepare
from headway.store.servers import EXECUTOR
from headway.wakeups import Announcer, Role, concerned

__all__ = ["Executor"]

LEASE_PAUSE = 0.2


class Executor:
    """Runs executions by their ids, under a lease of its own: open it once in each process.

    The first that is delivered an execution runs it; a delivery that comes twice, too late or with
    an id made up does nothing. When the process is killed, its executions start again elsewhere
    like those of any worker.

    >>> from headway import Headway
    >>> hw = Headway()
    >>> with Executor(hw) as executor:
    ...     print(executor.run(7))  # there is no such execution
    None
    """

    def __init__(self, app: Headway, *, but: Collection[str] = ()) -> None:
        """Run all workflows of *app* *but* those named: these go back to the queue."""
        if not isinstance(app, Headway):
            raise HeadwayError(f"Executor({shown(app)}): takes your Headway, as in Executor(hw)")
        install(app)
        self.app = app
        self._but = frozenset(but)
        self._deliveries: Deliveries | None = None
        self._patience = 0.0
        self._lease_time = LeaseTime()
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as closing:
            store = self.app.open_store()
            closing.callback(store.close)
            prepare(store)
            if not self.app.settings.allow_lost_commits:
                check_durability(store)
            isolated_steps.warn(self.app.registry, self._takes(), self.app.observer)
            announcer = self._announcer(store)
            announcer.start()
            closing.callback(announcer.stop)
            keeper = self._keeper(store)
            keeper.start()
            closing.callback(keeper.stop)
            self._patience = keeper.lease.total_seconds()
            self._deliveries = self._pool(store, keeper.id, announcer)
            self._deliveries.start()
            closing.callback(self._deliveries.stop)
            self._closing = closing.pop_all()
        return self

    def __exit__(self, *failure: object) -> None:
        """Finish what runs, or hand it back after ``shutdown_timeout``."""
        self._closing.close()
        self._deliveries = None

    def run(self, execution_id: int) -> ExecutionState | None:
        """Run the execution with this id to its end, in threads of the executor's.

        Returns how it ended, or None if it was not waiting for another task server any more: it
        has been run before, or taken back. Call it from as many threads as shall run at once.
        """
        if self._deliveries is None:
            raise HeadwayError("an executor is open inside its with only: with Executor(hw) as ...")
        if not isinstance(execution_id, int) or isinstance(execution_id, bool):
            raise HeadwayError(
                f"execution_id = {shown(execution_id)}: must be a whole number as submit() gets "
                "them; for example executor.run(7)"
            )
        return self._patiently(self._deliveries, execution_id)

    def _patiently(self, deliveries: Deliveries, execution_id: int) -> ExecutionState | None:
        """One whose lease was lost comes back under a new name within a few moments."""
        give_up = time.monotonic() + self._patience
        while True:
            try:
                return deliveries.run(execution_id)
            except NotLeased:
                if time.monotonic() > give_up:
                    raise
                time.sleep(LEASE_PAUSE)

    def _announcer(self, store: Store) -> Announcer:
        def announce(roles: Collection[Role]) -> None:
            try:
                if store.on_postgresql:
                    notifications.notify(store, roles)
            except Exception as error:
                # A lost hint costs one polling interval.
                self.app.observer.emit("loop.failed", loop="notify", error=told(error))

        return Announcer(announce)

    def _keeper(self, store: Store) -> LeaseKeeper:
        app = self.app
        return LeaseKeeper(
            store,
            lease_of(store, app.settings.server_lease),
            app.observer,
            lambda own_id: this_process(
                own_id, [EXECUTOR], self._takes(), 0, app.task_servers.routing
            ),
            running=lambda: self._deliveries.running() if self._deliveries else [],
            on_lost=self._change_owner,
            on_cut_off=lambda: self._deliveries.cancellations.cut_off() if self._deliveries else [],
            time_left=self._lease_time,
        )

    def _change_owner(self, own_id: str) -> None:
        if self._deliveries is not None:
            self._deliveries.change_owner(own_id)

    def _pool(self, store: Store, owner: str, announcer: Announcer) -> Deliveries:
        app = self.app
        return Deliveries(
            store,
            app.registry,
            app.settings,
            app.observer,
            owner,
            on_finished=lambda of_manifests: announcer(concerned(of_manifests)),
            takes=self._takes(),
            lease_time=self._lease_time,
        )

    def _takes(self) -> list[str]:
        return [name for name in self.app.registry.names() if name not in self._but]
