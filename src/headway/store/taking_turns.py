"""Those of one process who write to the same SQLite file do so one after the other.

SQLite lets them wait as well, but by looking again after ever longer pauses: whoever is not lucky
waits for a tenth of a second although the file is free. Other processes are waited for like that.
"""

import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Connection, Engine, event
from sqlalchemy.pool import ConnectionPoolEntry

# How many seconds who opens or writes an SQLite file waits for others to be done with it.
PATIENCE = 30

_TURNS: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)
_HELD = "headway_turn"


def take_turns(engine: Engine, file: str, check: Callable[[], None] = lambda: None) -> None:
    """Have the transactions of *engine* wait for all others on this file, in this process.

    *check* is called when it is a transaction's turn, and refuses it by raising.
    """
    turn = _TURNS[Path(file).absolute()]

    def begin(connection: Connection) -> None:
        # Who waits in vain is told by SQLite what is wrong.
        if _HELD not in connection.info and turn.acquire(timeout=PATIENCE):
            connection.info[_HELD] = turn
        check()
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    def end(_connection: object, record: ConnectionPoolEntry) -> None:
        held: threading.Lock | None = record.info.pop(_HELD, None)
        if held is not None:
            held.release()

    event.listen(engine, "begin", begin)
    # Not with the commit, which is told before it is done, but when the connection is given back.
    event.listen(engine, "checkin", end)
