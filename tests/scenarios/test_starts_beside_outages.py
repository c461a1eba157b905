"""A process that starts while the database is away or restarting waits for it and says so."""

import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from headway.definition.app import Headway
from headway.demo.federation.sites import BLUEPRINTS
from headway.observe import Event
from headway.patience import StoppedWaiting
from headway.service import Service
from headway.store.durability import check_durability
from headway.store.engine import Store
from headway.store.migrate import migrate
from tests.builders import Recorder
from tests.postgres_server import PostgresServer, starting
from tests.surface.command_line import finish, read_until, start
from tests.surface.test_cli import HELLO

IMPATIENT = HELLO.replace('Headway("hello")', 'Headway("hello", database_start_timeout=0)')
REGISTERED = HELLO.replace('Headway("hello")', 'Headway("hello", azolla_registry="azolla.toml")')
REGISTRY = f"""version = 1
[azolla]
id = "hello"
blueprint = "task-management"
{BLUEPRINTS}"""
COMMANDS = [
    ("run", "hello:hw", "--no-dashboard"),
    ("run", "hello:hw", "--port", "0", "--processes", "2"),
    ("worker", "hello:hw"),
    ("web", "hello:hw", "--port", "0"),
    ("azolla", "serve", "hello:hw", "--port", "0"),
]


@pytest.fixture
def server(own_server: PostgresServer) -> PostgresServer:
    """A server of this test's own, with headway's tables."""
    store = Store(own_server.url())
    migrate(store)
    store.close()
    return own_server


@pytest.fixture
def app(server: PostgresServer) -> Headway:
    app = Headway("tests", database_url=server.url())
    app.workflow("work")(lambda: None)
    return app


@pytest.mark.full
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_command_that_starts_while_the_server_is_down(
    server: PostgresServer, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "hello.py").write_text(REGISTERED)
    (tmp_path / "azolla.toml").write_text(REGISTRY)
    server.stop()
    process = start(tmp_path, *arguments, "--database-url", server.url())
    seen = read_until(process.stderr, "waiting     for the database at postgresql://")
    server.start(durable=True)
    if arguments[0] == "azolla":
        read_until(process.stdout, "Ctrl-C stops")
    else:
        seen += read_until(process.stderr, "Ctrl-C stops")
    process.send_signal(signal.SIGTERM)
    code, _, err = finish(process)

    assert code == 0, seen + err
    assert "No such file or directory; the start goes on when it answers" in seen
    assert (seen + err).count("waiting     for the database") == 1
    assert "Traceback" not in seen + err


def test_a_server_that_is_starting_is_waited_for_without_limit(
    server: PostgresServer, tmp_path: Path
) -> None:
    """A standby that answers no queries refuses connections as a server that recovers."""
    (tmp_path / "hello.py").write_text(IMPATIENT)
    server.stop()
    with starting(server):
        process = start(
            tmp_path,
            *("run", "hello:hw", "--no-dashboard", "--database-url", server.url()),
        )
        read_until(process.stderr, "(57P03); the start goes on when it answers")
    read_until(process.stderr, "Ctrl-C stops")
    process.send_signal(signal.SIGTERM)

    assert finish(process)[0] == 0


def test_a_stop_while_it_waits(server: PostgresServer, tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text(HELLO)
    server.stop()
    process = start(tmp_path, "run", "hello:hw", "--database-url", server.url())
    read_until(process.stderr, "waiting     for the database")
    process.send_signal(signal.SIGTERM)
    code, _, err = finish(process)

    assert (code, err) == (0, "headway: stopped\n")


def _watch(step: str, server: PostgresServer, applied: list[Event], event: Event) -> None:
    if event.name == "declaration.applied":
        applied.append(event)
        if step == "begin":
            server.stop()
    elif event.name == "database.waiting":
        server.start(durable=True)


def stop_before(
    step: str, app: Headway, server: PostgresServer, patched: pytest.MonkeyPatch
) -> None:
    """Have the server stopped right before this step of the start."""
    begun: list[bool] = []
    applied: list[Event] = []

    def stopped_before(verb: Callable[..., object]) -> Callable[..., object]:
        def stopped(*arguments: object) -> object:
            if not begun and (step != "register" or applied):
                begun.append(True)
                server.stop()
            return verb(*arguments)

        return stopped

    if step == "check":
        server.stop()
    elif step == "durability":
        patched.setattr("headway.service.check_durability", stopped_before(check_durability))
    elif step == "apply":
        app.declaration = stopped_before(app.declaration)  # type: ignore[method-assign, assignment]
    elif step == "register":
        app.registry.names = stopped_before(  # type: ignore[method-assign, assignment]
            app.registry.names
        )

    app.observer.subscribe(partial(_watch, step, server, applied))


@pytest.mark.parametrize("step", ["check", "durability", "apply", "begin", "register"])
def test_a_restart_at_any_step_of_the_start(
    server: PostgresServer, app: Headway, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = Recorder(app.observer)
    stop_before(step, app, server, monkeypatch)
    service = Service(app)
    try:
        service.start()
    finally:
        service.stop()

    [waiting] = events.named("database.waiting")
    assert waiting.fields["database"].startswith("postgresql://postgres@/")
    assert len(events.named("service.started")) == 1


def test_a_service_that_is_asked_to_stop_while_it_waits(
    server: PostgresServer, app: Headway
) -> None:
    service = Service(app)
    app.observer.subscribe(
        lambda event: service.request_stop() if event.name == "database.waiting" else None
    )
    server.stop()
    with pytest.raises(StoppedWaiting):
        service.start()
    service.stop()


@pytest.mark.full
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://postgres@/nowhere?host={directory}", 'database "nowhere" does not exist'),
        ("postgresql://nobody@/postgres?host={directory}", 'role "nobody" does not exist'),
        ("postgresql://me:wrong@/postgres?host={directory}", "password authentication failed"),
        ("postgresql://no-such-host.invalid/x", "no-such-host.invalid"),
    ],
)
def test_what_waiting_does_not_mend_is_an_error_at_once(
    server: PostgresServer, tmp_path: Path, url: str, said: str
) -> None:
    (tmp_path / "hello.py").write_text(HELLO)
    rules = server.directory / "data" / "pg_hba.conf"
    rules.write_text("local all me scram-sha-256\n" + rules.read_text())
    server.run("pg_ctl", "reload")
    address = url.format(directory=server.directory)
    code, _, err = finish(start(tmp_path, "run", "hello:hw", "--database-url", address))

    assert code == 1
    assert said in err
    assert len(err.splitlines()) == 1
