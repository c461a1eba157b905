"""What ``headway run`` and ``headway worker`` are asked to run, and what the first line says."""

from __future__ import annotations

from typing import Any

import pytest

import headway as package
from headway import Headway
from headway.cli import run as command
from headway.cli.dashboard import MaybeDashboard, Wanted
from headway.cli.serving import Running, start_line
from headway.cli.signals import StopSignals
from headway.wakeups import EVERY_ROLE, Role
from tests.surface.test_cli import CommandLine, assert_brief

MANAGER, DISPATCHER, WORKER = frozenset({Role.MANAGER}), frozenset({Role.DISPATCHER}), {Role.WORKER}
ADDRESS = ("--database-url", "sqlite:///other.db")
ASKED: list[tuple[tuple[str, ...], Running]] = [
    (("run", "hello:hw"), Running("hello:hw", dashboard=Wanted())),
    (
        ("run", "hello:hw", "--host", "0.0.0.0", "--port", "65535", "-q", *ADDRESS),
        Running(
            "hello:hw",
            database_url="sqlite:///other.db",
            quiet=True,
            dashboard=Wanted("0.0.0.0", 65535),
        ),
    ),
    (("run", "hello:hw", "--no-dashboard", "-v"), Running("hello:hw", verbose=True)),
    (("run", "hello:hw", "--only", "dispatcher"), Running("hello:hw", DISPATCHER)),
    (
        ("run", "hello:hw", "--only", "manager", "--only", "manager", "--port", "0"),
        Running("hello:hw", MANAGER, dashboard=Wanted(None, 0)),
    ),
    (("run", "hello:hw", "--processes", "2"), Running("hello:hw", processes=2, dashboard=Wanted())),
    (("worker", "hello:hw"), Running("hello:hw", frozenset(WORKER))),
    (
        ("worker", "hello:hw", "--processes", "3", "-q", *ADDRESS),
        Running("hello:hw", frozenset(WORKER), "sqlite:///other.db", quiet=True, processes=3),
    ),
    (("worker", "hello:hw", "-v"), Running("hello:hw", frozenset(WORKER), verbose=True)),
]


@pytest.mark.parametrize(
    ("arguments", "wanted"), ASKED, ids=[" ".join(arguments) for arguments, _ in ASKED]
)
def test_options_say_what_runs(
    headway: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    wanted: Running,
) -> None:
    """What would run until it is stopped is noted instead."""
    asked: list[tuple[str, Running]] = []

    def noted(how: str, code: int) -> Any:
        def note(running: Running, signals: StopSignals) -> int:
            asked.append((how, running))
            return code

        return note

    monkeypatch.setattr(command, "serve", noted("one", 74))
    monkeypatch.setattr(command, "supervise", noted("several", 75))
    code, out, err = headway(*arguments)

    assert (out, err) == ("", "")
    assert asked == [("one" if wanted.processes == 1 else "several", wanted)]
    assert code == (74 if wanted.processes == 1 else 75)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "hello:hw", "--processes", "0"), "0 is not at least 1; for example --processes 4"),
        (("worker", "hello:hw", "--processes", "0"), "0 is not at least 1"),
        (("worker", "hello:hw", "-q", "-v"), "--quiet and --verbose exclude each other"),
        (("run", "hello:hw", "--port", "65536"), "65536 is not from 0 to 65535; for example --po"),
        (("web", "hello:hw", "--port", "-1"), "-1 is not from 0 to 65535"),
    ],
)
def test_options_that_are_refused(
    headway: CommandLine, arguments: tuple[str, ...], said: str
) -> None:
    code, out, err = headway(*arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert_brief(err)


@pytest.mark.parametrize(
    ("running", "settings", "told"),
    [
        (Running("hello:hw"), {}, "manager, dispatcher, worker (2 slots)"),
        (
            Running("hello:hw", processes=3),
            {"worker_count": 1},
            "3 processes, each manager, dispatcher, worker (1 slot)",
        ),
        (Running("hello:hw", DISPATCHER), {}, "dispatcher"),
        (
            Running("hello:hw"),
            {"manager_enabled": False, "dispatcher_enabled": False},
            "worker (2 slots) (manager switched off by manager_enabled)"
            " (dispatcher switched off by dispatcher_enabled)",
        ),
        (
            Running("hello:hw", MANAGER),
            {"manager_enabled": False},
            "nothing (manager switched off by manager_enabled)",
        ),
    ],
)
def test_the_first_line_says_what_runs_where(
    running: Running, settings: dict[str, Any], told: str
) -> None:
    app = Headway("hello", database_url="sqlite:///own.db", **{"worker_count": 2} | settings)
    app.workflow("greet")(lambda: None)
    app.schedule("greet", "one")
    begins = f"headway {package.__version__} runs hello:hw (1 manifest) on sqlite:///own.db: "
    assert start_line(running, app) == f"{begins}{told}; Ctrl-C stops"


def test_the_first_line_names_the_database_that_was_given() -> None:
    app = Headway("hello", database_url="sqlite:///own.db")
    line = start_line(Running("hello:hw", database_url="sqlite:///given.db"), app)
    assert "runs hello:hw (0 manifests) on sqlite:///given.db: " in line


def test_a_dashboard_is_opened_only_if_it_is_wanted_and_enabled() -> None:
    def refuse(work: object) -> Any:
        raise AssertionError("nothing is to be opened")

    for wanted, enabled in ((None, True), (Wanted(), False)):
        app = Headway("hello", dashboard_enabled=enabled)
        dashboard = MaybeDashboard(app, "sqlite:///hello.db", wanted, patiently=refuse)
        assert dashboard.line == ""
        dashboard.stop()


def test_every_role_runs_unless_one_is_named() -> None:
    assert Running("hello:hw").roles == EVERY_ROLE == {*MANAGER, *DISPATCHER, *WORKER}
