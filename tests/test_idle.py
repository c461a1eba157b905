"""A process that has nothing to do asks nearly nothing, and still finds what nobody told it of."""

from datetime import timedelta
from typing import Any

import pytest

from headway import every, turns
from headway.domain.routing import Routing
from headway.history import Tallying
from headway.lease import BEATS_PER_LEASE, LeaseKeeper, lease_of, this_process
from headway.manager.sweep import Sweep
from headway.observe import Event, Observer
from headway.runner import pool
from headway.runner.claims import Claims
from headway.runner.suspicion import Suspicion
from headway.service import PULSE, Service
from headway.store.pulse import take_pulse
from headway.turns import SWEEP_PAUSE, TALLY_PAUSE
from tests.builders import Scene, eventually
from tests.statements import sent_statements

OFTEN = {
    "manager_polling_interval": timedelta(seconds=0.02),
    "dispatcher_polling_interval": timedelta(seconds=0.02),
    "polling_interval": timedelta(seconds=0.02),
}
PULSES = 20


def test_an_idle_process_sends_one_statement_with_each_pulse(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted from pulse to pulse, whatever their distance; the beat keeps its own time."""
    monkeypatch.setattr(pool, "LOOK_PAUSE", 0.02)
    monkeypatch.setattr(turns, "ORPHAN_PAUSE", 0.02)
    with Scene(database_url, virtual_time=False, **OFTEN) as scene:
        scene.app.schedule("work", "yearly", None, every(days=365))
        service = Service(scene.app)
        quiet: list[int] = []

        with sent_statements() as sent:

            def count(event: Event) -> None:
                if event.name == "service.pulse":
                    others = {thread for thread, _ in sent} - {"headway-beat", "headway-pulse"}
                    own = [thread for thread, _ in sent if thread == "headway-pulse"]
                    quiet.append(len(own) if not others else 0)
                    sent.clear()

            scene.app.observer.subscribe(count)
            service.start()
            try:
                scene.events.wait_for("execution.completed", external_id="yearly")
                eventually(lambda: quiet[-PULSES:] == [1] * PULSES)
            finally:
                service.stop()


def test_what_an_idle_process_asks_by_default_is_below_one_statement_a_second(
    database_url: str,
) -> None:
    with Scene(database_url, virtual_time=False) as scene:
        keeper = keeper_of(scene)
        keeper.register()
        sweep = Sweep(scene.store, scene.app.settings, Observer())
        sweep.run_once()  # the first in the life of a process also compares the rules of time

        def pulse() -> Any:
            with scene.store.unclocked() as tx:
                return take_pulse(tx, keeper.id)

        beat = keeper.lease.total_seconds() / BEATS_PER_LEASE
        tallying = Tallying(scene.store)
        pauses = {
            pulse: PULSE,
            keeper.beat: beat,
            sweep.run_once: SWEEP_PAUSE,
            tallying.run_once: TALLY_PAUSE,
        }
        asked = {}
        for turn, pause in pauses.items():
            with sent_statements() as sent:
                turn()
            asked[turn] = len(sent) / pause
        keeper.stop()

    assert 0 < sum(asked.values()) < 1, asked


def keeper_of(scene: Scene) -> LeaseKeeper:
    return LeaseKeeper(
        scene.store,
        lease_of(scene.store, None),
        Observer(),
        lambda own_id: this_process(own_id, ["worker"], [], 1, Routing()),
        running=list,
        on_lost=lambda own_id: None,
    )


def test_a_worker_that_was_woken_for_nothing_looks_once(database_url: str) -> None:
    """Every hint wakes the workers of all processes, and all but one of them find nothing."""
    with Scene(database_url, virtual_time=False) as scene:
        keeper = keeper_of(scene)
        keeper.register()
        claims = Claims(scene.store, scene.app.registry, Suspicion(3), leased=True)
        with sent_statements() as sent:
            assert claims.claim(keeper.id, 4, []) == []
        asked = [statement for _, statement in sent if "headway_" in statement]
        scene.pending("work")
        claimed = claims.claim(keeper.id, 4, [])
        keeper.stop()

    assert len(asked) == 1, asked
    assert [one.workflow for one in claimed] == ["work"]
