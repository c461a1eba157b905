"""Writing what an application declares: at a start with care, by hand as somebody wishes."""

import time
from collections.abc import Sequence
from dataclasses import asdict

from headway.definition.app import Headway
from headway.definition.stranded import stranded
from headway.domain.declaration import Declaration
from headway.domain.plan import Stranded
from headway.domain.progress import Progress, unseen
from headway.domain.work_queue import QueuedInput
from headway.errors import CreatedMeanwhile, DatabaseUnavailable, RemovalRefused
from headway.store import declarations, notifications, queued_inputs
from headway.store.declarations import Applied
from headway.store.engine import TRANSIENT, Store, waited_in_vain
from headway.store.locks import Lock
from headway.store.outages import Patiently, once
from headway.store.transaction import Transaction

HELD = (
    "another server is applying its declaration, or a transaction is open that changes dependents "
    "or the same manifests; end that transaction, or try again later"
)
# More reasons than these say nothing new.
MOST_STRANDED = 20
GO_BACK = (
    "this declaration was applied before and a later one has replaced it, so nothing was applied; "
    "to go back to it: headway apply MODULE:APP"
)
ALLOW_REMOVAL = (
    "more than half of the manifests are no longer declared, so none was removed; "
    "to see them: headway plan MODULE:APP; to remove them: headway apply MODULE:APP --allow-removal"
)


def apply_at_start(app: Headway, store: Store, patiently: Patiently = once) -> None:
    """Apply what *app* declares, and tell what came of it.

    *patiently* repeats an attempt that fails because the database restarts.

    >>> apply_at_start(app, store)  # doctest: +SKIP
    """
    applied, observer = apply_declarations(app, store, patiently=patiently), app.observer
    if applied.outdated:
        observer.emit("declaration.outdated", application=app.name, advice=GO_BACK)
        return
    counts = {name: count for name, count in asdict(applied).items() if name != "outdated"}
    observer.emit("declaration.applied", **counts)
    if applied.kept_back:
        observer.emit("declaration.kept_back", count=applied.kept_back, advice=ALLOW_REMOVAL)
    _tell_stranded(app, patiently(lambda: _queued(app, store)))


def _queued(app: Headway, store: Store) -> list[QueuedInput]:
    with store.reading() as tx:
        return queued_inputs.of_application(tx, app.name)


def _tell_stranded(app: Headway, queued: Sequence[QueuedInput]) -> None:
    """Emit one event for each reason why queued entries can never run with this code."""
    found: dict[tuple[str, str], list[Stranded]] = {}
    for one in stranded(app.registry, queued):
        found.setdefault((one.workflow, one.reason), []).append(one)
    for (workflow, reason), some in list(found.items())[:MOST_STRANDED]:
        count, first = sum(one.count for one in some), min(one.entry_id for one in some)
        app.observer.emit(
            "queue.stranded", workflow=workflow, count=count, entry_id=first, reason=reason
        )


def apply_declarations(
    app: Headway,
    store: Store,
    *,
    by_hand: bool = False,
    allow_removal: bool = False,
    progress: Progress = unseen,
    patiently: Patiently = once,
) -> Applied:
    """Write what *app* declares, one server at a time, patiently while the database is away.

    A start keeps back what it must not do on its own; *by_hand*, an earlier declaration is gone
    back to, and one that removes too much is refused as a whole.
    """
    settings, wanted = app.settings, app.declaration()
    last = settings.seeding_attempts - 1
    for attempt in range(settings.seeding_attempts):
        try:
            if applied := patiently(
                lambda: _try_to_apply(store, wanted, by_hand, allow_removal, progress)
            ):
                return applied
            held = True
        except (*TRANSIENT, CreatedMeanwhile) as error:
            held = waited_in_vain(error)
            if attempt == last and not held:
                raise
        if held:
            app.observer.emit("declaration.waiting", application=app.name, advice=HELD)
        if attempt < last:
            time.sleep(settings.seeding_base_delay.total_seconds() * 2**attempt)
    raise DatabaseUnavailable(f"nothing was applied: {HELD}")


def _try_to_apply(
    store: Store, wanted: Declaration, by_hand: bool, allow_removal: bool, progress: Progress
) -> Applied | None:
    """None if another holds the lock; it is not even asked for when there is nothing to do.

    Processes of one application are often started together, and mostly declare the same: whoever
    comes second waits for a moment, and has nothing to do then.
    """
    for wait in (False, True):
        if not by_hand and (settled := _settled(store, wanted)):
            return settled
        with store.leading(Lock.APPLY, seconds=60, wait=wait) as tx:
            if tx is not None:
                return _applied(tx, wanted, by_hand, allow_removal, progress)
    return None


def _settled(store: Store, wanted: Declaration) -> Applied | None:
    with store.reading() as tx:
        return declarations.settled(tx, wanted)


def _applied(
    tx: Transaction, wanted: Declaration, by_hand: bool, allow_removal: bool, progress: Progress
) -> Applied:
    applied = declarations.apply(
        tx, wanted, allow_removal=allow_removal, go_back=by_hand, progress=progress
    )
    if by_hand and applied.kept_back:
        raise RemovalRefused(wanted.application, applied.kept_back)
    if by_hand:
        notifications.notify_at_commit(tx)
    return applied
