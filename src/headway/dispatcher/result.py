"""What one cycle of the JobDispatcher did."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from headway.domain.admission import Admission, Verdict
from headway.domain.routing import LOCAL

# An event tells the commonest reasons; each entry's own is in its admission.
REASONS = 20


@dataclass(frozen=True)
class DispatchResult:
    """What one cycle did: counts, the decision about every entry, and when to run again: at once
    if there is *more* than one cycle looks at.

    Who dispatches *for_itself* is one of several who each do so, and may have *waited* for its
    turn.
    """

    led: bool
    loaded: int = 0
    dispatched: tuple[int, ...] = ()
    admissions: tuple[Admission, ...] = ()
    due_in: timedelta | None = None
    failed: tuple[int, ...] = ()
    unknown: Mapping[str, int] = field(default_factory=dict)
    more: bool = False
    by_server: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    nobody_else: bool = False
    for_itself: bool = False
    waited: bool = False

    @property
    def skipped(self) -> Counter[str]:
        """How many entries stay queued, by reason."""
        kept = (Verdict.SKIP, Verdict.STOP)
        return Counter(one.reason for one in self.admissions if one.verdict in kept)

    @property
    def reasons(self) -> dict[str, int]:
        """The commonest reasons, those of entries that nobody could run included."""
        nobody = {f"no living server knows {name!r}": many for name, many in self.unknown.items()}
        return dict((self.skipped + Counter(nobody)).most_common(REASONS))


def by_server(
    admissions: Sequence[Admission], dispatched: Mapping[int, int]
) -> dict[str, tuple[int, ...]]:
    """The executions for each task server, in the order in which they were admitted.

    >>> by_server([], {})
    {}
    """
    sent: dict[str, list[int]] = {}
    for entry in (one.entry for one in admissions):
        if entry.id in dispatched:
            sent.setdefault(entry.task_server, []).append(dispatched[entry.id])
    return {name: tuple(sent[name]) for name in sorted(sent, key=_own_first)}


def _own_first(name: str) -> tuple[bool, str]:
    """Waking the own workers takes no time; another server may take its own."""
    return (name != LOCAL, name)


def due_in(next_at: datetime | None, now: datetime) -> timedelta | None:
    """How long until *next_at*; what is over already, somebody is changing at this moment.

    >>> due_in(None, datetime(2030, 1, 1)) is None
    True
    """
    return None if next_at is None or next_at <= now else next_at - now
