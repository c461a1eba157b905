"""Why something runs or does not: the gates it has to pass, each with a sentence.

A gate is named after what has to hold, so that ✓ beside its name means what it says.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from headway.domain.text import shown


class GateName(StrEnum):
    """What has to hold before a run: of a manifest to be queued, of an entry to be dispatched, of
    an execution to start.

    >>> GateName("group cap") is GateName.GROUP_CAP
    True
    """

    READABLE = "readable"
    ENABLED = "enabled"
    GROUP_ENABLED = "group enabled"
    NO_DEAD_LETTER = "no dead letter"
    NOT_QUEUED = "not queued"
    NOT_ACTIVE = "not active"
    DUE = "due"
    NOT_EXCLUDED = "not excluded"
    NOT_MISSED = "not missed"
    PARENTS = "parents"
    WAKE_UP = "wake up"
    SHARE = "share"
    MANAGER = "manager"
    DECLARED = "declared"
    SOUND = "sound"
    DELAY_OVER = "delay over"
    SINGLE_FLIGHT = "single flight"
    GROUP_CAP = "group cap"
    GLOBAL_CAP = "global cap"
    WORKER = "worker"
    FREE_WORKER = "free worker"
    TURN = "turn"
    DISPATCHER = "dispatcher"
    CLAIMED = "claimed"


class Stage(StrEnum):
    """Who asks: the manager before it queues, the dispatcher, or the worker before it starts.

    >>> Stage.DISPATCH.value
    'dispatch'
    """

    QUEUE = "queue"
    DISPATCH = "dispatch"
    START = "start"


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate: whether it is passed, why or why not, and what has to happen until it can be.

    ``at`` is the moment at which that can change by itself, where it is known.

    >>> Gate(GateName.ENABLED, Stage.QUEUE, False, "the manifest is disabled").passed
    False
    """

    name: GateName
    stage: Stage
    passed: bool
    sentence: str
    until: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Why:
    """The answer in one sentence, and the gates behind it in the order in which they are asked.

    The first of ``waits_for`` is what the answer names. ``entry`` and ``execution`` are the ids of
    what it is about, if it has come so far.

    >>> print(Why("load-users", "load-users is running"))
    load-users is running
    """

    subject: str
    answer: str
    gates: tuple[Gate, ...] = ()
    entry: int | None = None
    execution: int | None = None

    def __str__(self) -> str:
        return self.answer

    @property
    def waits_for(self) -> tuple[Gate, ...]:
        """The gates that are not passed."""
        return tuple(gate for gate in self.gates if not gate.passed)

    def told(self) -> dict[str, Any]:
        """The same in words and numbers that JSON has.

        >>> Why("load-users", "load-users is running").told()["gates"]
        []
        """
        gates = [{**asdict(gate), "at": gate.at and gate.at.isoformat()} for gate in self.gates]
        return {**asdict(self), "gates": gates}

    def passes(self, stage: Stage) -> bool:
        """Whether every gate of *stage* is passed, of which there has to be one."""
        asked = [gate.passed for gate in self.gates if gate.stage is stage]
        return bool(asked) and all(asked)


def first_held(gates: Iterable[Gate], stage: Stage) -> Gate | None:
    """The first gate of *stage* that is not passed."""
    return next((gate for gate in gates if gate.stage is stage and not gate.passed), None)


def does_not_run(subject: str, gate: Gate) -> str:
    """The answer about what waits before *gate*.

    >>> full = Gate(GateName.GROUP_CAP, Stage.DISPATCH, False, "its group is full", "when one ends")
    >>> does_not_run("load-users", full)
    'load-users does not run because its group is full; it can when one ends'
    """
    ending = f"; it can {gate.until}" if gate.until else ""
    return f"{subject} does not run because {gate.sentence}{ending}"


# How the reasons that manager and dispatcher give begin, and what makes a clause of them.
_OPENINGS = (
    ("first run not due", "its "),
    (("not ", "due", "overdue", "already ", "dormant", "dead-lettered"), "it is "),
    (("has ", "waits ", "missed "), "it "),
    ("parent disabled", "it has a "),
)


def as_clause(reason: str) -> str:
    """A reason of the manager as something that can stand after "because".

    >>> as_clause("not due before noon"), as_clause("a parent was removed")
    ('it is not due before noon', 'a parent was removed')
    """
    if reason == "first run":
        return "its first run is due"
    for beginnings, opening in _OPENINGS:
        if reason.startswith(beginnings):
            return opening + reason.replace("first run not due", "first run is not due")
    return reason


def listed(names: Iterable[str], more: int = 0) -> str:
    """Names in a row, and how many are not among them.

    >>> listed(["load-1", "load-2"], 3)
    "'load-1', 'load-2' and 3 more"
    """
    row = ", ".join(shown(name) for name in names)
    return f"{row} and {more} more" if more > 0 else row
