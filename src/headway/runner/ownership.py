"""What a process owns in the database against what it runs: where the two differ, one gives way."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from headway.runner.cancellation import StopReason
from headway.store.executions import Owned

# In the database a reason is text: the manager's for a timeout, a person's own words otherwise.
TIMED_OUT = "timeout"


def stop_reason(flag: str) -> StopReason:
    """Why a run that was flagged in the database has to stop.

    >>> stop_reason("timeout"), stop_reason("not today")
    (<StopReason.TIMEOUT: 'timeout'>, <StopReason.REQUESTED: 'requested'>)
    """
    return StopReason.TIMEOUT if flag == TIMED_OUT else StopReason.REQUESTED


@dataclass(frozen=True)
class Verdict:
    """Which runs to stop and why, and what to hand back because nobody here runs it."""

    stop: dict[int, StopReason]
    hand_back: tuple[Owned, ...]


class Ownership:
    """Compares one look with the last.

    >>> ownership = Ownership()
    >>> ownership.compare([Owned(7, "me", None)], known=[8], known_now=[8])
    Verdict(stop={8: <StopReason.NOT_OURS: 'not_ours'>}, hand_back=())
    >>> ownership.compare([Owned(7, "me", None)], known=[], known_now=[]).hand_back
    (Owned(execution_id=7, owner='me', stop=None),)
    """

    def __init__(self) -> None:
        self._unknown: dict[int, frozenset[int]] = {}

    def compare(
        self,
        owned: Iterable[Owned],
        known: Collection[int],
        known_now: Collection[int],
        claims: frozenset[int] = frozenset(),
    ) -> Verdict:
        """What follows from what is *owned*, *known* here before that was asked and afterwards.

        What is owned but unknown in two looks is a claim whose answer was lost. A claim that is
        on its way is not lost yet: as long as one of the *claims* that were under way when it was
        first seen still is, nobody knows.
        """
        by_id = {one.execution_id: one for one in owned}
        unknown = by_id.keys() - set(known_now)
        waits_for = {key: self._unknown.get(key, claims) & claims for key in unknown}
        lost = {key for key in unknown & self._unknown.keys() if not waits_for[key]}
        self._unknown = {key: waits_for[key] for key in unknown - lost}
        stop = {key: StopReason.NOT_OURS for key in known if key not in by_id}
        stop |= {key: stop_reason(one.stop) for key, one in by_id.items() if one.stop is not None}
        return Verdict(stop, tuple(by_id[key] for key in sorted(lost)))
