"""What a person should look at, the gravest first."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sqlalchemy import exists, select

from headway.domain.execution import ExecutionState
from headway.domain.text import shown
from headway.domain.views import Attention, AttentionKind
from headway.store.eligibility import ready
from headway.store.reading.execution_pages import NOT_COMPLETED
from headway.store.reading.manifests import AWAITING, DECLARED, dead_lettered
from headway.store.reading.servers import list_servers
from headway.store.servers import MANAGER
from headway.store.tables import (
    dead_letter,
    execution_history,
    manifest,
    manifest_group,
    manifest_state,
    work_queue,
)
from headway.store.transaction import Transaction, among, word
from headway.store.unknown_workflows import last_seen

LOOKED_AT = 200


def attention(tx: Transaction, limit: int) -> list[Attention]:
    """At most *limit* of each kind."""
    looks: tuple[Callable[[Transaction, int], Iterator[Attention]], ...] = (
        _servers,
        _dead_letters,
        _unknown_workflows,
        _disabled_groups,
        _failing,
    )
    return [one for look in looks for one in look(tx, limit)]


def _servers(tx: Transaction, limit: int) -> Iterator[Attention]:
    found = list_servers(tx)
    living = [one for one in found if one.alive]
    if not any(MANAGER in one.roles for one in living):
        sentence = "no process with the manager role is alive: nothing becomes due"
        yield Attention(AttentionKind.NO_MANAGER, "servers", sentence)
    if not any(one.slots for one in living):
        sentence = "no worker is alive: nothing is run by headway's own workers"
        yield Attention(AttentionKind.NO_WORKER, "servers", sentence)
    for one in [one for one in found if one.late][:limit]:
        last = f"last heard of at {one.renewed_at:%Y-%m-%d %H:%M:%S} UTC"
        sentence = f"server {one.id} on {one.host} is late: {last}"
        yield Attention(AttentionKind.LATE_SERVER, one.id, sentence, one.renewed_at)


def _dead_letters(tx: Transaction, limit: int) -> Iterator[Attention]:
    statement = (
        select(dead_letter.c.dead_lettered_at, dead_letter.c.reason, manifest.c.external_id)
        .select_from(dead_letter.join(manifest))
        .where(AWAITING, DECLARED)
        .order_by(dead_letter.c.id.desc())
        .limit(limit)
    )
    for row in tx.connection.execute(statement):
        sentence = f"{row.external_id} waits for a person: {row.reason}"
        yield Attention(AttentionKind.DEAD_LETTER, row.external_id, sentence, row.dead_lettered_at)


def _unknown_workflows(tx: Transaction, limit: int) -> Iterator[Attention]:
    since = last_seen(tx).since
    for name in sorted(since)[:limit]:
        sentence = f"no living server knows the workflow {shown(name)}, and entries wait for it"
        yield Attention(AttentionKind.UNKNOWN_WORKFLOW, name, sentence, since[name])


def _disabled_groups(tx: Transaction, limit: int) -> Iterator[Attention]:
    waiting = exists().where(work_queue.c.group_id == manifest_group.c.id, ready(work_queue))
    statement = (
        select(manifest_group.c.name, manifest_group.c.last_shut_at)
        .where(~manifest_group.c.enabled, waiting)
        .order_by(manifest_group.c.id)
        .limit(limit)
    )
    for row in tx.connection.execute(statement):
        sentence = f"group {row.name} is disabled, and work waits in it"
        yield Attention(AttentionKind.DISABLED_GROUP, row.name, sentence, row.last_shut_at)


def _failing(tx: Transaction, limit: int) -> Iterator[Attention]:
    """Manifests whose newest runs failed, and that are not given up yet."""
    history = execution_history.c
    failed = (
        select(history.id, history.manifest_id, history.finished_at, history.failure_type)
        .where(history.state == word(ExecutionState.FAILED), NOT_COMPLETED)
        .order_by(history.id.desc())
        .limit(LOOKED_AT)
    )
    newest: dict[int, Any] = {}
    for row in tx.connection.execute(failed):
        if row.manifest_id is not None:
            newest.setdefault(row.manifest_id, row)
    names = _not_given_up(tx, newest)
    still = [one for key, one in newest.items() if key in names]
    for row in still[:limit]:
        name = names[row.manifest_id]
        sentence = f"{name} has failed since its last success: {row.failure_type}"
        yield Attention(AttentionKind.FAILING, name, sentence, row.finished_at)


def _not_given_up(tx: Transaction, failures: Mapping[int, Any]) -> dict[int, str]:
    """The names of manifests that have neither succeeded nor been dead-lettered since they
    failed."""
    statement = (
        select(manifest.c.id, manifest.c.external_id, manifest_state.c.failures_after)
        .join(manifest_state)
        .where(among(tx, manifest.c.id, failures), DECLARED, ~dead_lettered())
    )
    rows = tx.connection.execute(statement)
    return {row.id: row.external_id for row in rows if failures[row.id].id > row.failures_after}
