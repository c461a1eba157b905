"""What the dispatcher asks about one queue entry, gate by gate. Pure: no database, no clock.

What it asks in SQL comes as answers in a :class:`Standing`; what it decides about limits is asked
here of the functions that it calls as well.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from headway.domain.admission import Active, globally_full, group_full, waits_for_worker
from headway.domain.dispatching import Limits
from headway.domain.due import as_text
from headway.domain.faults import fault_of
from headway.domain.gates import Gate, GateName, Stage, listed
from headway.domain.resting import resting_until, why_resting
from headway.domain.routing import LOCAL
from headway.domain.work_queue import WorkQueueEntry

NAMED_HOLDERS = 5


@dataclass(frozen=True, slots=True)
class Refusal:
    """The last refusal of an entry by its task server, and how often it was refused so far.

    >>> print(Refusal("gpu", 2, "ConnectionError('no route')"))
    task server 'gpu' refused it 2 times, last with: ConnectionError('no route')
    """

    task_server: str
    count: int
    reason: str

    def __str__(self) -> str:
        often = "once, with" if self.count == 1 else f"{self.count} times, last with"
        return f"task server {self.task_server!r} refused it {often}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Standing:
    """An entry, and the dispatcher's conditions as the database answers them.

    One with *held* is not in the queue yet: it follows what its manifest has there.

    >>> from headway.domain.work_queue import Source
    >>> entry = WorkQueueEntry(7, "work", Source.AD_HOC, 0, None, None, None, None, None, 0, None)
    >>> Standing(entry, {}).holds(GateName.DELAY_OVER)
    True
    """

    entry: WorkQueueEntry
    answers: Mapping[GateName, bool]
    scheduled_at: datetime | None = None
    attempts: int = 0
    held: bool = False
    refusal: Refusal | None = None

    def holds(self, name: GateName) -> bool:
        """Whether this condition holds; one that was not asked does."""
        return self.answers.get(name, True)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an entry shares with others: limits, what holds their slots, and who would run it.

    ``holders`` are some of the runs in the entry's group. ``fails_at`` is when it is given up
    because nobody knows its workflow. ``absent`` is why its task server does not answer.

    >>> Surroundings(Active(0, {}), Limits()).taken
    True
    """

    active: Active
    limits: Limits
    holders: tuple[str, ...] = ()
    taken: bool = True
    fails_at: datetime | None = None
    absent: str = ""


def entry_gates(standing: Standing, around: Surroundings, now: datetime) -> list[Gate]:
    """The gates an entry has to pass to be dispatched, but for its turn among others."""
    return [
        *_own(standing),
        *_delays(standing, now),
        *_alone(standing),
        *limit_gates(standing.entry, around),
    ]


def limit_gates(entry: WorkQueueEntry, around: Surroundings) -> Iterator[Gate]:
    """The limits and who would run it; asked as well about what is not queued yet."""
    yield from _group_cap(entry, around)
    yield _global_cap(entry, around)
    yield _worker(entry, around)
    if around.taken and entry.task_server == LOCAL and around.limits.slots is not None:
        yield _free_worker(entry, around)


def turn_gate(admitted: bool) -> Gate:
    """Whether a cycle now would admit it, seeing all that waits with it."""
    if admitted:
        return _gate(GateName.TURN, True, "a slot is left when its turn comes")
    sentence = "what goes ahead of it takes the free slots"
    return _gate(GateName.TURN, False, sentence, "in a later cycle")


def _own(standing: Standing) -> Iterator[Gate]:
    """What only somebody can change."""
    entry = standing.entry
    if not standing.holds(GateName.DECLARED):
        yield _gate(GateName.DECLARED, False, "its manifest was removed")
    if fault := fault_of(entry):
        yield _gate(GateName.SOUND, False, f"{fault}, so it fails in the next cycle")
    if entry.manifest_id is None:
        return
    asked = "somebody asked for this run, so that does not matter"
    automatic = entry.source.automatic
    enabled = standing.holds(GateName.ENABLED)
    passed = "the manifest is enabled" if automatic else asked
    sentence = passed if enabled else "the manifest is disabled"
    yield _gate(GateName.ENABLED, enabled, sentence, "when somebody enables it")
    group, is_open = f"group {entry.group_name!r}", standing.holds(GateName.GROUP_ENABLED)
    sentence = f"{group} is {'enabled' if is_open else 'disabled'}"
    yield _gate(GateName.GROUP_ENABLED, is_open, sentence, "when somebody enables the group")
    free = standing.holds(GateName.NO_DEAD_LETTER)
    passed = "no dead letter awaits intervention" if automatic else asked
    sentence = passed if free else "a dead letter awaits intervention"
    until = "when somebody requeues or acknowledges that"
    yield _gate(GateName.NO_DEAD_LETTER, free, sentence, until)


