"""How a chaos run goes: its load and its faults, drawn from a seed."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from headway.wakeups import Role

CAPS = (1, 2, 5, 8, 13)
GLOBAL_CAP = 24

WARM_UP = 10.0


class Fault(StrEnum):
    """What is done to the deployment."""

    KILL_WORKER = "kill -9 of a worker"
    KILL_SCHEDULER = "kill -9 of a scheduler"
    LONG_STOP = "SIGSTOP for three leases"
    SHORT_STOP = "SIGSTOP for a moment"
    TERMINATE = "SIGTERM"
    RESTART_FAST = "database restarted, fast"
    RESTART_IMMEDIATE = "database restarted, immediate"
    KILL_DATABASE = "database killed"
    END_SESSION = "session ended"
    CHANGE_GROUP = "cap lowered or group switched off"


# Per minute of faults.
RATES = {
    Fault.KILL_WORKER: 15.0,
    Fault.KILL_SCHEDULER: 7.0,
    Fault.LONG_STOP: 4.4,
    Fault.SHORT_STOP: 4.0,
    Fault.TERMINATE: 5.0,
    Fault.RESTART_FAST: 0.8,
    Fault.RESTART_IMMEDIATE: 0.8,
    Fault.KILL_DATABASE: 0.6,
    Fault.END_SESSION: 44.0,
    Fault.CHANGE_GROUP: 6.0,
}


class Moment(StrEnum):
    """When something begins beside a restart of the database."""

    BEFORE = "before"  # shortly before anything happens to the database
    UNANSWERED = "unanswered"  # commits are written, and never answered
    AWAY = "away"  # the server is down


# When the jobs begin that activate dependents beside one restart; which job when is drawn.
SIRENS = (Moment.BEFORE, Moment.UNANSWERED, Moment.UNANSWERED, Moment.AWAY)
LONGEST_LEAD = 0.5
UNANSWERED_SECONDS = (0.2, 0.4)


@dataclass(frozen=True)
class Beside:
    """What begins beside one restart of the database.

    A process with each of the roles of *starts* is replaced, and its replacement starts at that
    moment. The job number n that activates dependents begins to at the moment ``sirens[n]``.
    *lead* are the seconds from the moment BEFORE to UNANSWERED, and *unanswered* those from there
    to the stop of the server.
    """

    starts: tuple[tuple[Role, Moment], ...]
    sirens: tuple[Moment, ...]
    lead: float
    unanswered: float


NEEDS_OWN_SERVER = frozenset({Fault.RESTART_FAST, Fault.RESTART_IMMEDIATE, Fault.KILL_DATABASE})


@dataclass(frozen=True)
class Plan:
    """One run: how long, how many of what, and the seed everything is drawn from.

    Schedulers and workers are processes of their own, or *together* in one each.

    >>> Plan(seed=7, minutes=5).schedulers
    4
    """

    seed: int
    minutes: float
    schedulers: int = 4
    workers: int = 6
    slots: int = 4
    lease: float = 6.0
    max_crashes: int = 5
    tickers: int = 80
    tick_seconds: int = 4
    capped: int = 60
    flaky: int = 20
    hopeless: int = 5
    poisonous: int = 2
    chains: int = 4
    jobs_per_second: float = 45.0
    together: bool = False

    @property
    def seconds(self) -> float:
        """How long there are load and faults."""
        return self.minutes * 60

    def faults(self, *, own_server: bool) -> list[tuple[float, Fault]]:
        """When what is done, in order.

        >>> [fault for _, fault in Plan(seed=7, minutes=0).faults(own_server=True)]
        []
        """
        chance = Random(f"{self.seed}:faults")
        wanted = [fault for fault in Fault if own_server or fault not in NEEDS_OWN_SERVER]
        drawn = [
            (chance.uniform(WARM_UP, self.seconds), fault)
            for fault in wanted
            for _ in range(_times(RATES[fault], self.seconds - WARM_UP))
        ]
        return sorted(drawn)

    def beside_restarts(self) -> Iterator[Beside]:
        """Yield what begins beside the first restart of the database, the second, and so on.

        >>> len(next(Plan(seed=7, minutes=5).beside_restarts()).starts)
        3
        """
        chance = Random(f"{self.seed}:beside")
        while True:
            yield _beside(chance)


def _beside(chance: Random) -> Beside:
    roles = (Role.MANAGER, Role.WORKER)
    caught = chance.choice(roles)
    return Beside(
        starts=((caught, Moment.BEFORE), *((role, Moment.AWAY) for role in roles)),
        sirens=tuple(chance.sample(SIRENS, len(SIRENS))),
        lead=chance.uniform(0, LONGEST_LEAD),
        unanswered=chance.uniform(*UNANSWERED_SECONDS),
    )


def _times(per_minute: float, seconds: float) -> int:
    return max(0, round(per_minute * seconds / 60))
