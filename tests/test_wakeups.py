"""Who is woken, here and elsewhere, and that announcements are gathered and survive."""

import threading
import time
from functools import partial

import pytest

from headway.wakeups import Announcer, Role, WakeUps
from tests.builders import PATIENCE

MANAGER, DISPATCHER, WORKER = Role


def test_waking_a_role_calls_its_listener_and_announces_it() -> None:
    heard: list[str] = []
    announced: list[tuple[Role, ...]] = []
    wakeups = WakeUps(lambda roles: announced.append(tuple(roles)))
    wakeups.on(MANAGER, lambda: heard.append("manager"))
    wakeups.on(DISPATCHER, lambda: heard.append("dispatcher"))

    wakeups.wake(MANAGER, WORKER)

    assert heard == ["manager"]
    assert announced == [(MANAGER, WORKER)], "somebody else may have workers"


def test_what_another_server_announced_is_not_announced_again() -> None:
    heard: list[str] = []
    announced: list[object] = []
    wakeups = WakeUps(announced.append)
    wakeups.on(WORKER, lambda: heard.append("worker"))

    wakeups.wake_here(WORKER)

    assert (heard, announced) == (["worker"], [])


def test_without_an_announcer_nothing_is_announced() -> None:
    WakeUps().wake(*Role)


def test_nobody_is_told_while_there_is_nobody_else() -> None:
    announced: list[Role] = []
    heard: list[str] = []
    wakeups = WakeUps(announced.extend)
    wakeups.on(Role.DISPATCHER, lambda: heard.append("here"))
    wakeups.nobody_else = True
    wakeups.wake(Role.DISPATCHER)
    assert (heard, announced) == (["here"], [])
    wakeups.nobody_else = False
    wakeups.wake(Role.DISPATCHER)
    assert (heard, announced) == (["here", "here"], [Role.DISPATCHER])


@pytest.mark.parametrize(
    ("of_manifests", "for_itself", "stopping", "announced"),
    [
        (False, False, False, [DISPATCHER]),
        (True, False, False, [MANAGER, DISPATCHER]),
        (False, True, False, []),
        (True, True, False, [MANAGER]),
        (True, True, True, [MANAGER, DISPATCHER]),
    ],
)
def test_who_dispatches_for_itself_uses_the_room_of_what_has_ended(
    of_manifests: bool, for_itself: bool, stopping: bool, announced: list[Role]
) -> None:
    told: list[Role] = []
    here: list[Role] = []
    wakeups = WakeUps(told.extend)
    for role in Role:
        wakeups.on(role, partial(here.append, role))
    wakeups.for_itself = for_itself

    wakeups.tell_of_end(of_manifests, stopping=stopping)

    assert told == announced
    assert set(here) == ({MANAGER, DISPATCHER} if of_manifests else {DISPATCHER})


@pytest.mark.story(43)
def test_announcements_made_during_one_are_sent_together_afterwards() -> None:
    sent: list[set[Role]] = []
    inside, go_on = threading.Event(), threading.Event()

    def send(roles: set[Role]) -> None:
        sent.append(roles)
        inside.set()
        go_on.wait(PATIENCE)

    announcer = Announcer(send)
    announcer.start()
    announcer([WORKER])
    assert inside.wait(PATIENCE)
    for role in (MANAGER, DISPATCHER, MANAGER):
        announcer([role])
    go_on.set()
    announcer.stop()

    assert sent == [{WORKER}, {MANAGER, DISPATCHER}]


def test_a_moment_passes_before_the_next_announcement_is_sent() -> None:
    """What comes in that moment goes with it."""
    sent_at: list[float] = []
    twice = threading.Event()

    def send(roles: set[Role]) -> None:
        sent_at.append(time.monotonic())
        if len(sent_at) == 1:
            announcer([MANAGER])
        else:
            twice.set()

    announcer = Announcer(send)
    announcer.start()
    announcer([WORKER])
    assert twice.wait(PATIENCE)
    announcer.stop()

    assert sent_at[1] - sent_at[0] >= Announcer.PAUSE


def test_stop_sends_what_is_left() -> None:
    sent: list[set[Role]] = []
    announcer = Announcer(sent.append)
    announcer([MANAGER])
    announcer.start()
    announcer.stop()

    assert sent == [{MANAGER}]


def test_stopping_one_that_never_started_is_fine() -> None:
    Announcer(lambda roles: None).stop()


def test_roles_are_what_the_command_line_calls_them() -> None:
    assert [role.value for role in Role] == ["manager", "dispatcher", "worker"]
