"""What a chaos run does, and when."""

from __future__ import annotations

from headway.torture.plan import Fault, Plan


def test_a_run_is_drawn_from_its_seed() -> None:
    assert Plan(7, 5).faults(own_server=True) == Plan(7, 5).faults(own_server=True)
    assert Plan(7, 5).faults(own_server=True) != Plan(8, 5).faults(own_server=True)


def test_five_minutes_hold_what_was_promised() -> None:
    drawn = [fault for _, fault in Plan(7, 5).faults(own_server=True)]
    kills = drawn.count(Fault.KILL_WORKER) + drawn.count(Fault.KILL_SCHEDULER)
    restarts = {Fault.RESTART_FAST, Fault.RESTART_IMMEDIATE, Fault.KILL_DATABASE}
    assert kills >= 100 and drawn.count(Fault.LONG_STOP) >= 20
    assert sum(fault in restarts for fault in drawn) >= 10
    assert restarts <= set(drawn) and drawn.count(Fault.END_SESSION) >= 200


def test_on_a_foreign_server_nothing_is_restarted() -> None:
    drawn = {fault for _, fault in Plan(7, 5).faults(own_server=False)}
    assert drawn and not drawn & {
        Fault.RESTART_FAST,
        Fault.RESTART_IMMEDIATE,
        Fault.KILL_DATABASE,
    }
