"""The claim/lease protocol: who works on an event or a workorder, and until when nobody else may.

It is the rule by which a server owns its executions (``leases.py``), for things that have no queue
of their own:

- **Acquire**: one statement writes the claim, or takes it over if its lease has expired. Whoever
  holds a lease that has not expired is left alone: the caller goes on with the next candidate.
- **Renew**: compare-and-set on ``claim_version``, only while the lease lasts. Every renewal and
  every takeover raises the version, so that of two owners at most one ever knows the current one.
- **Fence**: every other write of the holder first holds the claim's row with the version it knows,
  in the same transaction. Whoever was paused, and taken over from, writes nothing.
- **Release**: after what was to be written is durable. The row stays, expired, with its version
  raised: a version never comes back.

A holder that crashes releases nothing. Its lease expires, another owner takes over and repeats the
work, for which ids are derived from the event (``domain/azolla/ids.py``). Leases are measured by
the database's clock at the moment the row is looked at.
"""

from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, select, update
from sqlalchemy.dialects import postgresql, sqlite

from headway.domain.azolla.artifacts import ClaimRecord, ResourceType
from headway.domain.text import shown
from headway.errors import DefinitionError, HeadwayError
from headway.store.artifact_rows import from_row
from headway.store.leases import NOW, from_now
from headway.store.tables import claim_record
from headway.store.transaction import Transaction

SHORTEST = timedelta(seconds=1)
LONGEST = timedelta(hours=1)


class ClaimLost(HeadwayError):
    """LEASE_LOST: somebody else holds it, or the lease has expired; nothing was written."""


def acquire(
    tx: Transaction, kind: ResourceType, resource_id: str, owner: str, lease: timedelta
) -> ClaimRecord | None:
    """Claim it for *owner*, or return None because somebody holds it."""
    _check(owner, lease)
    now, claim = from_now(tx, NOW), claim_record.c
    insert = (postgresql if tx.on_postgresql else sqlite).insert(claim_record)
    written: dict[str, Any] = {
        "owner_id": owner,
        "lease_expires_at": from_now(tx, lease),
        "heartbeat_at": now,
    }
    statement = (
        insert.values(resource_type=kind.value, resource_id=resource_id, claim_version=0, **written)
        .on_conflict_do_update(
            index_elements=[claim.resource_type, claim.resource_id],
            set_=written | {"claim_version": claim.claim_version + 1},
            where=claim.lease_expires_at <= now,
        )
        .returning(claim_record)
    )
    return _found(tx, statement)


def renew(tx: Transaction, held: ClaimRecord, lease: timedelta) -> ClaimRecord:
    """Prolong a claim; raises :class:`ClaimLost` if it is no longer the holder's."""
    _check(held.owner_id, lease)
    statement = (
        update(claim_record)
        .where(_still(tx, held))
        .values(
            lease_expires_at=from_now(tx, lease),
            heartbeat_at=from_now(tx, NOW),
            claim_version=claim_record.c.claim_version + 1,
        )
        .returning(claim_record)
    )
    return _unless_lost(held, _found(tx, statement))


def fence(tx: Transaction, held: ClaimRecord) -> None:
    """Let nobody take over until this transaction ends; raises :class:`ClaimLost` if one has.

    A statement of its own before the writes it protects.
    """
    statement = select(claim_record).where(_still(tx, held)).with_for_update()
    _unless_lost(held, _found(tx, statement))


def release(tx: Transaction, held: ClaimRecord) -> None:
    """Let the next one have it; raises :class:`ClaimLost` if it is no longer the holder's."""
    statement = (
        update(claim_record)
        .where(_still(tx, held))
        .values(lease_expires_at=from_now(tx, NOW), claim_version=claim_record.c.claim_version + 1)
        .returning(claim_record)
    )
    _unless_lost(held, _found(tx, statement))


def held(
    tx: Transaction, kind: ResourceType, column: Any, by: str | None = None
) -> ColumnElement[bool]:
    """Whether what *column* names is claimed at this moment, *by* this owner or by anybody."""
    claim = claim_record.c
    somebodys = exists().where(
        claim.resource_type == kind.value,
        claim.resource_id == column,
        claim.lease_expires_at > from_now(tx, NOW),
    )
    return somebodys if by is None else somebodys.where(claim.owner_id == by)


def _still(tx: Transaction, held: ClaimRecord) -> ColumnElement[bool]:
    claim = claim_record.c
    return and_(
        claim.resource_type == held.resource_type.value,
        claim.resource_id == held.resource_id,
        claim.owner_id == held.owner_id,
        claim.claim_version == held.claim_version,
        claim.lease_expires_at > from_now(tx, NOW),
    )


def _found(tx: Transaction, statement: Any) -> ClaimRecord | None:
    row = tx.connection.execute(statement).mappings().first()
    return None if row is None else from_row(ClaimRecord, dict(row))


def _unless_lost(held: ClaimRecord, found: ClaimRecord | None) -> ClaimRecord:
    if found is None:
        raise ClaimLost(
            f"LEASE_LOST: {held.owner_id} no longer holds {held.resource_type} "
            f"{held.resource_id} at version {held.claim_version}; nothing was written"
        )
    return found


def _check(owner: str, lease: timedelta) -> None:
    if not owner.strip():
        raise DefinitionError(
            f"claim owner_id = {shown(owner)}: must not be empty; for example 'server-7'"
        )
    if not SHORTEST <= lease <= LONGEST:
        raise DefinitionError(
            f"claim lease = {lease}: must be from 1 second to 1 hour; for example 30s"
        )
