"""Applying a declaration: groups and manifests upserted by name, only what changed is written.

Reads and writes manifest_group, manifest, manifest_state, dependency, wake and declaration. What
the code said last time is kept beside each row, so that a value an operator changed stays until
the code's own value changes.

Who waits for whom: a start that has something to write applies it under the apply lock, one server
at a time. A change at run time takes that lock only if it could close a circle (it names parents,
moves a manifest to another group, or brings back a parent), because two such changes must see each
other; it is held until the transaction ends, which may be a caller's. Every other change waits
only for whoever is writing the same manifest or group. Manager and dispatcher wait for neither:
they read definitions and never lock them.
"""

from dataclasses import dataclass, replace
from operator import attrgetter

from sqlalchemy import func, insert, select

from headway.domain.declaration import Declaration
from headway.domain.plan import removes_too_much
from headway.domain.progress import Progress, unseen
from headway.store.bulk import look_over
from headway.store.declared_edges import apply_edges, may_close_a_circle
from headway.store.declared_groups import upsert_groups
from headway.store.declared_manifests import Written, check_owners, upsert_manifests
from headway.store.locks import Lock, hold
from headway.store.removal import owned_by, remove
from headway.store.tables import declaration
from headway.store.transaction import Transaction


@dataclass(frozen=True)
class Applied:
    """What applying a declaration changed; ``kept_back`` were to be removed, but too many.

    ``outdated``: nothing was applied, because a later declaration has replaced this one.
    """

    created: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    kept_back: int = 0
    outdated: bool = False


@dataclass(frozen=True)
class Standing:
    """Where a declaration stands among those applied: the current one, an earlier one, or new."""

    digest: str
    current: bool
    outdated: bool


def apply(
    tx: Transaction,
    wanted: Declaration,
    *,
    allow_removal: bool = False,
    go_back: bool = False,
    progress: Progress = unseen,
) -> Applied:
    """Make the database say what *wanted* says; the same declaration twice writes nothing.

    Manifests this application declared before and no longer does are removed, unless that would be
    more than half of them and nobody has allowed it. A declaration that a later one has replaced
    is not applied: an old process that restarts during a deployment must not undo the new one.
    With *go_back* it is, and even the current one is compared row by row. *progress* is told how
    many manifests are written.
    """
    standing = standing_of(tx, wanted)
    if standing.outdated and not go_back:
        return Applied(outdated=True)
    written = Written()
    if not standing.current or go_back:
        written = upsert_manifests(tx, wanted, upsert_groups(tx, wanted), progress)
    removed, kept_back = _remove_undeclared(tx, wanted, written.created, allow_removal)
    if not standing.current or go_back:
        apply_edges(tx, wanted, written)
        look_over(tx, written.created)
    if not standing.current:
        _remember(tx, wanted, standing.digest)
    created, changed = written.created, len(written.changed)
    left = len(wanted.manifests) - created - changed
    return Applied(created, changed, left, removed, kept_back)


def settled(tx: Transaction, wanted: Declaration) -> Applied | None:
    """What :func:`apply` would return without writing anything, or None if there is work to do."""
    standing = standing_of(tx, wanted)
    if standing.outdated:
        return Applied(outdated=True)
    if not standing.current:
        return None
    owned = owned_by(tx, wanted)
    check_owners(tx, wanted.application, owned.missing)
    return None if owned.undeclared else Applied(unchanged=len(wanted.manifests))


def upsert(tx: Transaction, wanted: Declaration, *, prune_batch: str | None = None) -> int:
    """Create or change what *wanted* names and leave the rest; returns how many were touched.

    With *prune_batch*, items of that batch that *wanted* does not name are removed.
    """
    if may_close_a_circle(tx, wanted):
        hold(tx, Lock.APPLY)
    # In the order of names, so that two who do the same at once do not wait for each other.
    in_order = tuple(sorted(wanted.manifests, key=attrgetter("external_id")))
    wanted = replace(wanted, manifests=in_order)
    written = upsert_manifests(tx, wanted, upsert_groups(tx, wanted))
    if prune_batch is not None:
        remove(tx, owned_by(tx, wanted, batch=prune_batch).undeclared)
    apply_edges(tx, wanted, written)
    return written.created + len(written.changed)


def standing_of(tx: Transaction, wanted: Declaration) -> Standing:
    """Whether *wanted* is what was applied last, or was applied before that, or never."""
    digest = wanted.digest()
    of_application = declaration.c.application == wanted.application
    newest = select(func.max(declaration.c.id)).where(of_application).scalar_subquery()
    current = select(func.count()).where(declaration.c.id == newest, declaration.c.digest == digest)
    known = select(func.count()).where(of_application, declaration.c.digest == digest)
    is_current = bool(tx.connection.execute(current).scalar_one())
    is_known = bool(tx.connection.execute(known).scalar_one())
    return Standing(digest, is_current, is_known and not is_current)


def _remember(tx: Transaction, wanted: Declaration, digest: str) -> None:
    tx.connection.execute(
        insert(declaration).values(
            application=wanted.application,
            digest=digest,
            manifests=len(wanted.manifests),
            applied_at=tx.now,
        )
    )


def _remove_undeclared(
    tx: Transaction, wanted: Declaration, created: int, allow_removal: bool
) -> tuple[int, int]:
    """Half of what was there before counts: giving everything a new name removes everything."""
    owned = owned_by(tx, wanted)
    check_owners(tx, wanted.application, owned.missing)
    gone = owned.undeclared
    if removes_too_much(len(gone), owned.count - created) and not allow_removal:
        return 0, len(gone)
    remove(tx, gone)
    return len(gone), 0
