"""Entries of workflows that no living server knows: they wait, and fail when that lasts."""

from dataclasses import dataclass, field
from datetime import timedelta

from headway.dispatcher.faults import unknown_since
from headway.dispatcher.workflow import DispatchEnv
from headway.domain.execution import FailureCode
from headway.domain.routing import workflows_of
from headway.store import failed_entries, unknown_workflows
from headway.store.servers import Workers

# Looked for so many times within the timeout: this look counts all that is queued.
LOOKS_PER_TIMEOUT = 20
MOST_FAILED_AT_ONCE = 1000


@dataclass(frozen=True)
class Unknown:
    """How many entries wait for each workflow that nobody knows, and which have been failed."""

    waiting: dict[str, int] = field(default_factory=dict)
    failed: tuple[int, ...] = ()


def fail_unknown(env: DispatchEnv) -> Unknown:
    """Fail what has waited for ``unknown_workflow_timeout`` for somebody who knows its workflow."""
    timeout, now = env.settings.unknown_workflow_timeout, env.tx.now
    seen = unknown_workflows.last_seen(env.tx)
    if env.workers is None or (
        seen.looked_at is not None and now - seen.looked_at < timeout / LOOKS_PER_TIMEOUT
    ):
        return Unknown()
    waiting = unknown_workflows.queued_by_workflow(env.tx)
    since = unknown_since(seen.since, sorted(waiting), _known(env, env.workers), now)
    unknown_workflows.note_seen(env.tx, since)
    failed = _fail(env, [name for name in since if now - since[name] >= timeout], timeout)
    return Unknown({name: waiting[name] for name in since}, tuple(failed))


def _known(env: DispatchEnv, workers: Workers) -> frozenset[str]:
    """What workers take, or dispatchers send elsewhere; nothing while no worker lives at all."""
    if not workers.workflows:
        return frozenset()
    return workers.workflows | workers.routed | workflows_of(env.task_servers.elsewhere())


def _fail(env: DispatchEnv, workflows: list[str], timeout: timedelta) -> list[int]:
    ids = unknown_workflows.queued_before(
        env.tx, workflows, env.tx.now - timeout, MOST_FAILED_AT_ONCE
    )
    reason = "no living server knows its workflow"
    return failed_entries.fail(env.tx, dict.fromkeys(ids, reason), FailureCode.UNKNOWN_WORKFLOW)
