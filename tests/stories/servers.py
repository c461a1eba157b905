"""Servers that are nothing but their lease rows: they live and die as a test says."""

from __future__ import annotations

from datetime import timedelta

from headway.domain.execution import Execution, ExecutionState, Outcome
from headway.lease import BEATS_PER_LEASE
from headway.orphans import OrphanSweep, Swept
from headway.runner.recording import Recording
from headway.store import executions, leases
from headway.store.servers import ServerProcess
from tests.builders import Scene

LEASE = timedelta(seconds=15)
MAX_CRASHES = 3
COMPLETED = Outcome(ExecutionState.COMPLETED)


class Server:
    """One that claims, finishes, renews and sweeps by the verbs a real one uses."""

    def __init__(self, scene: Scene, server_id: str, lease: timedelta = LEASE) -> None:
        self.id = server_id
        self.lease = lease
        self._scene = scene
        with scene.store.writing() as tx:
            row = ServerProcess(server_id, "host", 1, ["worker"], ["work"], 4)
            leases.register(tx, row, lease)

    def claim(self, limit: int = 100) -> list[Execution]:
        """What it starts of all that is pending."""
        with self._scene.store.writing() as tx:
            assert leases.hold(tx, self.id)
            return executions.claim_pending(tx, self.id, limit, ["work"])

    def finish(self, *runs: Execution) -> set[int]:
        """Say that these have completed; returns those it was believed."""
        record = Recording(self._scene.store, self.id, self._scene.app.observer)
        return record({one.id: COMPLETED for one in runs})

    def renew(self) -> bool:
        with self._scene.store.writing() as tx:
            return leases.renew(tx, self.id, self.lease)

    def live_through(self, count: int = 1) -> None:
        """Renew on time for so many leases, in which all who do not are dead."""
        for _ in range(count * BEATS_PER_LEASE):
            self._scene.clock.advance(seconds=(self.lease / BEATS_PER_LEASE).total_seconds())
            assert self.renew()

    def sweep(self, max_crashes: int = MAX_CRASHES) -> Swept:
        sweep = OrphanSweep(self._scene.store, self, max_crashes, self._scene.app.observer)
        return sweep.run_once()
