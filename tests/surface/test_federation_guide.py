"""docs/guides/federation.md, followed as it stands: two deployments, and one page about both."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.demo.federation.sites import free_ports
from headway.federation.registry import Registry
from tests.builders import eventually
from tests.surface.command_line import finish, read_until, start
from tests.surface.test_readme import ROOT, blocks, save_programs

GUIDE = ROOT / "docs" / "guides" / "federation.md"
FILE = re.compile(r"# (\w+\.toml)\n")
PORT = "8702"
MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)? UTC")


def shown() -> dict[str, list[str]]:
    """The commands of the guide, without "headway", with what it shows below each."""
    found: dict[str, list[str]] = {}
    for text in blocks(GUIDE, "console"):
        for line in text.splitlines():
            if line.startswith("$ "):
                output = found.setdefault(line.removeprefix("$ headway "), [])
            else:
                output.append(line)
    return found


def save_registries(folder: Path, port: int) -> list[Path]:
    files = []
    for text in blocks(GUIDE, "toml"):
        named = FILE.match(text)
        assert named
        files.append(folder / named[1])
        files[-1].write_text(text.replace(PORT, str(port)), "utf-8")
    return files


def said(folder: Path, command: str) -> list[str]:
    process = start(folder, *command.split())
    code, out, err = finish(process)
    assert code == 0, err
    return [line.rstrip() for line in out.splitlines()]


def timeless(lines: list[str]) -> list[str]:
    """Without what differs from one run to another."""
    return [re.sub(r"\d\.\d s (ahead of|behind)", "N s off", MOMENT.sub("T", one)) for one in lines]


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.full
def test_the_guide_can_be_followed_command_by_command(
    tmp_path: Path, processes: list[subprocess.Popen[str]]
) -> None:
    [port] = free_ports(1)
    save_programs(GUIDE, tmp_path)
    registries = save_registries(tmp_path, port)
    guide = shown()

    keygen = "azolla keygen warehouse-sales.key"
    assert said(tmp_path, keygen) == guide[keygen]
    assert {Registry.load(file).own.id for file in registries} == {"warehouse", "sales"}

    serve = f"azolla serve sales:hw --port {PORT}"
    assert serve in guide
    processes.append(start(tmp_path, *serve.replace(PORT, str(port)).split()))
    read_until(processes[-1].stdout, "answers for sales at")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    for command in ("run sales:hw", "run warehouse:hw"):
        assert command in guide
        processes.append(start(tmp_path, *command.split(), **quiet))
    for name in ("sales", "warehouse"):
        eventually(
            lambda name=name: (
                json.loads(  # type: ignore[misc]
                    "".join(said(tmp_path, f"azolla pauses {name}:hw --json"))
                )
                != []
            )
        )

    peers, ping = "azolla peers warehouse:hw", "azolla ping warehouse:hw"
    told = "\n".join(said(tmp_path, peers)).replace(str(port), PORT)
    assert told.split() == " ".join(guide[peers]).split()
    assert timeless(said(tmp_path, ping)) == timeless(guide[ping])

    request = "azolla request-manifest warehouse:hw --wait 60"
    page = timeless(said(tmp_path, request))
    assert page == timeless(guide[request])
    assert timeless(said(tmp_path, "azolla show warehouse:hw")) == page


@pytest.mark.full
def test_the_demo_prints_the_page_the_guide_shows(tmp_path: Path) -> None:
    [page] = blocks(GUIDE, "text")
    demo = "demo --federation"
    assert demo in shown()
    printed = "\n".join(timeless(said(tmp_path, demo)))
    assert "\n".join(timeless(page.splitlines())) in printed
    assert "the stone is broken" not in printed, "what is denied is not seen"
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    own = [line for line in listed.stdout.splitlines() if sys.executable in line]
    assert [line for line in own if "demo.federation.site" in line] == [], "nor left running"
