"""The dashboard as headway serves it: beside `run` and `demo`, alone, and only where it may."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headway import Headway
from headway.config import Settings
from headway.errors import HeadwayError, SettingsError
from headway.health import Health, Trouble
from headway.store.engine import Store
from headway.web import connections, serving
from headway.web.server_thread import address_of
from headway.web.serving import Dashboard, access_of, is_loopback, listen, read_secret
from tests.federation.sites import opened
from tests.surface.command_line import finish, read_until, start
from tests.surface.test_cli import CommandLine, headway
from tests.web.site import Site

__all__ = ["headway"]

PROGRAM = """
from headway import Headway, every
hw = Headway("shop", manager_polling_interval=0.2)
@hw.workflow
def count(what: str) -> None: ...
hw.schedule(count, "count-users", "users", every(hours=1))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(PROGRAM)
    return tmp_path


@pytest.fixture
def dashboard(sqlite_url: str) -> Iterator[Dashboard]:
    with opened(sqlite_url) as store:
        dashboard = Dashboard(Headway("shop"), store, port=0)
        yield dashboard
        dashboard.stop()


def site_of(address: str) -> tuple[Site, str]:
    found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/\?token=[\w-]{20,})", address)
    assert found, address
    return Site(int(found[1])), found[2]


def enter(address: str) -> tuple[Site, str]:
    """Open the printed address as a browser does; the site, and the cookie for it."""
    site, path = site_of(address)
    answer = site.get(path)
    assert (answer.status, answer.headers["location"]) == (303, "/")
    return site, answer.headers["set-cookie"].partition(";")[0]


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A headway command, and the address it prints."""
    process = start(folder, *arguments)
    try:
        seen = read_until(process.stderr, "dashboard: ")
        yield process, seen.rpartition("dashboard: ")[2].strip().partition(";")[0]
    finally:
        process.kill()
        process.communicate()


def test_whoever_starts_it_is_let_in_by_the_address(dashboard: Dashboard) -> None:
    site, cookie = enter(dashboard.entrance)
    assert site.get("/api/v1/nothing", cookie=cookie).status == 404
    assert site.get("/api/v1/nothing").status == 401
    assert site.get("/readyz").status == 200


@pytest.mark.parametrize("arguments", [("run",), ("run", "--processes", "2"), ("web",)])
def test_commands_serve_it_and_say_where(folder: Path, arguments: tuple[str, ...]) -> None:
    if arguments == ("web",):
        Store(f"sqlite:///{folder / 'headway.db'}").close()
    command, *options = arguments
    with running(folder, command, "shop:hw", "--port", "0", *options) as (process, address):
        site, cookie = enter(address)
        assert site.get("/api/v1/nothing", cookie=cookie).status == 404
        process.send_signal(signal.SIGTERM)
        code, _, _ = finish(process)
        assert code == 0


@pytest.mark.parametrize("option", [["--no-dashboard"], ["--only", "worker"]])
def test_there_is_none_where_none_is_wanted(folder: Path, option: list[str]) -> None:
    process = start(folder, "run", "shop:hw", "-v", *option)
    seen = read_until(process.stderr, "service.pulse")
    process.send_signal(signal.SIGTERM)
    code, _, rest = finish(process)
    assert code == 0
    assert "dashboard" not in seen + rest


def test_without_its_packages_it_says_how_to_get_them_and_goes_on(folder: Path) -> None:
    hiding = "import headway.extras as e; r = e.find_spec; "
    hiding += "e.find_spec = lambda n: None if n == 'fastapi' else r(n)\n"
    (folder / "shop.py").write_text(hiding + PROGRAM)
    process = start(folder, "run", "shop:hw", "-v")
    seen = read_until(process.stderr, "service.pulse")
    process.send_signal(signal.SIGTERM)
    code, _, _ = finish(process)
    assert (code, seen.count("pip install 'headway-scheduler[web]'")) == (0, 1)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "headway.example.com", "127.1"])
def test_what_others_can_reach_is_not_opened_without_tokens(sqlite_url: str, host: str) -> None:
    with opened(sqlite_url) as store, pytest.raises(SettingsError, match="others can reach"):
        Dashboard(Headway("shop"), store, host, 0)


@pytest.mark.parametrize("command", ["run", "web"])
def test_beyond_loopback_a_command_ends_without_tokens(folder: Path, command: str) -> None:
    code, out, err = finish(start(folder, command, "shop:hw", "--host", "0.0.0.0", "--port", "0"))
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert "others can reach this address" in line


def test_the_next_port_is_taken_if_the_default_is_not_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, listen("127.0.0.1", 0) as free:
        default, spare = taken.getsockname()[1], free.getsockname()[1]
        free.close()
        monkeypatch.setattr(serving, "DEFAULT_PORT", default)
        monkeypatch.setattr(serving, "NEXT_PORTS", range(spare, spare + 1))
        with listen("127.0.0.1", default) as listener:
            assert listener.getsockname()[1] == spare


def test_a_port_that_was_asked_for_is_not_exchanged(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(HeadwayError, match=f"127.0.0.1:{port}: Address already in use"):
            listen("127.0.0.1", port)
        code, _, err = finish(start(folder, "run", "shop:hw", "--port", str(port)))
    assert (code, len(err.splitlines())) == (1, 1)
    assert "--no-dashboard" in err


@pytest.mark.parametrize("port", ["-1", "70000", "http"])
@pytest.mark.usefixtures("folder")
def test_a_port_that_is_none_is_wrong_usage(headway: CommandLine, port: str) -> None:
    code, _, err = headway("web", "shop:hw", f"--port={port}")
    assert code == 2
    assert "--port" in err


@pytest.mark.parametrize(
    "secret",
    [b"", b"changeme", b"secret" * 2, b"a" * 64, b"default_token" * 3, b"change me " * 4, None],
)
def test_a_secret_that_can_be_guessed_is_refused(tmp_path: Path, secret: bytes | None) -> None:
    file = tmp_path / "secret"
    if secret is not None:
        file.write_bytes(secret)
        file.chmod(0o600)
    with pytest.raises(SettingsError, match="dashboard_secret_file") as refused:
        read_secret(str(file))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o602, 0o601])
def test_a_secret_that_every_user_can_open_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "secret"
    file.write_text("8b0c5f0e6a1d4e7f9a2b3c4d5e6f7081")
    file.chmod(mode)
    with pytest.raises(SettingsError, match="must not be open to every user") as refused:
        read_secret(str(file))
    assert "chmod 600" in str(refused.value) and "8b0c" not in str(refused.value)


def test_a_secret_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError) as refused:
        read_secret("secret")
    assert str(refused.value) == "dashboard_secret_file: No such file or directory: 'secret'"


def test_settings_say_who_is_let_in() -> None:
    settings = Settings(
        dashboard_public_url="https://headway.example.com:8443/",
        dashboard_allowed_hosts=["other.example.com"],
        dashboard_trusted_proxies=["10.0.0.0/8"],
    )
    access = access_of(settings, "192.0.2.1")
    names = ["headway.example.com", "other.example.com", "192.0.2.1", "localhost", "127.0.0.1"]
    assert [access.hosts.know(name) for name in names] == [True] * 5
    assert access.hosts.know("evil.example.com") is False
    assert access.public_origin == "https://headway.example.com:8443"
    assert access.secure is True
    assert (access.proxies.trust("10.1.2.3"), access.proxies.trust("192.0.2.1")) == (True, False)
    plain = access_of(Settings(), "127.0.0.1")
    assert (plain.public_origin, plain.secure) == (None, False)


def test_the_settings_say_where_it_listens(sqlite_url: str) -> None:
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    with opened(sqlite_url) as store:
        hw = Headway("shop", dashboard_host="localhost", dashboard_port=port)
        dashboard = Dashboard(hw, store)
        try:
            assert dashboard.address == f"http://localhost:{port}"
            assert re.fullmatch(r"/\?token=[\w-]{32}", dashboard.entrance[len(dashboard.address) :])
        finally:
            dashboard.stop()


def test_the_printed_address_is_the_public_one(sqlite_url: str) -> None:
    with opened(sqlite_url) as store:
        hw = Headway("shop", dashboard_public_url="https://headway.example.com")
        dashboard = Dashboard(hw, store, port=0)
        try:
            assert dashboard.address == "https://headway.example.com"
            assert dashboard.entrance.startswith("https://headway.example.com/?token=")
        finally:
            dashboard.stop()


def test_it_tells_the_health_of_its_process(sqlite_url: str) -> None:
    trouble = Trouble("the lease is over", datetime.now(UTC))
    with opened(sqlite_url) as store:
        dashboard = Dashboard(Headway("shop"), store, port=0, health=lambda: Health((trouble,)))
        try:
            told = site_of(dashboard.entrance)[0].get("/readyz").json()
        finally:
            dashboard.stop()
    assert told["reasons"] == ["the lease is over"]


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("::", False),
        ("192.0.2.1", False),
        ("localhost.example.com", False),
    ],
)
def test_only_loopback_is_out_of_the_reach_of_others(host: str, own: bool) -> None:
    assert is_loopback(host) is own


def test_two_processes_with_one_secret_know_the_same_sessions(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("8b0c5f0e6a1d4e7f9a2b3c4d5e6f7081\n")
    (tmp_path / "secret").chmod(0o640)
    settings = Settings(dashboard_secret_file=str(tmp_path / "secret"))
    one, other = access_of(settings, "127.0.0.1"), access_of(settings, "127.0.0.1")
    session = one.exchange(one.start_key())
    assert session is not None
    assert other.sessions.read(one.sessions.cookie(session)) == session


def test_a_head_that_does_not_come_is_not_waited_for(
    dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.2)
    site, _ = site_of(dashboard.entrance)
    whole, half = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /healthz HTTP/1.1"
    for begun in ([], [half], [whole, half]):
        with socket.create_connection(("127.0.0.1", site.port), timeout=20) as wire:
            for piece in begun:
                wire.sendall(piece)
                if piece is whole:
                    answer = b""
                    while b"alive" not in answer:
                        answer += wire.recv(4096)
            began = time.monotonic()
            while wire.recv(4096):
                pass
        assert time.monotonic() - began < 4  # before uvicorn itself has had enough


def test_an_address_of_ipv6_stands_in_brackets() -> None:
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert address_of("::1", listener) == f"http://[::1]:{port}"
        assert address_of("headway.example.com", listener) == f"http://headway.example.com:{port}"


def test_nothing_tells_what_serves_it(dashboard: Dashboard) -> None:
    site, _ = site_of(dashboard.entrance)
    assert "server" not in site.get("/healthz").headers


def test_the_demo_serves_it_and_says_where(tmp_path: Path) -> None:
    process = start(tmp_path, "demo", "--port", "0")
    seen = read_until(process.stdout, "dashboard: ")
    site, cookie = enter(seen.rpartition("dashboard: ")[2].strip())
    assert site.get("/healthz", cookie=cookie).status == 200
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert (code, err) == (0, "")
