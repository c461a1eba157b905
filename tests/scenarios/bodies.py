"""When the bodies of jobs ran, as the workers themselves wrote it down, and how many at once."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headway.torture import intervals
from tests.scenarios.fleet import Kill

NEVER = 2**63


@dataclass(frozen=True)
class Body:
    """One start of a job's body; moments are nanoseconds of the clock all processes share.

    A body ends with its line or with its process. One that did neither runs for ever.
    """

    job: int
    execution_id: int
    began: int
    ended: int
    died_at: int = NEVER

    @property
    def lost(self) -> bool:
        """Whether its process was killed, in the middle or before the end was recorded."""
        return self.died_at != NEVER


class Diary:
    """A file of one process, which gets a line when a body starts and one when it ends."""

    def __init__(self, folder: Path) -> None:
        name = folder / f"bodies-{os.getpid()}"
        self._file = os.open(name, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)

    def note(self, what: str, job: int, execution_id: int) -> None:
        line = f"{what} {job} {execution_id} {time.monotonic_ns()}\n"
        os.write(self._file, line.encode())


def read_diaries(folder: Path, kills: Sequence[Kill]) -> list[Body]:
    """Every body that any process of *folder* has started."""
    found: list[Body] = []
    for path in folder.glob("bodies-*"):
        deaths = [kill.moment for kill in kills if kill.pid == int(path.name.split("-")[1])]
        found += bodies_of(path.read_text().splitlines(), deaths)
    return found


def bodies_of(lines: Iterable[str], deaths: Sequence[int] = ()) -> list[Body]:
    """The bodies one diary tells of; an id may have had several processes that died."""
    starts: list[tuple[int, int, int]] = []
    ends: dict[int, int] = {}
    for line in lines:
        what, job, execution_id, moment = line.split()
        if what == "start":
            starts.append((int(job), int(execution_id), int(moment)))
        else:
            ends[int(execution_id)] = int(moment)
    bodies = []
    for number, execution, began in starts:
        died_at = min((death for death in deaths if death > began), default=NEVER)
        ended = ends.get(execution, died_at)
        bodies.append(Body(number, execution, began, ended, died_at))
    return bodies


def most_at_once(bodies: Iterable[Body]) -> int:
    """How many ran at the worst moment; one that begins when another ends runs after it."""
    return intervals.most_at_once((body.began, body.ended) for body in bodies)
