"""What must hold beside restarts of the database. Pure: facts in, breaches out."""

from collections.abc import Iterator

from headway.domain.execution import ExecutionState
from headway.torture.facts import Facts, first_words
from headway.torture.processes import Check

ENOUGH_RESTARTS = 2
DORMANT = ("sleeper-", "woken-by-")


def starts_beside_a_restart_come_up(facts: Facts) -> Iterator[str]:
    """I17: a process that starts while the database restarts waits, and comes up."""
    served = {line.pid: line.moment for line in facts.noted("serves")}
    exited = {line.words[0]: line.words[1] for line in facts.noted("exited")}
    taken = first_words(facts.noted("killed")) | first_words(facts.noted("terminated"))
    beside = [
        line.pid
        for line in facts.noted("begins")
        if any(line.moment < up and served.get(line.pid, up) > down for down, up in facts.outages())
    ]
    for pid in beside:
        if (status := exited.get(str(pid))) is not None and pid not in served:
            yield f"process {pid}, started beside a restart, ended with status {status}"
        elif pid not in served and str(pid) not in taken:
            yield f"process {pid}, started beside a restart, did not come up"
    if _were_enough(facts) and not starts_that_waited(facts):
        yield "no start waited for the database: the run proved nothing about that"


def activating_outlasts_a_restart(facts: Facts) -> Iterator[str]:
    """I18: a job that activates while the database restarts waits, and is charged with nothing."""
    activating = {int(line.words[2]) for line in facts.noted("asks")}
    for one in facts.finished(ExecutionState.FAILED):
        if one.id in activating and not one.lost:
            told = one.failure.summary if one.failure is not None else "no reason"
            yield f"execution {one.id} of {one.external_id} failed while it activated: {told}"
    if _were_enough(facts) and not activations_that_waited(facts):
        yield "no activation waited for the database: the run proved nothing about that"


def activations_are_written_once(facts: Facts) -> Iterator[str]:
    """I18: an activation is one entry, of the dependent it names and with the input given."""
    asked = {line.words[0]: line.words[1] for line in facts.noted("asks")}
    started = {int(line.words[0]): line.words[1] for line in facts.noted("start")}
    for one in facts.executions:
        number = started.get(one.id)
        if number is None or not (one.external_id or "").startswith(DORMANT):
            continue
        if asked.get(number) != one.external_id:
            yield f"{one.external_id} ran with the input of {number}, which is no activation of it"
    runs = facts.runs_per_number()
    for number, name in asked.items():
        if (entries := len({one.entry_id for one in runs.get(number, ())})) > 1:
            yield f"the activation {number} of {name} was queued {entries} times"


def starts_that_waited(facts: Facts) -> set[int]:
    """The processes that waited for the database before they came up."""
    return {line.pid for line in facts.noted("waits")}


def activations_that_waited(facts: Facts) -> set[str]:
    """The activations that were asked for before an outage ended, and answered after that."""
    asked = {line.words[0]: line.moment for line in facts.noted("asks")}
    ups = [line.moment for line in facts.noted("up")]
    return {
        line.words[0]
        for line in facts.noted("activated")
        if any(asked.get(line.words[0], up) < up < line.moment for up in ups)
    }


def _were_enough(facts: Facts) -> bool:
    """A short run has too few restarts to say whether anything could have met one."""
    return len(facts.outages()) >= ENOUGH_RESTARTS


OUTAGES: tuple[Check, ...] = (
    starts_beside_a_restart_come_up,
    activating_outlasts_a_restart,
    activations_are_written_once,
)
