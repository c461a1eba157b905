"""Groups that are full or disabled: whoever waits for one of them does not starve."""

from datetime import datetime

from headway.dispatcher.workflow import DispatchEnv
from headway.store import shut_groups

# How exactly it is known when a group was last full or disabled, in parts of ``starvation_after``.
NOTED_WITHIN = 10


class ShutGroups:
    """Notes which groups are shut; a cycle that has dispatched something leaves it to the next.

    Unless they all do: then it is noted as often as that is asked for at all.

    >>> ShutGroups().note(env, in_a_hurry=True)  # doctest: +SKIP
    """

    def __init__(self) -> None:
        self._noted_at: datetime | None = None

    def note(self, env: DispatchEnv, *, in_a_hurry: bool) -> None:
        """Note the groups that are full or disabled now, while something of theirs is queued."""
        every = env.settings.starvation_after / NOTED_WITHIN
        recent = self._noted_at is not None and env.tx.now - self._noted_at < every
        if in_a_hurry and recent:
            return
        shut_groups.note_shut_groups(env.tx, every)
        self._noted_at = env.tx.now
