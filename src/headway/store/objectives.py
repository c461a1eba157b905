"""Objectives and their blockers: the one that stands for the deployment, and those people enter.

A blocker belongs to one objective, which names it in ``blocked_on``. An objective with a blocker
that is not resolved is BLOCKED; when the last one is resolved it is TODO again. The standing
objective stays IN_PROGRESS whatever it waits for.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import and_, insert, literal, select, tuple_, update

from headway.domain.azolla.artifacts import (
    BlockerRef,
    Objective,
    ObjectiveStatus,
    ObjectiveType,
)
from headway.domain.azolla.entries import ID_LIMIT, standing
from headway.domain.azolla.filters import ObjectiveFilter
from headway.domain.versions import next_moment, version_of
from headway.errors import ChangedMeanwhile
from headway.store import substrate
from headway.store.artifact_rows import from_row, to_row
from headway.store.pause_states import IS_STANDING
from headway.store.tables import blocker_ref, objective
from headway.store.transaction import Transaction, among, insert_or_ignore, word
from headway.store.types import Instant

IS_TICKET = objective.c.objective_type == word(ObjectiveType.TICKET)
IS_OPEN = objective.c.status != word(ObjectiveStatus.DONE)

Place = tuple[datetime, str]


def ensure_standing(tx: Transaction, azolla_id: str, title: str, *, rename: bool = False) -> None:
    """Create the standing objective unless there is one; with *rename*, it takes this azolla id.

    Several servers may do so at once: the unique index lets one of them win. Only who knows the id
    from the registry renames, or two applications on one database would do so in turns.
    """
    one = standing(azolla_id, title, tx.now)
    tx.connection.execute(insert_or_ignore(tx, objective), to_row(one))
    if rename:
        other = and_(IS_STANDING, objective.c.azolla_id != one.azolla_id)
        values = {"azolla_id": one.azolla_id, "updated_at": tx.now}
        tx.connection.execute(update(objective).where(other).values(values))


def own_azolla_id(tx: Transaction) -> str | None:
    """The id of this deployment, if it was ever started."""
    return tx.connection.execute(select(objective.c.azolla_id).where(IS_STANDING)).scalar()


def find_standing(tx: Transaction) -> Objective | None:
    """The standing objective, if the deployment was ever started."""
    return _first(tx, {"objective_type": "STANDING"})


def find(tx: Transaction, objective_id: str) -> Objective | None:
    """One objective with its blockers."""
    if not 0 < len(objective_id) <= ID_LIMIT:
        return None
    return _first(tx, {"objective_id": objective_id})


def _first(tx: Transaction, wanted: Mapping[str, str]) -> Objective | None:
    found = substrate.objectives(tx, ObjectiveFilter.model_validate(wanted))
    return found[0] if found else None


def add(tx: Transaction, one: Objective) -> bool:
    """Write a new objective without blockers; False if there is one of this id."""
    row = to_row(one, blocked_on="[]")
    statement = insert_or_ignore(tx, objective).returning(objective.c.objective_id)
    return tx.connection.execute(statement, row).first() is not None


def change(
    tx: Transaction, objective_id: str, values: Mapping[str, Any], expected: str | None = None
) -> None:
    """Write new values of some columns, if the row is of the version *expected*; who changes an
    objective begins its time anew."""
    own, now = objective.c.objective_id == objective_id, tx.now
    if expected is not None:
        now = _expected(_locked(tx, own), expected, now)
    plain = {key: str(one) if isinstance(one, str) else one for key, one in values.items()}
    tx.connection.execute(update(objective).where(own).values(**plain, updated_at=now))


def _expected(row: Any, version: str, now: datetime) -> datetime:
    """When a row that has this version is changed; an error if it has another by now."""
    if version_of(row.updated_at) != version:
        raise ChangedMeanwhile(f"objective {row.objective_id!r}", version_of(row.updated_at))
    return next_moment(row.updated_at, now)


def block(tx: Transaction, objective_id: str, blocker: BlockerRef) -> bool:
    """Let an objective wait for *blocker*; False if there is no such objective."""
    row = _locked(tx, objective.c.objective_id == objective_id)
    if row is None:
        return False
    tx.connection.execute(insert(blocker_ref).values(to_row(blocker)))
    named = [*json.loads(row.blocked_on), blocker.blocker_id]
    change(tx, objective_id, {"blocked_on": json.dumps(named), **_status(row, waiting=True)})
    return True


def resolve(tx: Transaction, blocker_id: str) -> bool:
    """Note that a blocker is gone; False if there is none of this id."""
    quoted = json.dumps(blocker_id)
    row = _locked(tx, objective.c.blocked_on.contains(quoted, autoescape=True))
    statement = (
        update(blocker_ref)
        .where(blocker_ref.c.blocker_id == blocker_id)
        .values(resolved=True)
        .returning(blocker_ref.c.blocker_id)
    )
    if tx.connection.execute(statement).first() is None:
        return False
    if row is not None:
        change(tx, row.objective_id, _status(row, waiting=_waits(tx, json.loads(row.blocked_on))))
    return True


def _locked(tx: Transaction, chosen: Any) -> Any:
    return tx.connection.execute(select(objective).where(chosen).with_for_update()).first()


def _waits(tx: Transaction, blocker_ids: Sequence[str]) -> bool:
    unresolved = select(blocker_ref.c.blocker_id).where(
        among(tx, blocker_ref.c.blocker_id, blocker_ids), ~blocker_ref.c.resolved
    )
    return tx.connection.execute(unresolved.limit(1)).first() is not None


def _status(row: Any, *, waiting: bool) -> dict[str, Any]:
    """What blocking and resolving mean for the status."""
    if row.objective_type == ObjectiveType.STANDING or row.status == ObjectiveStatus.DONE:
        return {}
    if waiting:
        return {"status": ObjectiveStatus.BLOCKED.value}
    if row.status == ObjectiveStatus.BLOCKED:
        return {"status": ObjectiveStatus.TODO.value, "blocked_reason": None}
    return {}


def open_tickets(
    tx: Transaction, untouched_since: datetime, limit: int, after: Place | None = None
) -> list[Objective]:
    """Tickets that are not DONE and were not touched after then, oldest first, a page at a time.

    Without their blockers, which say nothing about their time.
    """
    key = (objective.c.updated_at, objective.c.objective_id)
    chosen = select(objective).where(IS_TICKET, IS_OPEN, objective.c.updated_at <= untouched_since)
    if after is not None:
        moment, objective_id = after
        chosen = chosen.where(tuple_(*key) > tuple_(literal(moment, Instant), objective_id))
    rows = tx.connection.execute(chosen.order_by(*key).limit(limit)).mappings()
    return [from_row(Objective, dict(row), blocked_on=()) for row in rows]
