"""Ways to break headway on purpose: each must turn the chaos run red, or the run shows nothing.

Each replaces one part of a process by a version that lacks what protects it.
"""

import random
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from inspect import signature
from typing import Any

from headway.definition.app import Headway
from headway.dispatcher import cycle
from headway.domain.execution import ExecutionState, Outcome
from headway.domain.retry import RetryPolicy
from headway.domain.work_queue import NewEntry, Source
from headway.errors import DefinitionError
from headway.lease import LeaseKeeper
from headway.orphans import OrphanSweep, Swept
from headway.patience import DatabaseWait
from headway.runner.activation import Call
from headway.runner.patience import Patience
from headway.store import cancelling, engine, executions, outcomes, settling, work_queue
from headway.store.damage import believe_the_lost, drop_the_rule_of_one_queued_entry
from headway.store.engine import Store
from headway.store.locks import Lock

A_WHILE = 3600.0


def no_fence() -> None:
    """A zombie's result is believed, though its work was given to somebody else."""
    finish = outcomes.finish

    def unfenced(
        tx: Any,
        owner: str,
        ended: Mapping[int, Outcome],
        backoff: Any = None,
        *,
        in_brief: bool = False,
        charge: Any = None,
    ) -> Any:
        how = {"in_brief": in_brief, "charge": charge}
        recorded = finish(tx, owner, ended, backoff or RetryPolicy(), **how)
        late = ended.keys() - {one.id for one in recorded}
        believe_the_lost(tx, [key for key in late if ended[key].state is ExecutionState.COMPLETED])
        return recorded

    _replace(outcomes, "finish", unfenced)


def no_dispatch_lock() -> None:
    """Every dispatcher counts and claims without waiting for the others."""
    _lead_without(Lock.DISPATCH)
    count = executions.count_active

    def count_and_dawdle(tx: Any, excluded: Any, live_from: int = 0) -> Any:
        counted = count(tx, excluded, live_from)
        time.sleep(random.uniform(0.0, 0.05))
        return counted

    def no_glance(tx: Any, workers: Any, owner: str, per_group: Any, excluded: Any) -> None:
        """It counts as well, and would not dawdle."""

    _replace(executions, "count_active", count_and_dawdle)
    _replace(cycle, "glance", no_glance)


def application_clock() -> None:
    """Leases are judged by clocks that differ from process to process."""
    skew = timedelta(seconds=random.choice((-60, 0, 60)))

    def open_store(app: Headway, **_: Any) -> Store:
        return Store(app.database_url, clock=lambda: datetime.now(UTC) + skew)

    _replace(Headway, "open_store", open_store)


def no_unique_index() -> None:
    """Two managers at once, and no index to refuse the second entry."""
    _lead_without(Lock.MANAGE)
    enqueue = work_queue.enqueue_each

    def dawdle_and_enqueue(tx: Any, entries: Any) -> Any:
        time.sleep(random.uniform(0.0, 0.2))
        return enqueue(tx, entries)

    _replace(work_queue, "enqueue_each", dawdle_and_enqueue)


def no_beat() -> None:
    """Nobody says that it lives."""
    _replace(LeaseKeeper, "beat", lambda keeper: A_WHILE)


def finish_in_two() -> None:
    """The end of a run and what follows from it are not one transaction: some get only half."""
    settle = settling.settle_ended

    def settle_most(tx: Any, ended: Any) -> None:
        if random.random() > 0.05:
            settle(tx, ended)

    _replace(outcomes, "settle_ended", settle_most)


def cancel_ignored() -> None:
    """Whoever cancels is told that it is done, and nothing is."""
    _replace(cancelling, "_cancel_entries", lambda tx, chosen, reason: 1)
    _replace(outcomes, "cancel_pending", lambda tx, chosen, reason: [])
    _replace(executions, "ask_to_stop", lambda tx, chosen, reason: 0)


def double_release() -> None:
    """What a dead worker ran is queued again twice."""
    requeue = work_queue.requeue

    def requeue_twice(tx: Any, rows: Any, crashed: Any = frozenset()) -> None:
        requeue(tx, rows, crashed=crashed)
        again = [
            NewEntry(row.workflow, Source.AD_HOC, row.input, row.input_type)
            for row in rows
            if row.id in crashed and row.manifest_id is None
        ]
        work_queue.enqueue(tx, again)

    _replace(outcomes, "requeue", requeue_twice)


def no_sweep() -> None:
    """Nobody looks for the runs of the dead."""
    _replace(OrphanSweep, "run_once", lambda sweep: Swept())


def hasty_start() -> None:
    """A start does not wait for a database that is away."""
    _replace(DatabaseWait, "__call__", lambda wait, work: work())


def hasty_activation() -> None:
    """A run that activates does not wait for a database that is away."""
    _replace(Patience, "call", lambda patience, attempt: attempt())


def doubtful_commit() -> None:
    """An activation is written again without asking whether its unanswered commit was done."""
    _replace(Call, "_was_committed", lambda call: False)


MUTATIONS: dict[str, Callable[[], None]] = {
    one.__name__: one
    for one in (
        no_fence,
        no_dispatch_lock,
        application_clock,
        no_unique_index,
        no_beat,
        finish_in_two,
        cancel_ignored,
        double_release,
        no_sweep,
        hasty_start,
        hasty_activation,
        doubtful_commit,
    )
}


def checked(name: str | None) -> str | None:
    """Return *name* if there is such a mutation.

    >>> checked("no_beat")
    'no_beat'
    """
    if name is not None and name not in MUTATIONS:
        raise DefinitionError(
            f"mutation = {name!r}: must be one of {', '.join(MUTATIONS)}; for example no_beat"
        )
    return name


def apply(name: str | None) -> None:
    """Break this process."""
    if name is not None:
        MUTATIONS[name]()


def damage(store: Store, name: str | None) -> None:
    """Break the database as well, or what the client calls, if that belongs to it."""
    if name == no_unique_index.__name__:
        with store.writing() as tx:
            drop_the_rule_of_one_queued_entry(tx)
    elif name == cancel_ignored.__name__:
        cancel_ignored()


def _lead_without(lock: Lock) -> None:
    ask = engine._try_lock

    def pretend(
        connection: Any, wanted: Lock, seconds: int, patience: int, wait: bool = False
    ) -> Any:
        led_at = ask(connection, wanted, seconds, patience, wait)
        return led_at or (datetime.now(UTC) if wanted is lock else None)

    _replace(engine, "_try_lock", pretend)


def _replace(whose: object, name: str, by: Any) -> None:
    """What no longer takes what the original takes would break everything, and show nothing."""
    takes, shall_take = (len(signature(one).parameters) for one in (by, getattr(whose, name)))
    if takes != shall_take:
        raise TypeError(f"{name}: the broken one takes {takes} arguments, the sound {shall_take}")
    setattr(whose, name, by)
