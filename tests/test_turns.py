"""What each turn of an actor's loop makes of its pass: whom it wakes, and how long it rests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, cast

import pytest

from headway import Headway
from headway.dispatcher.cycle import DispatchResult
from headway.federation.worker import TickResult
from headway.history import Retained
from headway.loops import Rest
from headway.manager.cycle import ManagerResult
from headway.manager.sweep import Swept
from headway.orphans import Swept as Buried
from headway.relay import Relayed
from headway.servers.inline import InlineServer
from headway.turns import Turns
from headway.wakeups import Role, WakeUps

MANAGER, DISPATCHER, WORKER = Role
MANAGING, DISPATCHING = 7.0, 11.0


@dataclass
class Actor:
    """One whose pass comes to this."""

    result: Any

    def run_once(self) -> Any:
        return self.result

    def tick(self, owner: str) -> Any:
        assert owner == "me"
        return self.result


class Outbox:
    """A task server that is told through the outbox."""

    def publish(self, execution_id: int) -> None: ...

    def reach(self) -> None: ...


class Process:
    """The turns of one process, and whom they have woken."""

    def __init__(self, managing: float = MANAGING) -> None:
        self.app = Headway(
            "tests",
            database_url="sqlite:///never-opened.db",
            manager_polling_interval=managing,
            dispatcher_polling_interval=DISPATCHING,
            cleanup_interval="3m",
        )
        self.woken: list[Role] = []
        self.outbox: list[str] = []
        self.wakeups = WakeUps()
        for role in Role:
            self.wakeups.on(role, partial(self.woken.append, role))
        lease = timedelta(seconds=15)
        self.turns = Turns(self.app, self.wakeups, lease, lambda: self.outbox.append("told"))

    def manage(self, **result: Any) -> float | Rest:
        return self.turns.manage(cast(Any, Actor(ManagerResult(**{"led": True} | result))))

    def admit(self, **result: Any) -> float | Rest:
        return self.turns.admit(cast(Any, Actor(DispatchResult(**{"led": True} | result))))

    def relay(self, **result: Any) -> float:
        return self.turns.relay(cast(Any, Actor(Relayed(**result))))

    def request(self, **result: Any) -> float | Rest:
        return self.turns.request(cast(Any, Actor(TickResult(**result))), "me")


@pytest.fixture
def process() -> Process:
    return Process()


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def test_a_manager_that_queued_something_wakes_the_dispatcher(process: Process) -> None:
    assert process.manage(candidates=3, queued=2) == Rest(MANAGING)
    assert process.woken == [DISPATCHER]


@pytest.mark.parametrize(
    ("result", "rest"),
    [
        ({}, Rest(MANAGING)),
        ({"due_in": seconds(3)}, Rest(MANAGING, due=3.0)),
        ({"due_in": seconds(-3), "candidates": 1}, Rest(MANAGING, due=0.0)),
        ({"due_in": seconds(-3)}, 0.5),  # somebody is changing what is due at this moment
        ({"led": False}, Rest(2.0, deaf=0.2)),
    ],
)
def test_a_manager_rests_until_something_is_due(
    process: Process, result: dict[str, Any], rest: float | Rest
) -> None:
    assert process.manage(**result) == rest
    assert process.woken == []


def test_a_follower_looks_no_more_seldom_than_it_is_told_to_poll() -> None:
    assert Process(managing=1.0).manage(led=False) == Rest(1.0, deaf=0.2)


@pytest.mark.parametrize(
    ("result", "rest"),
    [
        ({}, Rest(DISPATCHING)),
        ({"due_in": seconds(3)}, Rest(DISPATCHING, due=3.0)),
        ({"more": True}, 0.0),
        ({"failed": (7,)}, 0.0),
        ({"led": False}, Rest(DISPATCHING, deaf=0.2)),
        ({"waited": True}, Rest(DISPATCHING, deaf=0.2)),
        ({"waited": True, "loaded": 2}, Rest(DISPATCHING)),
        ({"led": False, "due_in": seconds(3)}, Rest(DISPATCHING, due=3.0, deaf=0.2)),
    ],
)
def test_a_dispatcher_rests_until_there_may_be_something(
    process: Process, result: dict[str, Any], rest: float | Rest
) -> None:
    assert process.admit(**result) == rest
    assert (process.woken, process.outbox) == ([], [])


def test_who_sends_work_elsewhere_and_does_not_lead_looks_again_soon(process: Process) -> None:
    """Whoever leads may be of another application, and leave the work of this one to it."""
    process.app.workflow("load")(lambda: None)
    process.app.task_servers.add("gpu", InlineServer(print), workflows=["load"])
    assert process.admit(led=False) == 0.5
    assert process.admit() == Rest(DISPATCHING)


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("for_itself", [False, True])
def test_a_dispatcher_notes_whom_else_there_is_to_tell(
    process: Process, alone: bool, for_itself: bool
) -> None:
    process.wakeups.nobody_else, process.wakeups.for_itself = not alone, not for_itself
    process.admit(nobody_else=alone, for_itself=for_itself)
    assert (process.wakeups.nobody_else, process.wakeups.for_itself) == (alone, for_itself)


def test_the_relay_is_told_what_was_dispatched_for_its_servers(process: Process) -> None:
    process.app.task_servers.add("broker", Outbox(), default=True)
    process.admit(by_server={"local": (1,)})
    assert process.outbox == []
    process.admit(by_server={"local": (1,), "broker": (2,)}, more=True)
    assert process.outbox == ["told"]


@pytest.mark.parametrize(
    ("result", "pause", "woken"),
    [
        ({}, 5.0, []),
        ({"due_in": 3.0}, 3.0, []),
        ({"due_in": 0.0}, 0.5, []),
        ({"due_in": 60.0}, 5.0, []),
        ({"published": 2, "due_in": 1.0}, 1.0, []),
        ({"back": True}, 5.0, [DISPATCHER]),
        ({"recalled": 1}, 5.0, [DISPATCHER]),
    ],
)
def test_a_relay_looks_every_few_seconds_and_wakes_the_dispatcher_for_what_came_back(
    process: Process, result: dict[str, Any], pause: float, woken: list[Role]
) -> None:
    assert process.relay(**result) == pause
    assert process.woken == woken


@pytest.mark.parametrize(
    ("swept", "pause", "woken"),
    [
        (Swept(led=True), 60.0, []),
        (Swept(led=True, looked_at=9, woken=("late",)), 60.0, [MANAGER]),
        (Swept(led=True, hurry=True), 0.0, []),
    ],
)
def test_a_sweep_wakes_the_manager_for_what_slept_too_long(
    process: Process, swept: Swept, pause: float, woken: list[Role]
) -> None:
    assert process.turns.sweep(cast(Any, Actor(swept))) == pause
    assert process.woken == woken


@pytest.mark.parametrize(("more", "pause"), [(True, 0.0), (False, 60.0)])
def test_what_is_left_to_count_is_counted_at_once(
    process: Process, more: bool, pause: float
) -> None:
    assert process.turns.tally(cast(Any, Actor(more))) == pause


@pytest.mark.parametrize(
    ("result", "rest", "woken"),
    [
        ({"processed": True}, 0.0, [DISPATCHER]),
        ({"waiting": True}, 0.2, []),
        ({}, Rest(1.0), []),
    ],
)
def test_a_request_that_became_a_workorder_wakes_the_dispatcher(
    process: Process, result: dict[str, Any], rest: float | Rest, woken: list[Role]
) -> None:
    assert process.request(**result) == rest
    assert process.woken == woken


@pytest.mark.parametrize(
    ("more", "pause", "looked"), [(True, 0.0, []), (False, 180.0, ["overdue"])]
)
def test_overdue_objectives_are_looked_for_once_all_that_is_old_is_deleted(
    process: Process, more: bool, pause: float, looked: list[str]
) -> None:
    seen: list[str] = []

    class Deadlines:
        def run_once(self) -> None:
            seen.append("overdue")

    retention = cast(Any, Actor(Retained(more=more)))
    assert process.turns.clean_up(retention, cast(Any, Deadlines())) == pause
    assert seen == looked


@pytest.mark.parametrize(
    ("swept", "woken"),
    [
        (Buried(), []),
        (Buried(buried=1), []),
        (Buried(buried=1, ended=2), [MANAGER, DISPATCHER]),
    ],
)
def test_orphans_that_have_ended_wake_whoever_starts_them_again(
    process: Process, swept: Buried, woken: list[Role]
) -> None:
    assert process.turns.end_orphans(cast(Any, Actor(swept))) == Rest(2.0)
    assert process.woken == woken


@pytest.mark.parametrize(("lease", "pause"), [(15, 2.0), (12, 2.0), (6, 1.0), (3, 0.5)])
def test_orphans_are_looked_for_six_times_a_lease_and_at_least_every_two_seconds(
    process: Process, lease: float, pause: float
) -> None:
    assert Turns(process.app, process.wakeups, seconds(lease)).orphan_pause == pause
