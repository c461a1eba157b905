"""The SQLite file a process works on, compared with the file its path leads to.

A file that is deleted or replaced stays usable for a process that has it open: SQLite goes on
writing into what nobody else will ever read, and a process that starts meanwhile does the same work
again in another file. So the device and inode of the file and of its ``-wal`` and ``-shm`` are
remembered while connections to it are open, and compared before a transaction begins and before it
counts as committed. Called by the engines of :class:`~headway.store.engine.Store`.
"""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from headway.errors import DatabaseLost

Identity = tuple[int, int]
OnLost = Callable[[DatabaseLost], None]

# Written beside the file that a symbolic link leads to, not beside the link.
COMPANIONS = ("-wal", "-shm")
CALLERS_FILE = "headway_file"


class DatabaseFile:
    """The identity of an open SQLite file; shared by all connections of a store.

    A loss is final until the last connection is closed: a file that is moved away and back may have
    been written to meanwhile.

    >>> DatabaseFile("headway.db").check()
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path).absolute()
        self._lock = threading.Lock()
        self._connections = 0
        self._known: tuple[tuple[str, Identity], ...] = ()
        self._is_complete = False
        self._listeners: tuple[OnLost, ...] = ()
        self.lost: DatabaseLost | None = None

    def on_lost(self, listener: OnLost) -> None:
        """Call *listener* once the loss is found, in the thread that finds it."""
        self._listeners = (*self._listeners, listener)

    def connect(self, open_connection: Callable[[], Any]) -> Any:
        """Open a connection, but none to another file than the connections that are open already.

        SQLite would create a file that is missing.
        """
        self.check()
        connection = open_connection()
        found = _identified(str(self._path))
        with self._lock:
            if not self._connections:
                self._known, self._is_complete = found, False
        return connection

    def opened(self) -> None:
        """A connection has read the file, and keeps others from deleting ``-wal`` and ``-shm``."""
        with self._lock:
            self._connections += 1
        if not self._is_complete and self._path.stat().st_size:
            self._complete()
        self.check()

    def closed(self) -> None:
        """A connection is closed; after the last one SQLite deletes ``-wal`` and ``-shm``."""
        with self._lock:
            self._connections -= 1
            if not self._connections:
                self._known, self.lost = (), None

    def check(self) -> None:
        """Raise :class:`DatabaseLost` if the path does not lead to the open files any more."""
        if self.lost is not None:
            self._refuse()
        for path, identity in self._known:
            self._compare(path, identity)

    def check_briefly(self) -> None:
        """The same for the file itself, for a transaction that only reads."""
        if self.lost is not None:
            self._refuse()
        for path, identity in self._known[:1]:
            self._compare(path, identity)

    def check_committed(self) -> None:
        """The same after a commit: what a lost file holds is not stored."""
        self.check_briefly()
        if not self._is_complete:
            self._complete()

    def _complete(self) -> None:
        """Remember ``-wal`` and ``-shm``, which SQLite creates with the first write."""
        beside = os.path.realpath(self._path)
        companions = [one for suffix in COMPANIONS for one in _identified(beside + suffix)]
        with self._lock:
            self._known = (*self._known[:1], *companions)
            self._is_complete = len(companions) == len(COMPANIONS)

    def _compare(self, path: str, identity: Identity) -> None:
        found = identity_of(path)
        if found != identity:
            self._lose(path, _fate(found))

    def _lose(self, path: str, what: str) -> None:
        lost = DatabaseLost(path, str(self._path), what)
        with self._lock:
            is_news = self.lost is None
            if is_news:
                self.lost = lost
        if is_news:
            for listener in self._listeners:
                listener(lost)
        self._refuse()

    def _refuse(self) -> None:
        if self.lost is not None:
            # A new one each time: threads that raise the same one add to its traceback.
            raise self.lost.again()


def check_callers_file(connection: Connection) -> None:
    """Raise :class:`DatabaseLost` if a caller's SQLite connection is to a file that is gone.

    The file is identified when the connection is seen for the first time. A database in memory has
    no file.
    """
    known = connection.info.get(CALLERS_FILE)
    if known is None:
        path = connection.exec_driver_sql("PRAGMA database_list").one().file
        known = connection.info[CALLERS_FILE] = (path, identity_of(path) if path else None)
    path, identity = known
    if not path:
        return
    found = identity_of(path)
    if found is None or found != identity:
        raise DatabaseLost(path, path, _fate(found))


def identity_of(path: str) -> Identity | None:
    """Device and inode of the file at *path*; None if there is none.

    >>> identity_of("/no/such/file") is None
    True
    """
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def _identified(path: str) -> tuple[tuple[str, Identity], ...]:
    identity = identity_of(path)
    return () if identity is None else ((path, identity),)


def _fate(found: Identity | None) -> str:
    return "deleted or moved" if found is None else "replaced by another file"
