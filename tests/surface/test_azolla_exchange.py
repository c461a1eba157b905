"""``headway azolla …`` as people call it: what it prints, and how it exits."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.federation.running import Deployment, running, serving, write_app
from tests.federation.sites import KEY, OWN, READER, write_registry
from tests.surface.command_line import environment, finish
from tests.surface.test_cli import CommandLine, headway
from tests.surface.test_extras import HIDING

__all__ = ["headway"]


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("warehouse")
    with running(folder, f"sqlite:///{folder / 'headway.db'}", servers=1) as deployment:
        yield deployment


@pytest.fixture
def peer(deployment: Deployment, tmp_path: Path) -> Path:
    """The folder of a deployment that may ask it."""
    write_app(tmp_path, f"sqlite:///{tmp_path / 'headway.db'}")
    write_registry(tmp_path, READER, urls={OWN: deployment.addresses[0]}, keys={OWN: [KEY]})
    return tmp_path


def test_peers_lists_whom_this_deployment_knows(
    headway: CommandLine, peer: Path, deployment: Deployment
) -> None:
    code, out, err = headway("azolla", "peers", "hello:hw")
    assert (code, err) == (0, "")
    title, own, other = (line.split() for line in out.splitlines())
    assert title == ["AZOLLA", "ADDRESS", "KEYS", "BLUEPRINT", "READS", "STORES"]
    assert own[:3] == [READER, "this", "deployment"]
    assert other[:4] == [OWN, deployment.addresses[0], KEY.id, "task-management"]
    assert KEY.secret.decode() not in out


def test_ping_says_who_answers(headway: CommandLine, peer: Path) -> None:
    code, out, err = headway("azolla", "ping", "hello:hw")
    assert (code, err) == (0, "")
    assert out.startswith(f"{OWN}: answers; its clock is 0.")


def test_ping_of_one_that_is_away_is_exit_1(headway: CommandLine, peer: Path) -> None:
    write_registry(peer, READER, urls={OWN: "http://127.0.0.1:1"}, keys={OWN: [KEY]})
    code, out, err = headway("azolla", "ping", "hello:hw", OWN)
    assert (code, out, err) == (1, f"{OWN}: could not be asked: Connection refused\n", "")


def test_query_prints_a_line_for_each_artifact(headway: CommandLine, peer: Path) -> None:
    asked = ("azolla", "query", "hello:hw", OWN, "pause_state")
    code, out, err = headway(*asked, "--filter", "objective_id=o1", "--filter", "limit=5")
    assert (code, err) == (0, f"{OWN}: 1 result\n")
    assert json.loads(out)["objective_id"] == "o1"

    code, out, err = headway(
        *asked, "--filter", "objective_id=o0", "--filter", "objective_id=o1", "--json"
    )
    told = json.loads(out)
    assert (code, told["note"], told["response"]["status"]) == (0, None, "OK")
    assert {one["objective_id"] for one in told["response"]["results"]} == {"o0", "o1"}


def test_query_of_what_is_not_for_us_is_exit_1(headway: CommandLine, peer: Path) -> None:
    code, out, err = headway("azolla", "query", "hello:hw", OWN, "blocker_ref")
    assert (code, out) == (1, "")
    assert err == f"headway: {OWN}: DENIED: blocker_ref is not for us, or not stored there\n"


@pytest.mark.full
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["query", "hello:hw", "nobody", "objective"], "PEER = 'nobody': must be a peer"),
        (["query", "hello:hw", OWN, "workorder"], "'workorder' is not one of"),
        (["query", "hello:hw", OWN, "objective", "--filter", "x"], "must be KEY=VALUE"),
        (["query", "hello:hw", OWN, "objective", "--filter", "x=1"], "filter.x = 1: is no key"),
        (["query", "hello:hw", OWN, "objective", "--filter", "limit=0"], "filter.limit = 0"),
        (["ping", "hello:hw", "nobody"], "PEER = 'nobody': must be a peer"),
        (["serve", "hello:hw", "--port", "70000"], "must be at most 65535"),
        (["serve", "nothere:hw"], "no module 'nothere' here"),
        (["nonsense"], "nonsense"),
    ],
)
def test_wrong_usage_is_exit_2(
    headway: CommandLine, peer: Path, arguments: list[str], said: str
) -> None:
    code, out, err = headway("azolla", *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) <= 3


def test_without_a_registry_the_setting_is_named(headway: CommandLine, peer: Path) -> None:
    file = peer / "hello.py"
    file.write_text(file.read_text().replace(', azolla_registry="azolla.toml"', ""))
    for command in ("peers", "ping", "serve"):
        code, _, err = headway("azolla", command, "hello:hw")
        assert code == 2
        assert "HEADWAY_AZOLLA_REGISTRY=azolla.toml" in err


def test_a_wrong_registry_is_one_line(headway: CommandLine, peer: Path) -> None:
    (peer / "azolla.toml").write_text("version = 2")
    code, out, err = headway("azolla", "serve", "hello:hw", "--port", "0")
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        "headway: azolla.toml: version = 2: must be 1, the version this headway reads; "
        "for example 1"
    ]


def test_a_port_that_is_taken_is_one_line(headway: CommandLine, peer: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, out, err = headway("azolla", "serve", "hello:hw", "--port", port)
    assert (code, out) == (1, "")
    assert err.startswith(f"headway: cannot listen on 127.0.0.1:{port}: ")
    assert len(err.splitlines()) == 1


def test_serve_says_where_and_ends_with_0_on_a_signal(peer: Path) -> None:
    server, address = serving(peer)
    assert address.startswith("http://127.0.0.1:")
    server.terminate()
    assert finish(server) == (0, "", "")


@pytest.mark.full
def test_keygen_makes_a_secret_that_a_registry_takes(headway: CommandLine, tmp_path: Path) -> None:
    code, first, _ = headway("azolla", "keygen")
    assert code == 0
    assert len(first.strip()) >= 32
    assert first != headway("azolla", "keygen")[1]

    code, out, err = headway("azolla", "keygen", "sales.key")
    assert (code, err) == (0, "")
    assert out.startswith("wrote sales.key")
    file = tmp_path / "sales.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_text()
    code, _, err = headway("azolla", "keygen", "sales.key")
    assert (code, file.read_text()) == (1, before)
    assert err == "headway: cannot write sales.key: File exists; choose a new file\n"


def test_without_the_extra_serving_says_what_to_install(peer: Path) -> None:
    program = HIDING.format(packages={"fastapi", "jinja2", "uvicorn", "starlette"})
    program += "from headway.cli import main; main(['azolla', 'serve', 'hello:hw'])"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=peer,
        env=environment() | {"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "headway: answering other deployments needs an extra: "
        "pip install 'headway-scheduler[federation]'"
    ]
