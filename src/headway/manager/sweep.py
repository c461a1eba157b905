"""The safety net: looks at every manifest in turn and wakes those that sleep too long.

Nothing should ever be found. ``wake_at`` may be early and is never late, as long as whoever makes a
manifest due sooner leaves a wake-up; the sweep is for what nobody thought of, for rows edited by
hand, and for new rules of time, which move due times without anything having happened.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from headway.config import Settings
from headway.manager.decide import Decision, Verdict, decide
from headway.manager.time_rules import time_rules
from headway.observe import Observer
from headway.store import manifests, marks, wakes
from headway.store.engine import Store
from headway.store.locks import Lock
from headway.store.transaction import Transaction
from headway.store.wakes import Scope

CHUNK = 1000
RULES = "time rules"
POSITION = "swept up to manifest"


@dataclass(frozen=True)
class Swept:
    """How many manifests were looked at and how many of them slept too long.

    ``hurry`` says that more are to be looked at before anything can be relied on.
    """

    led: bool
    looked_at: int = 0
    woken: tuple[str, ...] = ()
    hurry: bool = False


class Sweep:
    """Takes the next chunk of manifests each time, and begins again after the last.

    >>> Sweep(store, settings, observer).run_once().woken  # doctest: +SKIP
    ()
    """

    def __init__(
        self, store: Store, settings: Settings, observer: Observer, rules: str | None = None
    ) -> None:
        self._store = store
        self._defaults = settings.manifest_defaults
        self._observer = observer
        self._rules = rules or time_rules()
        self._hurry: bool | None = None

    def run_once(self) -> Swept:
        """Look at one chunk; where another server sweeps, do nothing."""
        with self._store.leading(Lock.SWEEP) as tx:
            if tx is None:
                return Swept(led=False)
            hurry, position = self._where(tx)
            views = manifests.load_next(tx, position, CHUNK)
            decisions = [decide(view, (), tx.now, self._defaults) for view in views]
            late = [one for one in decisions if sleeps_too_long(one, tx.now)]
            wakes.leave_wakes(tx, [(one.view.manifest_id, Scope.SELF) for one in late])
            more = len(views) == CHUNK
            marks.write_mark(tx, POSITION, str(views[-1].manifest_id if more else 0))
            if hurry and not more:
                marks.write_mark(tx, RULES, self._rules)
        self._hurry = hurry and more
        swept = Swept(True, len(views), _names(late), self._hurry)
        self._observer.emit("manager.swept", looked_at=swept.looked_at, woken=len(swept.woken))
        return swept

    def _where(self, tx: Transaction) -> tuple[bool, int]:
        """Whether to hurry, and after which manifest to go on.

        New rules are looked for once in the life of a process: while old and new ones run side by
        side, each would start all over again because of the other.
        """
        if self._hurry is None and marks.read_mark(tx, RULES) != self._rules:
            return True, 0
        return bool(self._hurry), int(marks.read_mark(tx, POSITION) or 0)


def sleeps_too_long(decision: Decision, now: datetime) -> bool:
    """Whether the manifest will be looked at later than this decision says it has to be."""
    needed = now if decision.verdict is Verdict.QUEUE else decision.wake_at
    stored = decision.view.wake_at
    return needed is not None and (stored is None or stored > max(needed, now))


def _names(decisions: Iterable[Decision]) -> tuple[str, ...]:
    return tuple(one.view.external_id for one in decisions)
