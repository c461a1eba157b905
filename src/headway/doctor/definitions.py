"""Checks of manifests, edges and dead letters."""

from collections.abc import Iterator
from datetime import timedelta

from headway.doctor.findings import Check, Look, Patient, Severity, page_by_page
from headway.manager.decide import Decision, decide
from headway.manager.sweep import sleeps_too_long
from headway.store import examining_definitions as definitions
from headway.store import manifests, wakes
from headway.store.wakes import Scope

PAGE = 1000
TOLD_EVERY = 10_000
AHEAD = timedelta(hours=1)


def _drifted(look: Look) -> Iterator[Decision]:
    """Those the manager would look at too late; what is about to be woken is not among them."""
    for decisions in _decided(look):
        late = {one.view.manifest_id: one for one in decisions if sleeps_too_long(one, look.tx.now)}
        awaited = definitions.about_to_be_woken(look.tx, late) if late else set()
        yield from (one for key, one in late.items() if key not in awaited)


def _decided(look: Look) -> Iterator[list[Decision]]:
    """The decision about every manifest, page by page."""
    position, looked_at, defaults = 0, 0, look.settings.manifest_defaults
    while views := manifests.load_next(look.tx, position, PAGE):
        yield [decide(view, (), look.tx.now, defaults) for view in views]
        position = views[-1].manifest_id
        looked_at += len(views)
        if looked_at % TOLD_EVERY == 0:
            look.tell(f"looked at {looked_at:,} manifests")


def _late(look: Look) -> list[str]:
    return [f"manifest {one.view.external_id}: {_times(one)}" for one in _drifted(look)]


def _times(one: Decision) -> str:
    stored = "never" if one.view.wake_at is None else f"{one.view.wake_at:%Y-%m-%d %H:%M:%S}"
    needed = "now" if one.wake_at is None else f"{one.wake_at:%Y-%m-%d %H:%M:%S}"
    return f"looked at {stored}, due {needed}"


def _wake(patient: Patient) -> int:
    """Found by reading alone, which may take a while, and written in small transactions."""
    with patient.reading() as look:
        late = [(one.view.manifest_id, Scope.SELF) for one in _drifted(look)]
    for start in range(0, len(late), PAGE):
        with patient.writing() as look:
            wakes.leave_wakes(look.tx, late[start : start + PAGE])
    return len(late)


def _unreadable(look: Look) -> list[str]:
    decisions = (one for page in _decided(look) for one in page)
    return [
        f"manifest {one.view.external_id}: {one.view.trouble}"
        for one in decisions
        if one.view.trouble is not None
    ]


SLEEPING_TOO_LONG = Check(
    "sleeping-too-long",
    Severity.ERROR,
    "The manager would look at these manifests later than they are due.",
    "each is looked at in the next cycle",
    find=_late,
    repair=_wake,
    twice=True,
    by_settings=True,
)
UNREADABLE = Check(
    "unreadable-manifests",
    Severity.ERROR,
    "The schedule or the exclusions of these manifests cannot be read, so that they do not run.",
    "write what the code says: headway apply MODULE:APP",
    find=_unreadable,
)
SETTLED_AHEAD = Check(
    "settled-ahead",
    Severity.ERROR,
    "The occurrences of these manifests count as dealt with far into the future: they do not run.",
    "they run again from their next occurrence on",
    find=lambda look: definitions.settled_ahead(look.tx, look.ago(-AHEAD)),
    repair=page_by_page(lambda look: definitions.settle_until_now(look.tx, look.ago(-AHEAD))),
)
WITHOUT_STATE = Check(
    "manifests-without-state",
    Severity.ERROR,
    "The manager cannot see these manifests: their row of state is missing.",
    "the row is written, and the manifest counts as one that never ran",
    find=lambda look: definitions.without_state(look.tx),
    repair=page_by_page(lambda look: definitions.give_state(look.tx)),
)
WITHOUT_GROUP = Check(
    "manifests-without-group",
    Severity.ERROR,
    "The manager cannot see these manifests: their group is missing.",
    "take them out of the code, apply that, put them back and apply again",
    find=lambda look: definitions.without_group(look.tx),
)
CIRCLES = Check(
    "circles",
    Severity.ERROR,
    "These wait for one another in a circle, so that none of them is ever due by its parent.",
    "take one of the dependencies out of the code, and apply that",
    find=lambda look: definitions.circles(look.tx),
)
WAITING_TWICE = Check(
    "dead-letters-twice",
    Severity.ERROR,
    "These dead letters wait for a person beside a newer one of the same manifest.",
    "they are acknowledged, and the newer one stays",
    find=lambda look: definitions.waiting_twice(look.tx),
    repair=page_by_page(lambda look: definitions.resolve_waiting_twice(look.tx)),
)
WAITING_FOR_THE_REMOVED = Check(
    "dead-letters-of-the-removed",
    Severity.WARNING,
    "These dead letters wait for a person, but their manifest was removed.",
    "they are acknowledged",
    find=lambda look: definitions.waiting_for_the_removed(look.tx),
    repair=page_by_page(lambda look: definitions.acknowledge_the_removed(look.tx)),
)
