"""What a chaos run does, and when."""

from __future__ import annotations

from itertools import islice

from headway.torture.plan import SIRENS, Beside, Fault, Moment, Plan
from headway.wakeups import Role


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


def beside(seed: int) -> list[Beside]:
    return list(islice(Plan(seed, 5).beside_restarts(), 20))


def test_what_begins_beside_restarts_is_drawn_from_the_seed() -> None:
    assert beside(7) == beside(7)
    assert beside(7) != beside(8)
    assert {one.starts[0][0] for one in beside(7)} == {Role.MANAGER, Role.WORKER}
    assert len({one.sirens for one in beside(7)}) > 1


def test_beside_every_restart_processes_start_and_jobs_activate() -> None:
    for one in beside(7):
        [early, *late] = one.starts
        assert early[1] is Moment.BEFORE
        assert late == [(Role.MANAGER, Moment.AWAY), (Role.WORKER, Moment.AWAY)]
        assert sorted(one.sirens) == sorted(SIRENS)
        assert {*one.sirens} == {*Moment}


def test_on_a_foreign_server_nothing_is_restarted() -> None:
    drawn = {fault for _, fault in Plan(7, 5).faults(own_server=False)}
    assert drawn and not drawn & {
        Fault.RESTART_FAST,
        Fault.RESTART_IMMEDIATE,
        Fault.KILL_DATABASE,
    }
