"""The eight steps of the Manifest Scheduler Worker, in the order of its flow.

A tick takes one event from PickEvent to ReleaseClaim. Each step is one transaction that begins by
holding the claim, so that whoever was paused and taken over from writes nothing; each may be
repeated, because what it writes has an id that follows from the event.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

from headway.domain.azolla import ids
from headway.domain.azolla.artifacts import (
    ArtifactType,
    ClaimRecord,
    ContextSnapshot,
    DiazotrophType,
    EventType,
    Objective,
    ObjectiveStatus,
    ResourceType,
    SubstrateQuery,
    TerminalReason,
    Workorder,
)
from headway.domain.azolla.context import Answer, Context, Urgency, prompt_text, urgency_of
from headway.domain.azolla.filters import ObjectiveFilter
from headway.errors import HeadwayError
from headway.federation.asking import Asked, Patience, ask_all
from headway.federation.building import give_up_abandoned
from headway.federation.tick import LocalState, Tick, WorkerEnv
from headway.store import captures, claims, events, objectives, substrate, workorders
from headway.store.events import KnownEvent
from headway.store.transaction import Transaction

# So many work on requests side by side: one gets its page ordered, the others wait for it.
AT_THE_FRONT = 3
RENEWALS_PER_LEASE = 3
LOOKED_BACK = timedelta(days=7)
OPEN = tuple(one for one in ObjectiveStatus if one is not ObjectiveStatus.DONE)


def pick_event(tick: Tick, env: WorkerEnv) -> Tick:
    """1. The oldest unprocessed MANIFEST_REQUESTED; while a manifest is being built, only its."""
    with env.store.reading() as tx:
        found = events.waiting(tx, EventType.MANIFEST_REQUESTED, AT_THE_FRONT)
        open_for = workorders.open_event(tx) if found else None
    waiting = open_for is not None and not _give_up(env)
    if waiting:
        found = [one for one in found if one.event.event_id == open_for]
    return replace(tick, candidates=tuple(found), waiting=waiting and not found)


def _give_up(env: WorkerEnv) -> bool:
    """End the order that the others wait for, if whoever was to execute it is gone for good."""
    with env.store.writing() as tx:
        lost = give_up_abandoned(tx, "nobody will execute it any more: its run was lost or stopped")
    for work_order_id in lost:
        env.observer.emit("azolla.given_up", workorder=work_order_id)
    return bool(lost)


def claim_event(tick: Tick, env: WorkerEnv) -> Tick:
    """2. Claim it; what somebody else has claimed is skipped, what failed too often is parked."""
    for known in tick.candidates:
        with env.store.writing() as tx:
            claim = claims.acquire(
                tx, ResourceType.EVENT, known.event.event_id, env.owner, env.rules.lease
            )
            if claim is None:
                continue
            current = events.find(tx, known.event.event_id)
            if current is None or current.event.processed or current.parked_at is not None:
                claims.release(tx, claim)
                continue
            if current.attempts >= env.rules.max_attempts:
                _park(tx, current, claim, env)
                tick = replace(tick, parked=tick.parked + 1)
                continue
            events.count_attempt(tx, known.event.event_id)
            return replace(tick, event=current.event, claim=claim)
    return tick


def _park(tx: Transaction, known: KnownEvent, claim: ClaimRecord, env: WorkerEnv) -> None:
    events.park(tx, known.event.event_id)
    claims.release(tx, claim)
    env.observer.emit(
        "azolla.parked",
        event=known.event.event_id,
        attempts=known.attempts,
        error=known.trouble,
    )


def query_azollas(tick: Tick, env: WorkerEnv) -> Tick:
    """3. Ask every deployment of the registry, all at once, and keep what they said or did not."""
    if tick.event is None or tick.claim is None:
        return tick
    held = tick.claim

    def renew() -> None:
        nonlocal held
        with env.store.writing() as tx:
            held = claims.renew(tx, held, env.rules.lease)

    with env.store.reading() as tx:
        queries = list(_queries(tick.event.event_id, held.claim_version, env, tx))
    patience = Patience(
        env.rules.query_budget.total_seconds(),
        env.rules.lease.total_seconds() / RENEWALS_PER_LEASE,
        renew,
    )
    asked = ask_all(queries, env.ask, patience)
    with env.store.writing() as tx:
        claims.fence(tx, held)
        workorders.keep_answers(tx, [(one.query, one.response) for one in asked])
    return replace(tick, claim=held, asked=tuple(asked))


def _queries(
    event_id: str, version: int, env: WorkerEnv, tx: Transaction
) -> Iterator[SubstrateQuery]:
    wanted: dict[ArtifactType, dict[str, Any]] = {
        ArtifactType.PAUSE_STATE: {
            "created_after": (tx.now - LOOKED_BACK).isoformat(),
            "unsettled": True,
        },
        ArtifactType.OBJECTIVE: {"status": [str(one) for one in OPEN]},
    }
    for target in env.azollas:
        for artifact_type, chosen in wanted.items():
            yield SubstrateQuery(
                query_id=ids.query_of(event_id, version, target, artifact_type),
                source_azolla_id=env.azolla_id,
                target_azolla_id=target,
                artifact_type=artifact_type,
                filter=chosen,
                created_at=tx.now,
            )


def read_local_state(tick: Tick, env: WorkerEnv) -> Tick:
    """4. Count the captures that wait, and read how urgent this deployment's objectives are."""
    if tick.claim is None:
        return tick
    with env.store.reading() as tx:
        standing = objectives.find_standing(tx)
        own = substrate.objectives(tx, ObjectiveFilter(status=OPEN))
        pending = captures.count_pending(tx)
    if standing is None:
        raise HeadwayError(
            "this deployment has no standing objective yet; start its manager once: headway run"
        )
    urgency = tuple(urgency_of(one) for one in own)
    return replace(tick, local=LocalState(standing.objective_id, pending, urgency))


