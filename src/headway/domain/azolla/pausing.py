"""What real life leaves behind: the pause state of a dead letter, of a timeout, of a run that asked
for one. Pure; the sentences carry the manifest's external id and what really happened."""

from collections.abc import Iterable
from dataclasses import dataclass

from headway.domain.azolla import ids
from headway.domain.azolla.artifacts import PauseReason
from headway.domain.execution import Execution, ExecutionState, Failure, FailureCode, Outcome
from headway.domain.text import printable

ACTION_LIMIT = 240
MOST_ACTIONS = 3

# Both had all the time they were given; the second did not even answer when it was asked to stop.
OUT_OF_TIME = frozenset({FailureCode.JOB_TIMEOUT, FailureCode.STALE_IN_PROGRESS})


@dataclass(frozen=True)
class Pause:
    """A pause state that is still to be written; whose it is stands in the database.

    >>> Pause("pause-1", PauseReason.RUN_COMPLETE, ("publish the figures",)).actions
    ('publish the figures',)
    """

    pause_id: str
    reason: PauseReason
    actions: tuple[str, ...]


def pause_of_letter(letter_id: int, subject: str, why: str) -> Pause:
    """The pause of a dead letter of *subject*; *why* says what its last run failed with.

    >>> pause_of_letter(12, "load-users", "ValueError: bad row").actions[0]
    'look at dead letter 12 of load-users: ValueError: bad row'
    """
    actions = (
        f"look at dead letter {letter_id} of {subject}: {why}",
        f"mend {subject} and requeue it: headway dead-letters requeue {letter_id}",
        f"or leave it at that: headway dead-letters acknowledge {letter_id}",
    )
    return Pause(ids.pause_of_letter(letter_id), PauseReason.GATE_FAILED, _sentences(actions))


def why_dead(reason: str, failure_type: str | None, failure_message: str | None) -> str:
    """What the last run failed with, or why there is a dead letter if no run is on record.

    >>> why_dead("max retries exceeded", "ValueError", "bad row")
    'ValueError: bad row'
    >>> why_dead("its job killed its worker 3 times", None, None)
    'its job killed its worker 3 times'
    """
    if failure_type is None:
        return reason
    return f"{failure_type}: {failure_message}" if failure_message else failure_type


def pause_of_run(ended: Execution, outcome: Outcome) -> Pause | None:
    """The pause a run leaves that ran out of time, or completed and asked for one; else none."""
    if ended.state is ExecutionState.COMPLETED and outcome.hand_over:
        actions = tuple(f"{_subject(ended)}: {action}" for action in outcome.hand_over)
        return _of_run(ended, PauseReason.RUN_COMPLETE, actions)
    failure = ended.failure
    if ended.state is ExecutionState.FAILED and failure and failure.type in OUT_OF_TIME:
        return _of_run(ended, PauseReason.BUDGET_EXHAUSTED, _after_timeout(ended, failure))
    return None


def _after_timeout(ended: Execution, failure: Failure) -> tuple[str, ...]:
    if ended.external_id is None:
        allowed = "raise default_job_timeout"
    else:
        allowed = f"raise the timeout of {ended.external_id}"
    return (
        f"see why run {ended.id} of {_subject(ended)} took so long in {failure.step}: "
        f"{failure.message}",
        f"split its work, or {allowed}",
    )


def _of_run(ended: Execution, reason: PauseReason, actions: tuple[str, ...]) -> Pause:
    return Pause(ids.pause_of_execution(ended.id), reason, _sentences(actions))


def _subject(ended: Execution) -> str:
    return ended.external_id or f"ad-hoc {ended.workflow}"


def _sentences(actions: Iterable[str]) -> tuple[str, ...]:
    return tuple(sentence(action) for action in actions)


def sentence(text: str) -> str:
    r"""*text* on one bounded line that any terminal may show.

    >>> sentence("look\nat \x1b[31mit")
    'look at \\x1b[31mit'
    """
    return printable(" ".join(text.split()), ACTION_LIMIT)