def _delays(standing: Standing, now: datetime) -> Iterator[Gate]:
    entry, moment, refusal = standing.entry, standing.scheduled_at, standing.refusal
    if standing.holds(GateName.DELAY_OVER) or moment is None:
        over = "it waits for no later time" if refusal is None else f"{refusal}; its pause is over"
        yield _gate(GateName.DELAY_OVER, True, over)
    else:
        what = f"retry {standing.attempts} waits" if standing.attempts else "it waits"
        because = "" if refusal is None else f"{refusal}; "
        sentence = f"{because}{what} until {as_text(moment)}"
        yield Gate(GateName.DELAY_OVER, Stage.DISPATCH, False, sentence, "then", moment)
    if entry.resting is None:
        return
    end = resting_until([entry], now).get(entry.resting)
    if end is None:
        yield _gate(GateName.NOT_EXCLUDED, True, "nothing excludes this moment")
    else:
        until = f"at {as_text(end)}"
        sentence = why_resting(entry.resting, now)
        yield Gate(GateName.NOT_EXCLUDED, Stage.DISPATCH, False, sentence, until, end)


def _alone(standing: Standing) -> Iterator[Gate]:
    """One run of a manifest at a time, in the order of its entries."""
    entry = standing.entry
    if entry.manifest_id is None:
        return
    alone, first = standing.holds(GateName.SINGLE_FLIGHT), standing.holds(GateName.TURN)
    name, until = GateName.SINGLE_FLIGHT, "when that run has ended"
    if not alone:
        yield _gate(name, False, "another run of the manifest is going on", until)
    elif standing.held or not first:
        until = "when that one has run"
        yield _gate(name, False, "another entry of the manifest goes first", until)
    else:
        yield _gate(name, True, "no other run of the manifest is in its way")


def _group_cap(entry: WorkQueueEntry, around: Surroundings) -> Iterator[Gate]:
    if entry.group_id is None:
        return
    count, cap = around.active.by_group.get(entry.group_id, 0), entry.group_max_active_jobs
    group = f"its group {entry.group_name!r}"
    if group_full(entry, around.active.by_group):
        named = around.holders[:NAMED_HOLDERS]
        who = f": {listed(named, count - len(named))}" if named else ""
        sentence = f"{group} is full ({count} of {cap}{who})"
        yield _gate(GateName.GROUP_CAP, False, sentence, "when one of them ends")
    else:
        sentence = f"{group} has no cap" if cap is None else f"{group} has room ({count} of {cap})"
        yield _gate(GateName.GROUP_CAP, True, sentence)


def _global_cap(entry: WorkQueueEntry, around: Surroundings) -> Gate:
    limits, total = around.limits, around.active.total
    most = limits.max_active_jobs
    if globally_full(entry, total, most, limits.excluded):
        sentence = f"the global limit is reached ({total} of {most})"
        return _gate(GateName.GLOBAL_CAP, False, sentence, "when any run ends")
    if entry.workflow in limits.excluded:
        return _gate(GateName.GLOBAL_CAP, True, "its workflow is outside the global limit")
    counted = "there is none" if most is None else f"{total} of {most}"
    return _gate(GateName.GLOBAL_CAP, True, f"the global limit is not reached ({counted})")


def _worker(entry: WorkQueueEntry, around: Surroundings) -> Gate:
    elsewhere = entry.task_server != LOCAL
    server = f"task server {entry.task_server!r}"
    if around.taken:
        sentence = f"it goes to {server}" if elsewhere else "somebody takes its workflow"
        return _gate(GateName.WORKER, True, sentence)
    if elsewhere:
        return _gate(GateName.WORKER, False, absent(server, around.absent), "when it does")
    if not around.limits.slots:
        return _gate(GateName.WORKER, False, "no worker is alive", "when one is started")
    given_up = f" (it fails at {as_text(around.fails_at)})" if around.fails_at else ""
    sentence = f"no living server takes its workflow {entry.workflow!r}{given_up}"
    return _gate(GateName.WORKER, False, sentence, "when one is started that does")


def absent(server: str, reason: str) -> str:
    """The sentence about a task server that does not answer, with the *reason* if it is known.

    >>> absent("task server 'celery'", "OSError: no route")
    "task server 'celery' does not answer (OSError: no route)"
    """
    return f"{server} does not answer ({reason})" if reason else f"{server} does not answer"


def _free_worker(entry: WorkQueueEntry, around: Surroundings) -> Gate:
    busy = waits_for_worker(entry, around.limits.room(around.active))
    counted = f"{around.active.local} for {around.limits.slots} slots"
    if busy:
        sentence = f"no worker is free ({counted})"
        return _gate(GateName.FREE_WORKER, False, sentence, "when one of their runs ends")
    return _gate(GateName.FREE_WORKER, True, f"the workers have room ({counted})")


def _gate(name: GateName, passed: bool, sentence: str, until: str = "") -> Gate:
    return Gate(name, Stage.DISPATCH, passed, sentence, "" if passed else until)
