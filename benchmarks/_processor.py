"""Processor seconds, which say more than wall time where others share the machine."""

import os
import time
from pathlib import Path

from headway.torture.postgres import PostgresServer

TICKS = os.sysconf("SC_CLK_TCK")


class Processor:
    """The seconds of processor this process, and all of a PostgreSQL server's, have used since.

    >>> used = Processor()
    >>> used.here() >= 0
    True
    """

    def __init__(self, postmaster: int | None = None) -> None:
        self._postmaster = postmaster
        self._here, self._server = time.process_time(), self._of_server()

    def here(self) -> float:
        """Of this process."""
        return time.process_time() - self._here

    def server(self) -> float:
        """Of the server's processes that still run, and of those it has waited for."""
        return self._of_server() - self._server

    def _of_server(self) -> float:
        if self._postmaster is None:
            return 0.0
        processes = (one for one in Path("/proc").iterdir() if one.name.isdigit())
        return sum(_seconds(one, self._postmaster) for one in processes)


def _seconds(process: Path, postmaster: int) -> float:
    """To the nanosecond of one that runs; of those that have ended Linux keeps hundredths."""
    try:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
        if process.name != str(postmaster) and fields[1] != str(postmaster):
            return 0.0
        running = int((process / "schedstat").read_text().split()[0]) / 1e9
    except OSError:  # it has just ended
        return 0.0
    ended = sum(map(int, fields[13:15])) / TICKS if process.name == str(postmaster) else 0.0
    return running + ended


def postmaster_of(server: PostgresServer) -> int:
    """The process that all others of a server descend from."""
    return int((server.directory / "data" / "postmaster.pid").read_text().split()[0])