def build_context_snapshot(tick: Tick, env: WorkerEnv) -> Tick:
    """5. Freeze what was seen; whoever comes second finds the snapshot that stands."""
    if tick.event is None or tick.claim is None or tick.local is None:
        return tick
    with env.store.writing() as tx:
        claims.fence(tx, tick.claim)
        context = Context(
            azolla_id=env.azolla_id,
            event_id=tick.event.event_id,
            asked_at=tx.now,
            pending_captures=tick.local.pending_captures,
            answers=tuple(_answer(one) for one in tick.asked),
            local_urgency=tick.local.urgency,
            queried_urgency=tuple(_queried_urgency(tick.asked, env.azolla_id)),
        )
        snapshot = ContextSnapshot(
            snapshot_id=ids.snapshot_of(tick.event.event_id),
            objective_id=tick.local.objective_id,
            related_yield_refs=(),
            full_prompt_text=prompt_text(context),
            created_at=tx.now,
            metadata={"event_id": tick.event.event_id, "asked": list(env.azollas)},
        )
        return replace(tick, snapshot=workorders.keep_snapshot(tx, snapshot))


def _answer(asked: Asked) -> Answer:
    return Answer(
        azolla_id=asked.query.target_azolla_id,
        artifact_type=asked.query.artifact_type,
        status=asked.response.status,
        note=asked.note,
        results=asked.response.results,
    )


def _queried_urgency(asked: tuple[Asked, ...], own: str) -> Iterator[Urgency]:
    for one in asked:
        if one.query.artifact_type is ArtifactType.OBJECTIVE and one.query.target_azolla_id != own:
            for found in one.response.results:
                yield urgency_of(Objective.model_validate(found))


def create_workorder(tick: Tick, env: WorkerEnv) -> Tick:
    """6. Order the page, with the queue entry that has it built; one manifest at a time."""
    if tick.event is None or tick.claim is None or tick.snapshot is None:
        return tick
    with env.store.writing() as tx:
        claims.fence(tx, tick.claim)
        order = Workorder(
            work_order_id=ids.workorder_of(tick.event.event_id),
            objective_id=tick.snapshot.objective_id,
            diazotroph_type=DiazotrophType.MANIFEST_BUILDER,
            context_snapshot_id=tick.snapshot.snapshot_id,
            branch_name=None,
            budget_ms=max(1, round(env.rules.manifest_budget.total_seconds() * 1000)),
            created_at=tx.now,
        )
        created = workorders.create(tx, tick.event.event_id, order, env.entry_of(order))
        if created is None:  # another manifest came in between: this one waits for it
            events.uncount_attempt(tx, tick.event.event_id)
    return replace(tick, workorder=created)


def mark_processed(tick: Tick, env: WorkerEnv) -> Tick:
    """7. The event is dealt with, once and for all."""
    if tick.event is None or tick.claim is None or tick.workorder is None:
        return tick
    with env.store.writing() as tx:
        claims.fence(tx, tick.claim)
        done = events.mark_processed(tx, tick.event.event_id, TerminalReason.SCHEDULED)
    return replace(tick, processed=done)


def release_claim(tick: Tick, env: WorkerEnv) -> Tick:
    """8. What had to be written is durable: let go."""
    if tick.claim is not None:
        with env.store.writing() as tx:
            claims.release(tx, tick.claim)
    return tick
