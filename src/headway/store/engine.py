"""Opening the database, and the three ways into it: reading, writing, leading.

SQLite gets two engines: one writer connection per process whose transactions begin IMMEDIATE (a
deferred one that turns into a writer fails at once instead of waiting), and read-only readers.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from weakref import WeakSet

from sqlalchemy import Connection, Engine, event, inspect, text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import ConnectionPoolEntry

from headway.errors import (
    DatabaseLost,
    DatabaseOutage,
    DatabaseUnavailable,
    SchemaError,
    SchemaMissing,
)
from headway.store.bells import ring
from headway.store.connecting import listening_engine, postgresql_engine, sqlite_engine
from headway.store.database_errors import cannot_open, in_words, note_own_errors, worded
from headway.store.database_file import DatabaseFile, check_callers_file
from headway.store.joining import begin_writing, own_connection
from headway.store.locks import Lock, end_stuck_holder, limits_transactions, lock_statement
from headway.store.poolers import check_schema_arrives
from headway.store.schema_versions import migrations_for, misfit, version_of
from headway.store.straight import ask_one
from headway.store.tables import work_queue
from headway.store.together import Line
from headway.store.transaction import CHANNEL, Transaction
from headway.store.types import Instant
from headway.store.urls import anchored, create_private, parse_url, shown

Clock = Callable[[], datetime]

POOLED = 2

# What passes by waiting: the database is away or busy, or it ended this session or statement.
# Inside a transaction's block it is SQLAlchemy's error, and outside the one in our own words.
TRANSIENT = (OperationalError, InterfaceError, PoolTimeout, DatabaseOutage)

# The codes of PostgreSQL's timeouts: of a statement, idle in a transaction, of a transaction.
TIMEOUTS = frozenset({"57014", "25P03", "25P04"})


def ended_by_timeout(error: BaseException | None) -> bool:
    """Whether *error*, or what caused it, is the database's answer to what took too long."""
    while error is not None:
        if isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) in TIMEOUTS:
            return True
        error = error.__cause__
    return False


LOCK_NOT_AVAILABLE = "55P03"


def waited_in_vain(error: BaseException) -> bool:
    """Whether *error* says that somebody else went on holding what was waited for."""
    if isinstance(error, DatabaseOutage) and error.__cause__ is not None:
        error = error.__cause__
    cause = getattr(error, "orig", None)
    given_up = getattr(cause, "sqlstate", None) == LOCK_NOT_AVAILABLE
    return given_up or "database is locked" in str(cause)


