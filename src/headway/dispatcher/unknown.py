"""Entries of workflows that no living server knows: they wait, and fail when that lasts."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from headway.dispatcher.workflow import DispatchEnv
from headway.domain.execution import FailureCode
from headway.domain.faults import unknown_since
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


class UnknownWorkflows:
    """Looks now and then what waits for somebody who knows its workflow, whichever dispatcher does.

    >>> UnknownWorkflows().fail(env).failed  # doctest: +SKIP
    ()
    """

    def __init__(self) -> None:
        self._looked_at: datetime | None = None

    def fail(self, env: DispatchEnv) -> Unknown:
        """Fail what has waited for ``unknown_workflow_timeout``, if it is time for a look."""
        if env.workers is None or _is_recent(env, self._looked_at):
            return Unknown()
        seen = unknown_workflows.last_seen(env.tx)
        self._looked_at = seen.looked_at
        if _is_recent(env, seen.looked_at):
            return Unknown()
        waiting = unknown_workflows.queued_by_workflow(env.tx)
        return _look(env, seen.since, waiting, _known(env, env.workers))


def _is_recent(env: DispatchEnv, looked_at: datetime | None) -> bool:
    if looked_at is None:
        return False
    return env.tx.now - looked_at < env.settings.unknown_workflow_timeout / LOOKS_PER_TIMEOUT


def _look(
    env: DispatchEnv,
    before: dict[str, datetime],
    waiting: dict[str, int],
    known: frozenset[str],
) -> Unknown:
    timeout, now = env.settings.unknown_workflow_timeout, env.tx.now
    since = unknown_since(before, sorted(waiting), known, now)
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
