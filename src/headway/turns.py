"""One turn of each actor's loop: a pass, whom that wakes, and how long the loop may sleep then."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from headway.config import Settings
from headway.definition.app import Headway
from headway.dispatcher.cycle import JobDispatcher
from headway.federation.deadlines import DeadlineMonitor
from headway.federation.participation import Participation
from headway.history import Retention, Tallying
from headway.loops import Rest
from headway.manager.cycle import ManifestManager
from headway.manager.sweep import Sweep
from headway.orphans import OrphanSweep
from headway.relay import Relay
from headway.wakeups import Role, WakeUps

HELD_PAUSE = 0.5
# Of an idle process's second, the pulse and the beat have used up nearly all it may ask.
SWEEP_PAUSE = 60.0
TALLY_PAUSE = 60.0
FOLLOWER_PAUSE = timedelta(seconds=2)
# Every hint reaches everybody, and one leader is enough for it: the others need not all try.
FOLLOWER_DEAF = 0.2
# A short lease asks for quick recovery, which must not wait for the sweep instead.
ORPHAN_PAUSE, LOOKS_PER_LEASE = 2.0, 6
# A row that the relay of another process has left behind waits no longer than this.
RELAY_PAUSE = 5.0

# A request waits for the page before it, or for the lease of whoever died with it.
BUILDING_PAUSE, REQUEST_PAUSE = 0.2, 1.0

Turn = Callable[[], float | Rest]


class Turns:
    """Takes the turns of one process's actors; each is one pass, however it is repeated.

    >>> Turns(app, WakeUps(), lease=timedelta(seconds=15)).manage(manager)  # doctest: +SKIP
    Rest(earliest=5.0, due=3598.2, deaf=0.0)
    """

    def __init__(
        self,
        app: Headway,
        wakeups: WakeUps,
        lease: timedelta,
        on_outbox: Callable[[], None] = lambda: None,
    ) -> None:
        self._app = app
        self._on_outbox = on_outbox
        self._settings: Settings = app.settings
        self._wakeups = wakeups
        self.orphan_pause = min(ORPHAN_PAUSE, lease.total_seconds() / LOOKS_PER_LEASE)

    def manage(self, manager: ManifestManager) -> float | Rest:
        """Queue what is due."""
        result, interval = manager.run_once(), self._settings.manager_polling_interval
        if not result.led:
            # Whoever leads may have been stopped: the database then takes the lock from them.
            return Rest(min(interval, FOLLOWER_PAUSE).total_seconds(), deaf=FOLLOWER_DEAF)
        if result.queued:
            self._wakeups.wake(Role.DISPATCHER)
        rest = _rest(interval, result.due_in)
        # Something is due and was not looked at: somebody is changing it at this moment.
        return HELD_PAUSE if rest.due == 0 and not result.candidates else rest

    def sweep(self, sweep: Sweep) -> float:
        """Look for manifests that sleep too long."""
        swept = sweep.run_once()
        if swept.woken:
            self._wakeups.wake(Role.MANAGER)
        return 0.0 if swept.hurry else SWEEP_PAUSE

    def tally(self, tallying: Tallying) -> float:
        """Count what has ended since the last time."""
        return 0.0 if tallying.run_once() else TALLY_PAUSE

    def admit(self, dispatcher: JobDispatcher) -> float | Rest:
        """Dispatch what is queued, as far as the limits allow."""
        result = dispatcher.run_once()
        self._wakeups.nobody_else = result.nobody_else
        self._wakeups.for_itself = result.for_itself
        if result.by_server.keys() & self._app.task_servers.relayed.keys():
            self._on_outbox()
        if result.more or result.failed:
            return 0.0
        if not result.led and self._app.task_servers.elsewhere():
            return HELD_PAUSE  # whoever leads may be of another application and leave ours to us
        rest = _rest(self._settings.dispatcher_polling_interval, result.due_in)
        followed = not result.led or (result.waited and not result.loaded)
        return replace(rest, deaf=FOLLOWER_DEAF) if followed else rest

    def relay(self, relay: Relay) -> float:
        """Tell other task servers what was dispatched for them."""
        result = relay.run_once()
        if result.back or result.recalled:
            self._wakeups.wake(Role.DISPATCHER)
        due_in = RELAY_PAUSE if result.due_in is None else result.due_in
        return min(max(due_in, HELD_PAUSE), RELAY_PAUSE)

    def request(self, azolla: Participation, owner: str) -> float | Rest:
        """Turn a requested manifest into a workorder."""
        result = azolla.tick(owner)
        if result.processed:
            self._wakeups.wake(Role.DISPATCHER)
            return 0.0
        return BUILDING_PAUSE if result.waiting else Rest(REQUEST_PAUSE)

    def clean_up(self, retention: Retention, deadlines: DeadlineMonitor) -> float:
        """Delete what is old, and then note which objectives are overdue."""
        if retention.run_once().more:
            return 0.0
        deadlines.run_once()
        return self._settings.cleanup_interval.total_seconds()

    def end_orphans(self, orphans: OrphanSweep) -> Rest:
        """Start again what dead servers were running."""
        if orphans.run_once().ended:
            self._wakeups.wake(Role.MANAGER, Role.DISPATCHER)
        return Rest(self.orphan_pause)


def _rest(interval: timedelta, due_in: timedelta | None) -> Rest:
    """Until the next thing is due; for what nobody here knows of yet, the polling interval."""
    due = None if due_in is None else max(0.0, due_in.total_seconds())
    return Rest(interval.total_seconds(), due)
