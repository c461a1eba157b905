"""The manifests of the manager's next cycle, read without locks and without writing."""

from sqlalchemy import ColumnElement, select

from headway.store.manifests import candidates_seen
from headway.store.tables import dependency, manifest, wake
from headway.store.transaction import Transaction
from headway.store.wakes import Scope


def next_candidates(tx: Transaction, limit: int) -> frozenset[int]:
    """The manifests that the next cycle decides about: due to be looked at, or in the wake inbox.

    At most *limit* of each; a cycle takes no more on.
    """
    return frozenset(candidates_seen(tx, limit)) | _in_the_inbox(tx, limit)


def _in_the_inbox(tx: Transaction, limit: int) -> frozenset[int]:
    child, member = dependency.c.child_id, manifest.c.id
    of_children = wake.c.scope == Scope.CHILDREN.value, dependency.c.parent_id == wake.c.manifest_id
    of_group = wake.c.scope == Scope.GROUP.value, manifest.c.group_id == wake.c.group_id
    chosen: list[tuple[ColumnElement[int], tuple[ColumnElement[bool], ...]]] = [
        (wake.c.manifest_id, (wake.c.scope == Scope.SELF.value,)),
        (child, of_children),
        (member, of_group),
    ]
    found: set[int] = set()
    for key, conditions in chosen:
        some = select(key).where(*conditions).distinct().order_by(key).limit(limit)
        found.update(tx.connection.execute(some).scalars())
    return frozenset(found)