class Store:
    """The database headway lives in.

    >>> store = Store("sqlite:///headway.db")  # doctest: +SKIP
    >>> with store.reading() as tx: ...        # doctest: +SKIP
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        durable: bool = True,
        connections: int = POOLED,
        file: DatabaseFile | None = None,
    ) -> None:
        self._address = anchored(url)
        self.url = parse_url(self._address)
        self._clock = clock
        self._durable = durable
        self._joined: WeakSet[Engine] = WeakSet()
        self._file: DatabaseFile | None = None
        if self.on_postgresql:
            self._writer: Engine = postgresql_engine(self.url, connections)
            self._reader: Engine = self._writer.execution_options(postgresql_readonly=True)
            self._on_its_own = self._writer.execution_options(isolation_level="AUTOCOMMIT")
        else:
            database = str(self.url.database)
            if file is None:
                create_private(Path(database))
            self._file = file or DatabaseFile(database)
            self._writer = sqlite_engine(self.url, self._file, writing=True, durable=durable)
            self._reader = sqlite_engine(self.url, self._file, writing=False, durable=durable)
            note_own_errors(self._reader)
        note_own_errors(self._writer)

    @property
    def on_postgresql(self) -> bool:
        """Whether this store lives in PostgreSQL."""
        return self.url.get_backend_name() == "postgresql"

    def apart(self) -> "Store":
        """The same database by one connection of its own, which waits for no other work."""
        return Store(
            self._address, clock=self._clock, durable=self._durable, connections=1, file=self._file
        )

    @property
    def lost(self) -> DatabaseLost | None:
        """The error for a SQLite file that was deleted or replaced under this store, else None."""
        return None if self._file is None else self._file.lost

    def on_lost(self, listener: Callable[[DatabaseLost], None]) -> None:
        """Call *listener* when the SQLite file is found to be deleted or replaced.

        It is called once, in the thread that finds it.
        """
        if self._file is not None:
            self._file.on_lost(listener)

    def check(self) -> None:
        """Raise :class:`DatabaseUnavailable` with one line unless the database answers."""
        try:
            with self._reader.connect() as connection:
                connection.execute(text("SELECT 1"))
                if self.on_postgresql:
                    check_schema_arrives(connection, self.url)
        except DBAPIError as error:
            raise in_words(self, error) or cannot_open(self.url, error) from error

    def schema_error(self) -> SchemaError | None:
        """The reason why the schema does not fit this code, if there is one."""
        with self._reader.connect() as connection:
            found = version_of(connection)
        return misfit(found, migrations_for(self.url.get_backend_name()))

    @property
    def is_ticking(self) -> bool:
        """Whether it is PostgreSQL that says what time it is."""
        return self._clock is None and self.on_postgresql

    @worded
    def reading(self) -> Iterator[Transaction]:
        """A transaction that only reads."""
        with self._reader.begin() as connection:
            yield self._transaction(connection)

    @worded
    def picturing(self) -> Iterator[Transaction]:
        """A transaction that only reads, and sees the same moment in all its statements."""
        engine = self._reader
        if self.on_postgresql:  # on SQLite every transaction does
            engine = engine.execution_options(isolation_level="REPEATABLE READ")
        with engine.begin() as connection:
            yield self._transaction(connection)

    @worded
    def writing(self, hint: str | None = None) -> Iterator[Transaction]:
        """A transaction that commits at the end of the block and rolls back on an error.

        With *hint*, listening servers are told of that topic once it has committed.
        """
        with self._begin_writing() as connection:
            if hint is not None and self.on_postgresql:
                now = ask_one(connection, CLOCK_AND_HINT, {"topic": hint}).now
                yield self._transaction(connection, now)
            else:
                yield self._transaction(connection)
        if hint is not None and not self.on_postgresql:
            ring(self.url, hint)

    @worded
    def queueing(self, hint: str) -> Iterator[Transaction]:
        """The same for one statement that queues something: there are no others around it where
        that can read the clock and tell of itself, and it commits on its own."""
        if not self.is_ticking:
            with self.writing(hint) as tx:
                yield tx
        else:
            with self._writer.connect() as connection:
                line = Line(connection)
                if line.is_free:
                    yield Transaction(
                        connection, datetime.now(UTC), ticking=True, hint=hint, line=line
                    )
                    if connection.in_transaction():  # what was asked before has begun one
                        connection.commit()
                    return
            with self._on_its_own.connect() as connection:
                yield Transaction(connection, datetime.now(UTC), ticking=True, hint=hint)

    @worded
    def briefly(self) -> Iterator[Transaction]:
        """The same, for what others wait for: it is ended if this process stops in the middle."""
        with self._begin_writing() as connection:
            if self.on_postgresql:
                yield self._transaction(connection, ask_one(connection, END_IF_IDLE).now)
            else:
                yield self._transaction(connection)

    @worded
    def unclocked(self, *, writing: bool = False) -> Iterator[Transaction]:
        """For a verb that is one statement and reads the database's clock in it, if there is one.

        What every process asks every few seconds costs half as much without asking the time.
        """
        begin = self._begin_writing if writing else self._reader.begin
        with begin() as connection:
            yield self._transaction(connection, datetime.now(UTC))

    def joining(self, connection: Any) -> Transaction:
        """The transaction a caller has open, on a SQLAlchemy connection or session of theirs.

        It has to be on headway's own database; whether it is, is looked up once per engine.
        """
        joined = own_connection(connection)
        if self._file is not None:
            self._file.check()
        if joined.dialect.name == "sqlite":
            check_callers_file(joined)
        if joined.engine not in self._joined:
            if not inspect(joined).has_table(work_queue.name):
                raise DatabaseUnavailable(
                    "connection: leads to a database without headway's tables; pass one to "
                    f"{shown(self.url)}"
                )
            self._joined.add(joined.engine)
        if not self.on_postgresql:
            begin_writing(joined)
        return replace(self._transaction(joined), joined=True)

    @worded
    def leading(
        self, lock: Lock, *, seconds: int = 5, patience: int = 5, wait: bool = False
    ) -> Iterator[Transaction | None]:
        """A writing transaction under *lock*, or None if another server holds it.

        The lock is a statement of its own before the first read, because a snapshot taken in the
        lock's own statement would be older than the lock. The timeouts free the lock within
        *seconds* when this process is stopped in the middle; where they cannot, whoever asks for
        the lock after that time ends the session that holds it. *patience* is how long a
        statement waits for rows that somebody else is writing. With *wait*, whoever comes while
        another server holds the lock has it next, unless that takes long.
        """
        with self._begin_writing() as connection:
            if not self.on_postgresql:
                yield self._transaction(connection)
                return
            taken_at = _try_lock(connection, lock, seconds, patience, wait)
            if taken_at is None:
                if not wait:
                    end_stuck_holder(connection, lock, seconds)
                yield None
                return
            yield self._transaction(connection, taken_at)

    @worded
    def notifying(self) -> Iterator[Connection]:
        """A connection outside transactions, to send notifications on PostgreSQL."""
        with self._writer.connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")

    @contextmanager
    def listening(self) -> Iterator[Connection]:
        """A connection of its own outside transactions, to wait for notifications."""
        with listening_engine(self.url).connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")

    def close(self) -> None:
        """Close every connection, those that are in use once they are given back."""
        for engine in (self._writer, self._reader):
            pool = engine.pool
            engine.dispose()
            # Only now: the pool that takes its place has the listeners this one had before.
            event.listen(pool, "checkin", _close)
            pool.dispose()

    def _begin_writing(self) -> AbstractContextManager[Connection]:
        begun = self._writer.begin()
        return begun if self._file is None else _committed_to(self._file, begun)

    def _transaction(self, connection: Connection, now: datetime | None = None) -> Transaction:
        """At the moment *now*, if the first statement has read the clock already."""
        return Transaction(connection, self._now(connection, now), ticking=self.is_ticking)

    def _now(self, connection: Connection, known: datetime | None) -> datetime:
        if self._clock is not None:
            return self._clock()
        if known is not None:
            return known
        if self.on_postgresql:
            moment: datetime = ask_one(connection, DATABASE_CLOCK).now
            return moment
        # SQLite runs on this machine only: its clock is ours.
        return datetime.now(UTC)


def _close(_connection: object, record: ConnectionPoolEntry) -> None:
    record.invalidate()


END_IF_IDLE = text(
    "SELECT set_config('idle_in_transaction_session_timeout', '5s', true), clock_timestamp() AS now"
).columns(now=Instant)
CLOCK_AND_HINT = text(f"SELECT clock_timestamp() AS now, pg_notify({CHANNEL}, :topic)").columns(
    now=Instant
)
DATABASE_CLOCK = text("SELECT clock_timestamp() AS now").columns(now=Instant)


@contextmanager
def _committed_to(
    file: DatabaseFile, begun: AbstractContextManager[Connection]
) -> Iterator[Connection]:
    """A transaction that counts as committed only if *file* is still in its place afterwards."""
    with begun as connection:
        yield connection
    file.check_committed()


def _try_lock(
    connection: Connection, lock: Lock, seconds: int, patience: int, wait: bool
) -> datetime | None:
    """Take *lock* unless somebody has it; returns when that was, by the database's clock."""
    statement = lock_statement(lock, seconds, patience, limits_transactions(connection), wait)
    try:
        tried = ask_one(connection, statement, {"lock": int(lock)})
    except OperationalError as error:
        if waited_in_vain(error):
            return None
        raise
    if tried.taken is None:  # the lock's key is made from the schema, and there is none
        raise SchemaMissing
    return tried.now if tried.taken else None
