"""The headway command in a process of its own, and waiting for what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

COMMAND = (sys.executable, "-m", "headway")


def environment(**changes: str) -> dict[str, str]:
    """This process's environment without headway's variables.

    And without compiled modules: a program that a test rewrites within a second, in the same size,
    would otherwise be run as it was before.
    """
    # Nor of a size that is not the terminal's: a process of pytest-xdist has one.
    others = {"COLUMNS", "LINES"}
    kept = {key: value for key, value in os.environ.items() if not key.startswith("HEADWAY_")}
    kept = {key: value for key, value in kept.items() if key not in others}
    return kept | {"PYTHONDONTWRITEBYTECODE": "1"} | changes


def start(folder: Path, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    """Start the command in *folder*, its output in pipes."""
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment(),
        text=True,
        **{"stdin": subprocess.DEVNULL, "stdout": -1, "stderr": -1} | options,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for the end: exit code, and what was not read yet of stdout and stderr."""
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def read_until(stream: IO[str] | None, wanted: str) -> str:
    """Read lines until one contains *wanted*; fails if the stream ends before."""
    seen = ""
    for line in stream or ():
        seen += line
        if wanted in line:
            return seen
    raise AssertionError(f"{wanted!r} never came; there was only:\n{seen}")
