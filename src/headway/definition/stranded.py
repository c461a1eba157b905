"""Queued entries that the declared code can never run: workflow or input no longer fits.

Called by ``headway plan`` and at the start of a manager. Reads work_queue and manifest.
"""

from collections.abc import Iterable

from headway.definition.registry import RegisteredWorkflow, Registry
from headway.domain.plan import Stranded
from headway.domain.work_queue import QueuedInput
from headway.errors import UnknownWorkflow
from headway.workflow import FAILURES


def stranded(registry: Registry, queued: Iterable[QueuedInput]) -> tuple[Stranded, ...]:
    """Return the *queued* entries that cannot run, counted by manifest and reason.

    >>> stranded(Registry(), [QueuedInput(7, "load-users", "load", "null")])[0].reason
    "workflow 'load' is not registered"
    """
    found: dict[tuple[str, str, str], Stranded] = {}
    reasons: dict[tuple[str, str], str | None] = {}
    for one in queued:
        kind = (one.workflow, one.input)
        if kind not in reasons:
            reasons[kind] = _reason(registry, *kind)
        if (reason := reasons[kind]) is None:
            continue
        key = (one.external_id, one.workflow, reason)
        count, first = (found[key].count, found[key].entry_id) if key in found else (0, one.id)
        found[key] = Stranded(one.external_id, one.workflow, reason, count + 1, first)
    return tuple(found[key] for key in sorted(found))


def _reason(registry: Registry, workflow: str, text: str) -> str | None:
    try:
        return why_stranded(registry.find(workflow), text)
    except UnknownWorkflow:
        return f"workflow {workflow!r} is not registered"


def why_stranded(registered: RegisteredWorkflow, text: str) -> str | None:
    """Why an entry with this stored input cannot run; None if it can.

    The input of an isolated workflow is not read: its validators run in its own process only.

    >>> def load(table: str) -> None: ...
    >>> why_stranded(Registry().register(None, (load,), context_type=dict), '"users"')
    """
    if registered.isolation is not None:
        return None
    try:
        registered.input_type.decode(text, registered.name)
    except FAILURES as error:  # an input's validators are user code
        return str(error)
    return None
