"""A deployment for tests of the federation: a real store, and peers that answer as told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Table, insert

from headway.domain.azolla.artifacts import (
    ArtifactType,
    CaptureBuffer,
    Objective,
    ObjectiveStatus,
    ObjectiveType,
    PauseReason,
    PauseState,
    ResponseStatus,
    SubstrateQuery,
    SubstrateQueryResponse,
)
from headway.domain.azolla.filters import filter_of
from headway.domain.azolla.gate import BuildFailure
from headway.domain.azolla.ids import response_to, workorder_of
from headway.federation.builder import failed_bundle
from headway.federation.building import entry_for, install, record_judgement
from headway.federation.tick import Rules, WorkerEnv
from headway.federation.worker import ManifestSchedulerWorker
from headway.store import substrate, tables, workorders
from headway.store.artifact_rows import to_row
from headway.store.engine import Store
from tests.builders import Scene
from tests.store.factories import rows_of

OWN = "warehouse"
MOMENT = datetime(2030, 1, 7, 11, tzinfo=UTC)
RULES = Rules(
    lease=timedelta(seconds=30),
    max_attempts=3,
    query_budget=timedelta(seconds=20),
    manifest_budget=timedelta(seconds=60),
)

Reply = Callable[[SubstrateQuery], tuple[SubstrateQueryResponse, str | None]]


def response(
    query: SubstrateQuery, status: ResponseStatus = ResponseStatus.OK, *results: Any
) -> SubstrateQueryResponse:
    return SubstrateQueryResponse(
        response_id=response_to(query.query_id),
        query_id=query.query_id,
        target_azolla_id=query.target_azolla_id,
        status=status,
        results=tuple(one.model_dump(mode="json") for one in results),
        created_at=query.created_at,
    )


def refusing(status: ResponseStatus, note: str) -> Reply:
    return lambda query: (response(query, status), note)


def objective(azolla_id: str, objective_id: str = "standing", **changes: Any) -> Objective:
    fields: dict[str, Any] = {
        "title": f"keep {azolla_id} going",
        "acceptance_criteria": "",
        "objective_type": ObjectiveType.STANDING,
        "status": ObjectiveStatus.IN_PROGRESS,
        "importance": 1,
        "urgency": 1,
        "blocked_reason": None,
        "blocked_on": (),
        "metadata": {},
        "created_at": MOMENT,
        "updated_at": MOMENT,
    }
    return Objective(azolla_id=azolla_id, objective_id=objective_id, **fields | changes)


def pause(azolla_id: str, *actions: str, **changes: Any) -> PauseState:
    fields: dict[str, Any] = {
        "objective_id": "standing",
        "reason": PauseReason.GATE_FAILED,
        "created_at": datetime.now(UTC) - timedelta(hours=1),
    }
    return PauseState(azolla_id=azolla_id, prioritized_actions=actions, **fields | changes)


def answering(*artifacts: Any) -> Reply:
    """A peer that has these artifacts and shows those of the type it is asked for."""

    def reply(query: SubstrateQuery) -> tuple[SubstrateQueryResponse, None]:
        pauses = query.artifact_type is ArtifactType.PAUSE_STATE
        fitting = [one for one in artifacts if isinstance(one, PauseState) == pauses]
        return response(query, ResponseStatus.OK, *fitting), None

    return reply


class Azolla(Scene):
    """One deployment with its standing objective, and its peers."""

    def __init__(self, url: str, *, virtual_time: bool = False, **settings: Any) -> None:
        super().__init__(url, virtual_time=virtual_time, **settings)
        install(self.app)
        self.peers: dict[str, Reply] = {}
        self.asked: list[SubstrateQuery] = []
        self._listing = threading.Lock()
        self.keep(tables.objective, to_row(objective(OWN)))

    def __exit__(self, *failure: Any) -> None:
        self.app.runtime.store.close()
        super().__exit__(*failure)

    def keep(self, table: Table, *rows: dict[str, Any]) -> None:
        with self.store.writing() as tx:
            tx.connection.execute(insert(table), list(rows))

    def pause(self, pause_id: str, *actions: str, **changes: Any) -> None:
        self.keep(tables.pause_state, to_row(pause(OWN, *actions, **changes), pause_id=pause_id))

    def capture(self, capture_id: str) -> None:
        note = CaptureBuffer(
            capture_id=capture_id,
            azolla_id=OWN,
            raw_content="look at the invoices",
            source_label="phone",
            created_at=MOMENT,
            updated_at=MOMENT,
        )
        self.keep(tables.capture_buffer, to_row(note))

    def ask(self, query: SubstrateQuery) -> tuple[SubstrateQueryResponse, str | None]:
        with self._listing:
            self.asked.append(query)
        if query.target_azolla_id == OWN:
            with self.store.reading() as tx:
                found = substrate.read(tx, filter_of(query.artifact_type, query.filter))
            return response(query, ResponseStatus.OK, *found), None
        return self.peers[query.target_azolla_id](query)

    def env(self, owner: str = "me", store: Store | None = None, **changes: Any) -> WorkerEnv:
        fields: dict[str, Any] = {
            "store": store or self.store,
            "observer": self.app.observer,
            "owner": owner,
            "azolla_id": OWN,
            "azollas": (OWN, *self.peers),
            "ask": self.ask,
            "rules": RULES,
            "entry_of": entry_for,
        }
        return WorkerEnv(**fields | changes)

    def worker(self, owner: str = "me", **changes: Any) -> ManifestSchedulerWorker:
        return ManifestSchedulerWorker(self.env(owner, **changes))

    def request(self) -> str:
        return self.app.request_manifest()

    def execute(self) -> None:
        """Dispatch and run what is queued."""
        self.dispatch()
        self.run()

    def end_order(self, event_id: str) -> None:
        """Have the workorder of an event executed without a page, at the test's own time."""
        with self.store.writing() as tx:
            order = workorders.find(tx, workorder_of(event_id))
            assert order is not None
            snapshot = workorders.find_snapshot(tx, order.context_snapshot_id)
            assert snapshot is not None
            bundle = failed_bundle(order, BuildFailure.ERROR, "told to", tx.now)
            record_judgement(tx, order, snapshot, workorders.execute(tx, order, bundle))

    def rows(self, table: Table) -> list[dict[str, Any]]:
        return rows_of(self.store, table)

    def only(self, table: Table) -> dict[str, Any]:
        [row] = self.rows(table)
        return row
