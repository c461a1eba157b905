"""Everything a chaos run leaves behind, ready to be judged."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from headway.domain.dead_letter import DeadLetter
from headway.domain.execution import Execution, ExecutionState
from headway.history import History
from headway.torture.evidence import Line
from headway.torture.plan import Plan

# What goes on for ever; everything else was asked for, and comes to its end.
ENDLESS = ("tick-", "chain-", "alarm", "sleeper-")


@dataclass(frozen=True)
class Sample:
    """How much held a slot at one moment, as the database says."""

    moment: float
    total: int
    by_group: dict[str, int]


@dataclass(frozen=True)
class Facts:
    """The plan, the evidence in files, the record in the database, and the samples."""

    plan: Plan
    lines: tuple[Line, ...]
    executions: tuple[Execution, ...]
    dead_letters: tuple[DeadLetter, ...]
    samples: tuple[Sample, ...]
    cutoff: float
    log: str = ""
    connections: tuple[int, int] = (0, 0)
    unfinished: tuple[str, ...] = ()
    ailments: tuple[str, ...] = ()
    _by_what: dict[str, list[Line]] = field(default_factory=dict, repr=False)

    def noted(self, what: str) -> list[Line]:
        """The lines of one kind, in their order."""
        if not self._by_what:
            for line in self.lines:
                self._by_what.setdefault(line.what, []).append(line)
        return self._by_what.get(what, [])

    def finished(self, state: ExecutionState) -> list[Execution]:
        """The executions that ended so."""
        return [one for one in self.executions if one.state is state]

    def outages(self) -> list[tuple[float, float]]:
        """Return from when until when the database was away, each time."""
        downs, ups = ([line.moment for line in self.noted(what)] for what in ("down", "up"))
        return list(zip(downs, ups, strict=False))

    def completed_per_number(self) -> dict[str, int]:
        """How often each piece of work was recorded as completed."""
        return {
            number: sum(one.state is ExecutionState.COMPLETED for one in runs)
            for number, runs in self.runs_per_number().items()
        }

    def runs_per_number(self) -> dict[str, list[Execution]]:
        """The record of each piece of work.

        Its body said which it was, or its client which entry it became: whoever dies between his
        claim and the first line of the body has said nothing.
        """
        started = {int(line.words[0]): line.words[1] for line in self.noted("start")}
        accepted = {line.words[1]: line.words[0] for line in self.noted("accepted")}
        runs: dict[str, list[Execution]] = defaultdict(list)
        for one in self.executions:
            number = started.get(one.id) or accepted.get(str(one.entry_id))
            if number is not None:
                runs[number].append(one)
        return runs


def seconds(moment: datetime | None) -> float:
    """A moment of the database as the files write it."""
    assert moment is not None
    return moment.astimezone(UTC).timestamp()


def unfinished(history: History, plan: Plan, cutoff: float) -> list[str]:
    """What was asked for before *cutoff* and is not over yet, a line for each."""
    before = datetime.fromtimestamp(cutoff, UTC)
    left = [f"entry {one.id} is queued" for one in history.queue.all() if one.created_at < before]
    live = (ExecutionState.PENDING, ExecutionState.IN_PROGRESS)
    left += [
        f"execution {one.id} of {one.external_id or one.workflow} is {one.state}"
        for one in history.executions.all(states=live)
        if one.dispatched_at < before or not (one.external_id or "").startswith(ENDLESS)
    ]
    dead = {letter.external_id for letter in history.dead_letters.awaiting()}
    for one in history.manifests.all():
        if one.external_id.startswith("tick-"):
            settled = one.settled_until
            if settled is None or seconds(settled) < cutoff - plan.tick_seconds:
                left.append(f"{one.external_id} is settled until {settled}")
        elif one.external_id.startswith("flaky-") and one.last_success_at is None:
            left.append(f"{one.external_id} has not succeeded")
        elif one.external_id.startswith("hopeless-") and one.external_id not in dead:
            left.append(f"{one.external_id} is not dead-lettered")
    return left


def first_words(lines: Iterable[Line]) -> set[str]:
    """The first word of each line."""
    return {line.words[0] for line in lines}
