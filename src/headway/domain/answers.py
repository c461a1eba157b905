"""The answer to "why is it not running?" in one sentence, and what a pending run waits for."""

from collections.abc import Sequence

from headway.domain.due import as_text
from headway.domain.entry_gates import absent
from headway.domain.execution import Execution, ExecutionState
from headway.domain.gates import Gate, GateName, Stage, does_not_run, first_held
from headway.domain.routing import LOCAL


def named(external_id: str | None, workflow: str) -> str:
    """What a run is called: its manifest, or the workflow of one without.

    >>> named("load-users", "load"), named(None, "load")
    ('load-users', 'a run of load')
    """
    return external_id if external_id is not None else f"a run of {workflow}"


def about_manifest(subject: str, gates: Sequence[Gate], entry: int | None) -> str:
    """The answer about a manifest of which nothing runs; with *entry* that is what decides.

    >>> about_manifest("load-users", [], None)
    'load-users is due: the next cycle of the manager queues it'
    """
    if entry is not None:
        return about_entry(subject, gates, entry)
    held = first_held(gates, Stage.QUEUE) or first_held(gates, Stage.DISPATCH)
    if held is not None:
        return does_not_run(subject, held)
    return f"{subject} is due: the next cycle of the manager queues it"


def about_entry(subject: str, gates: Sequence[Gate], entry: int) -> str:
    """The answer about what waits in the queue.

    >>> about_entry("load-users", [], 7)
    'load-users is queued as entry 7: the next cycle of the dispatcher dispatches it'
    """
    held = first_held(gates, Stage.DISPATCH)
    if held is not None:
        return does_not_run(subject, held)
    return f"{subject} is queued as entry {entry}: the next cycle of the dispatcher dispatches it"


def about_execution(execution: Execution, gates: Sequence[Gate]) -> str:
    """The answer about a run, whether it waits, goes on or has ended."""
    subject = named(execution.external_id, execution.workflow)
    if execution.state.terminal:
        return _ended(subject, execution)
    if execution.state is ExecutionState.IN_PROGRESS:
        return f"{subject} is running: {going_on(execution)}"
    held = first_held(gates, Stage.START)
    if held is not None:
        return does_not_run(subject, held)
    return f"{subject} is dispatched as execution {execution.id}: the next free worker starts it"


def going_on(execution: Execution) -> str:
    """What is to be said about a live execution."""
    if execution.started_at is None:
        return f"execution {execution.id}, dispatched at {as_text(execution.dispatched_at)}"
    step = f", in step {execution.running_step!r}" if execution.running_step else ""
    stop = ", asked to stop" if execution.cancel_requested else ""
    return f"execution {execution.id} since {as_text(execution.started_at)}{step}{stop}"


def _ended(subject: str, execution: Execution) -> str:
    state = str(execution.state).replace("_", " ")
    when = f" at {as_text(execution.finished_at)}" if execution.finished_at else ""
    failure = f" ({execution.failure.summary})" if execution.failure else ""
    return f"execution {execution.id} of {subject} has ended: {state}{when}{failure}"


def start_gates(
    execution: Execution, taken: bool, slots: int, running: int, reason: str = ""
) -> list[Gate]:
    """The gates of a pending execution: a worker that knows its workflow and has a free slot.

    *reason* is why the task server it was sent to does not answer, if it does not.
    """
    if execution.task_server != LOCAL:
        server = f"task server {execution.task_server!r}"
        waits = f"{server} has not started it yet"
        sentence = f"{absent(server, reason)}, and has not started it yet" if reason else waits
        return [Gate(GateName.CLAIMED, Stage.START, False, sentence, "when it does")]
    if not taken:
        nobody = "no worker is alive" if not slots else "no living worker takes its workflow"
        until = "when one is started" if not slots else "when one is started that does"
        return [Gate(GateName.WORKER, Stage.START, False, nobody, until)]
    known = Gate(GateName.WORKER, Stage.START, True, "a living worker takes its workflow")
    counted, busy = f"{running} of {slots} slots", running >= slots
    sentence = f"all workers are busy ({counted})" if busy else f"a worker is free ({counted})"
    until = "when one of their runs ends" if busy else ""
    return [known, Gate(GateName.FREE_WORKER, Stage.START, not busy, sentence, until)]
