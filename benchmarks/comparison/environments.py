"""The peers' own environments: made with pip on first use, from pinned versions."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.comparison.progress import say

PEERS = Path(__file__).parents[1] / "peers"
ENVIRONMENTS = Path(__file__).parents[1] / ".peers"
INSTALLED = "installed.txt"


class PeerUnavailable(Exception):
    """A peer could not be installed here; the message says why."""


def command_of(peer: str) -> Sequence[str]:
    """How to run the driver of *peer* in its own environment, which is made if need be."""
    return [str(python_of(peer)), str(PEERS / f"drive_{peer}.py")]


def python_of(peer: str) -> Path:
    """The interpreter of *peer*: made anew when the versions that are asked for have changed."""
    wanted = (PEERS / f"{peer}.txt").read_text("utf-8")
    folder = ENVIRONMENTS / peer
    python, installed = folder / "bin" / "python", folder / INSTALLED
    if python.exists() and installed.exists() and installed.read_text("utf-8") == wanted:
        return python
    say(f"installing {peer} into {folder} (once)")
    _run([sys.executable, "-m", "venv", "--clear", str(folder)], peer)
    quietly = ["--disable-pip-version-check", "--quiet"]
    _run([str(python), "-m", "pip", "install", *quietly, "-r", str(PEERS / f"{peer}.txt")], peer)
    installed.write_text(wanted, "utf-8")
    return python


def _run(command: Sequence[str], peer: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise PeerUnavailable(f"{peer} could not be installed: {' '.join(said)}")
