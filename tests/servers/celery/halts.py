"""Steps of a job's way at which a test has processes halted, agreed upon in a folder."""

from __future__ import annotations

import os
import time
from enum import StrEnum
from pathlib import Path


class Step(StrEnum):
    """Where a job is on its way from the broker and back."""

    BODY = "in the body"
    FINISH = "after the body, before its end is written"
    ACKNOWLEDGEMENT = "after its end is written, before the acknowledgement"
    CLAIM = "before the claim"


class Halts:
    """One step at a time is where whoever comes by stays, until it is killed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._wanted = folder / "halt"

    def want(self, step: Step | None) -> None:
        _write(self._wanted, step or "nowhere")

    def pass_by(self, step: Step) -> None:
        if self._wanted.exists() and self._wanted.read_text() == step:
            _write(self._path(step), str(os.getpid()))
            while True:
                time.sleep(60)

    def halted(self, step: Step) -> int | None:
        """The process that stays at this step, if one does."""
        path = self._path(step)
        return int(path.read_text()) if path.exists() else None

    def _path(self, step: Step) -> Path:
        return self._folder / f"halted {step}"


def _write(path: Path, text: str) -> None:
    """So that nobody reads half of it."""
    written = path.with_name(f"{path.name} {os.getpid()}")
    written.write_text(text)
    written.rename(path)
