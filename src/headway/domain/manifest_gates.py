"""What the manager asks about one manifest, gate by gate. Pure: no database, no clock.

Every answer is that of :mod:`headway.domain.readiness`, by which the manager decides.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from headway.domain.due import Due, as_text
from headway.domain.gates import Gate, GateName, Stage, as_clause
from headway.domain.manifest import DEPENDENTS, DORMANT, ManifestDispatchView
from headway.domain.readiness import (
    Defaults,
    deserves_dead_letter,
    due_of,
    guards,
    next_attempt,
)

BY_TIME = (GateName.DUE, GateName.NOT_EXCLUDED, GateName.NOT_MISSED)

_ON_TIME = {
    GateName.DUE: "it is due",
    GateName.NOT_EXCLUDED: "nothing excludes this moment",
    GateName.NOT_MISSED: "it was not missed",
}
_LIFTED = {
    GateName.ENABLED: "when somebody enables it",
    GateName.GROUP_ENABLED: "when somebody enables the group",
    GateName.NO_DEAD_LETTER: "when somebody requeues or acknowledges that",
    GateName.NOT_QUEUED: "when that has run",
    GateName.NOT_ACTIVE: "when that run has ended",
}


@dataclass(frozen=True, slots=True)
class Present:
    """What there is of a manifest at this moment, in words; empty where there is nothing.

    >>> Present(queued="entry 7").active
    ''
    """

    queued: str = ""
    active: str = ""
    dead_letter: str = ""

    def told(self, gate: GateName) -> str:
        """What a sentence about *gate* adds."""
        words = {
            GateName.NOT_QUEUED: self.queued,
            GateName.NOT_ACTIVE: self.active,
            GateName.NO_DEAD_LETTER: self.dead_letter,
        }.get(gate, "")
        return f" ({words})" if words else ""


def queue_gates(
    view: ManifestDispatchView, now: datetime, defaults: Defaults, present: Present
) -> list[Gate]:
    """The gates a manifest has to pass to be queued; all passed: a cycle now would queue it."""
    if view.trouble is not None:
        sentence = f"its row cannot be read: {view.trouble}"
        return [Gate(GateName.READABLE, Stage.QUEUE, False, sentence, "when that is mended")]
    due = due_of(view, now, defaults)
    return [*_guarded(view, defaults, due, present), *_timed(view, due)]


def delay_gate(view: ManifestDispatchView, now: datetime, defaults: Defaults) -> Gate:
    """Whether an entry that is queued now would have to wait for its next attempt."""
    delay, not_before = next_attempt(view, now, defaults)
    if not_before <= now:
        return Gate(GateName.DELAY_OVER, Stage.DISPATCH, True, "no retry has to wait")
    sentence = f"retry {view.failed_count} waits {delay}, until {as_text(not_before)}"
    return Gate(GateName.DELAY_OVER, Stage.DISPATCH, False, sentence, "then", not_before)


def _guarded(
    view: ManifestDispatchView, defaults: Defaults, due: Due, present: Present
) -> Iterator[Gate]:
    doomed = {view.manifest_id} if deserves_dead_letter(view, defaults) else set[int]()
    asked = guards(view, doomed)
    for name in dict.fromkeys(guard.gate for guard in asked):
        reason = next((one.reason for one in asked if one.gate is name and one.held), None)
        if name is GateName.NOT_ACTIVE and due.gate is name:
            reason = reason or due.reason
        if reason is None:
            yield Gate(name, Stage.QUEUE, True, _passed(view, name))
        else:
            sentence = as_clause(reason) + present.told(name)
            yield Gate(name, Stage.QUEUE, False, sentence, _LIFTED[name])


def _passed(view: ManifestDispatchView, name: GateName) -> str:
    overlaps = view.has_active_execution and view.may_overlap
    return {
        GateName.ENABLED: "the manifest is enabled",
        GateName.GROUP_ENABLED: f"group {view.group_name!r} is enabled",
        GateName.NO_DEAD_LETTER: "no dead letter awaits intervention",
        GateName.NOT_QUEUED: "nothing queued holds it back",
        GateName.NOT_ACTIVE: "its runs may overlap" if overlaps else "no run of it is going on",
    }[name]


def _timed(view: ManifestDispatchView, due: Due) -> Iterator[Gate]:
    """By time, or after its parents; what was not asked, because it is not due, is left out."""
    if view.kind in DEPENDENTS:
        until = "" if due.due else _parents_do(view)
        yield Gate(GateName.PARENTS, Stage.QUEUE, due.due, as_clause(due.reason), until)
        return
    if due.gate not in BY_TIME:
        return
    passed = BY_TIME if due.due else BY_TIME[: BY_TIME.index(due.gate)]
    general = dict(
        zip(
            BY_TIME, ("it is due", "nothing excludes this moment", "it was not missed"), strict=True
        )
    )
    if due.due:
        general[GateName.DUE] = as_clause(due.reason)
    for name in passed:
        yield Gate(name, Stage.QUEUE, True, general[name])
    if not due.due:
        yield Gate(due.gate, Stage.QUEUE, False, as_clause(due.reason), _comes(due), due.next_at)


def _comes(due: Due) -> str:
    if due.next_at is None:
        return "when somebody triggers it"
    return "then" if due.gate is GateName.DUE else f"at {as_text(due.next_at)}"


def _parents_do(view: ManifestDispatchView) -> str:
    edges = view.edges.values()
    if view.kind == DORMANT:
        return "then"
    if any(edge.parent_removed for edge in edges) or not edges:
        return "when its parents are declared again"
    if not all(edge.parent_enabled for edge in edges):
        return "when somebody enables that parent"
    return "then"
