"""Executing a workorder: an ordinary workflow that goes through queue, dispatcher and runner.

Claim the workorder, load the snapshot, build the page, keep the bundle, judge it. Each write is
fenced by the claim, and each step may be repeated: an executed workorder is not built again, and a
judged one is left alone.
"""

from dataclasses import dataclass, replace

from pydantic import BaseModel

from headway.definition.app import Headway
from headway.definition.requests import REQUEST_MANIFEST
from headway.domain.azolla import ids
from headway.domain.azolla.artifacts import (
    ClaimRecord,
    ContextSnapshot,
    GateResult,
    OutputBundle,
    PauseState,
    ResourceType,
    RunRecord,
    SessionManifest,
    Workorder,
    WorkorderStatus,
)
from headway.domain.azolla.context import parse_prompt
from headway.domain.azolla.gate import BuildFailure, answered_by, judge, orientation_of
from headway.domain.azolla.page import summary_of
from headway.domain.work_queue import NewEntry, Source
from headway.federation.budget import BudgetExhausted, within
from headway.federation.builder import build as own_builder
from headway.federation.builder import bundle_of, failed_bundle
from headway.observe import told
from headway.run import DoNotRetry, RetryAfter, Run
from headway.store import claims, workorders
from headway.store.engine import Store
from headway.store.transaction import Transaction

WORKFLOW = "headway.manifest-builder"
ATTEMPTS = 10
RENEWALS_PER_LEASE = 3


class BuildOrder(BaseModel):
    """Which workorder is to be executed."""

    work_order_id: str


@dataclass(frozen=True)
class Building:
    """A workorder on its way; one that somebody has judged has no claim, and passes through."""

    order: Workorder
    claim: ClaimRecord | None = None
    snapshot: ContextSnapshot | None = None
    bundle: OutputBundle | None = None


def entry_for(order: Workorder) -> NewEntry:
    """The queue entry that has *order* executed."""
    written = BuildOrder(work_order_id=order.work_order_id).model_dump_json()
    kind = BuildOrder.__name__
    return NewEntry(WORKFLOW, Source.AD_HOC, written, kind, max_attempts=ATTEMPTS)


class ManifestBuilding:
    """The steps, for one application: its store, its settings, and its builder if it has one."""

    def __init__(self, app: Headway) -> None:
        self._app = app
        self._lease = app.settings.azolla_claim_lease

    @property
    def _store(self) -> Store:
        return self._app.runtime.store

    def claim_workorder(self, wanted: BuildOrder, run: Run) -> Building:
        """Whoever else holds it may be paused: this run comes again when their lease is over."""
        with self._store.writing() as tx:
            order = workorders.find(tx, wanted.work_order_id)
            if order is None:
                raise DoNotRetry(f"there is no workorder {wanted.work_order_id!r}")
            if workorders.find_run(tx, order.work_order_id) is not None:
                return Building(order)
            owner = f"execution-{run.execution_id}"
            claim = claims.acquire(
                tx, ResourceType.WORKORDER, order.work_order_id, owner, self._lease
            )
        if claim is None:
            raise RetryAfter(self._lease, f"somebody else executes {order.work_order_id}")
        return Building(order, claim)

    def load_snapshot(self, building: Building) -> Building:
        """All the builder gets."""
        with self._store.reading() as tx:
            found = workorders.find_snapshot(tx, building.order.context_snapshot_id)
            made = workorders.find_output(tx, building.order.work_order_id)
        return replace(building, snapshot=found, bundle=made)

    def build_manifest(self, building: Building) -> Building:
        """Within the budget; what goes wrong is told in a bundle, for a person to look at."""
        order, claim, snapshot = building.order, building.claim, building.snapshot
        if claim is None or snapshot is None or order.status is WorkorderStatus.EXECUTED:
            return building
        held, build = claim, self._app.manifest_builder or own_builder

        def renew() -> None:
            nonlocal held
            with self._store.writing() as tx:
                held = claims.renew(tx, held, self._lease)

        pause = self._lease.total_seconds() / RENEWALS_PER_LEASE
        try:
            returned = within(order.budget_ms / 1000, lambda: build(snapshot), pause, renew)
            bundle = bundle_of(order, snapshot, returned, order.created_at)
        except claims.ClaimLost:
            raise
        except BudgetExhausted as error:
            bundle = failed_bundle(order, BuildFailure.BUDGET, str(error), order.created_at)
        except (Exception, SystemExit) as error:
            bundle = failed_bundle(order, BuildFailure.ERROR, told(error), order.created_at)
        return replace(building, claim=held, bundle=bundle)

    def keep_bundle(self, building: Building) -> Building:
        """From now on the workorder is executed, whatever the gate thinks of it."""
        if building.claim is None or building.bundle is None:
            return building
        with self._store.writing() as tx:
            claims.fence(tx, building.claim)
            now = building.bundle.model_copy(update={"created_at": tx.now})
            return replace(building, bundle=workorders.execute(tx, building.order, now))

    def judge_bundle(self, building: Building) -> str:
        """The gate; then let go of the workorder."""
        if building.claim is None or building.bundle is None or building.snapshot is None:
            return "judged before"
        with self._store.writing() as tx:
            claims.fence(tx, building.claim)
            record = record_judgement(tx, building.order, building.snapshot, building.bundle)
            claims.release(tx, building.claim)
        return f"{record.gate_result}: {record.gate_reason}"


def record_judgement(
    tx: Transaction, order: Workorder, snapshot: ContextSnapshot, bundle: OutputBundle
) -> RunRecord:
    """Write what the gate thinks, the pause state, and on PASS the operator's page."""
    context, judgement = parse_prompt(snapshot.full_prompt_text), judge(bundle)
    record = RunRecord(
        run_id=ids.run_of(order.work_order_id),
        work_order_id=order.work_order_id,
        objective_id=order.objective_id,
        output_id=bundle.output_id,
        gate_result=judgement.result,
        gate_reason=judgement.reason,
        created_at=tx.now,
    )
    pause = PauseState(
        objective_id=order.objective_id,
        azolla_id=context.azolla_id,
        reason=judgement.pause,
        prioritized_actions=judgement.actions,
        created_at=tx.now,
    )
    page = None
    if judgement.result is GateResult.PASS:
        page = SessionManifest(
            manifest_id=ids.session_of(order.work_order_id),
            azolla_id=context.azolla_id,
            queried_azolla_ids=answered_by(bundle),
            pause_state_summary=summary_of(context),
            prioritized_orientation=orientation_of(bundle),
            created_at=tx.now,
        )
    workorders.judge(tx, record, ids.pause_after(order.work_order_id), pause, page)
    return record


def give_up_abandoned(tx: Transaction, why: str) -> list[str]:
    """End the workorders that nobody will execute any more, so that the next page can be built."""
    lost = workorders.abandoned(tx)
    for order in lost:
        snapshot = workorders.find_snapshot(tx, order.context_snapshot_id)
        assert snapshot is not None, "the workorder refers to it"
        bundle = failed_bundle(order, BuildFailure.ERROR, why, tx.now)
        record_judgement(tx, order, snapshot, workorders.execute(tx, order, bundle))
    return [order.work_order_id for order in lost]


def install(app: Headway) -> None:
    """Let the workers of *app* request manifests and build them; a second time changes nothing."""
    app.registry.find(REQUEST_MANIFEST)
    if WORKFLOW not in app.registry.names():
        building = ManifestBuilding(app)
        steps = (
            building.claim_workorder,
            building.load_snapshot,
            building.build_manifest,
            building.keep_bundle,
            building.judge_bundle,
        )
        app.workflow(WORKFLOW, steps=steps)
