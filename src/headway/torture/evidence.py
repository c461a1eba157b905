"""What the tortured processes leave in files: it does not pass through the database under test.

Each process appends to a file of its own, one line per write, so that a kill cuts nothing short
but the line it was about to write.
"""

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Line:
    """One thing that happened: when by the clock all processes share, in which, what, and words."""

    moment: float
    pid: int
    what: str
    words: tuple[str, ...]


class Notebook:
    """The file of this process.

    >>> Notebook(Path("evidence")).note("start", 7, "tick-1")  # doctest: +SKIP
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opening = threading.Lock()
        self._file: tuple[int, int] | None = None

    def note(self, what: str, *words: object) -> None:
        """Append one line, in one write."""
        pid, file = self._opened()
        text = " ".join("_".join(str(word).split()) or "-" for word in words)
        os.write(file, f"{time.time():.6f} {pid} {what} {text}".rstrip().encode() + b"\n")

    def _opened(self) -> tuple[int, int]:
        pid = os.getpid()
        with self._opening:
            if self._file is None or self._file[0] != pid:
                path = self._folder / f"{pid}.notes"
                opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                self._file = pid, opened
            return self._file


def has_noted(folder: Path, pid: int, what: str) -> bool:
    """Return whether the process *pid* has noted *what*.

    >>> has_noted(Path("evidence"), 7, "serves")
    False
    """
    path = folder / f"{pid}.notes"
    return path.exists() and any(
        line.split(" ")[2] == what for line in path.read_text().splitlines()
    )


def read(folder: Path) -> list[Line]:
    """Everything all processes noted, in the order it happened."""
    return sorted(_lines(folder), key=lambda line: line.moment)


def _lines(folder: Path) -> Iterator[Line]:
    for path in folder.glob("*.notes"):
        for text in path.read_text().splitlines():
            moment, pid, what, *words = text.split(" ")
            yield Line(float(moment), int(pid), what, tuple(words))
