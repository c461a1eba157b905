"""Statements that PostgreSQL is sent together: one way there and back, and one transaction.

Each still has a snapshot of its own, so that what the first one locks, the next one sees as it is
under the lock. They commit when all of them are through, which needs no word from here: a process
that is stopped in the middle holds up nobody. Where one fails, none has happened.

They go by libpq's own calls. The driver's pipeline does the same, and takes longer for it than the
database for its answer.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headway.store.poolers import is_pooled
from headway.store.straight import Written, goes_straight, written

PREPARED = "headway_prepared"

Asked = tuple[Any, Mapping[str, Any]]
Said = tuple[Written, Mapping[str, Any]]


class Line(NamedTuple):
    """A *connection* outside any transaction, for statements that make one of their own.

    >>> Line(connection).ask((LOCK, {"key": 7}), (COUNT, {}))  # doctest: +SKIP
    [[Row(taken=True)], [Row(count=3)]]
    """

    connection: Connection

    @property
    def is_free(self) -> bool:
        """Whether statements can be sent together: nobody listens to what is sent, and no pooler
        is in between, where prepared ones are lost."""
        if not goes_straight(self.connection) or is_pooled(self.connection):
            return False
        return bool(self.connection.dialect.loaded_dbapi.capabilities.has_pipeline())

    def ask(self, *asked: Asked) -> list[Sequence[Any]]:
        """All rows of each statement, which are kept and sent often, with what each is given.

        What PostgreSQL cannot tell the type of by where it stands is text.
        """
        said = [(written(statement), given) for statement, given in asked]
        dbapi: Any = self.connection.dialect.loaded_dbapi
        try:
            try:
                return self._exchanged(said)
            except dbapi.errors.InvalidSqlStatementName:
                # With a rollback the driver may deallocate all statements of its session, these
                # among them. None of this exchange has happened.
                return self._exchanged(said)
        except dbapi.Error as error:
            text = "; ".join(one.text for one, _ in said)
            self.connection._handle_dbapi_exception(error, text, None, None, None)

    def _exchanged(self, said: Sequence[Said]) -> list[Sequence[Any]]:
        info, dbapi = self.connection.info, self.connection.dialect.loaded_dbapi
        prepared: _Prepared = info.setdefault(PREPARED, _Prepared())
        try:
            driver = self.connection.connection.driver_connection
            return _Exchange(dbapi, driver, prepared).answers(said)
        except dbapi.Error:
            # What was prepared may be what is wrong: a table that has changed since, say.
            info[PREPARED] = _Prepared(prepared.count)
            raise


@dataclass
class _Prepared:
    """The statements one connection knows by name; *count* goes on, for no name comes twice."""

    count: int = 0
    names: dict[str, bytes] = field(default_factory=dict)

    def name(self, text: str) -> bytes:
        self.count += 1
        self.names[text] = f"headway_{self.count}".encode()
        return self.names[text]


class _Exchange:
    """One way there and back."""

    def __init__(self, dbapi: Any, driver: Any, prepared: _Prepared) -> None:
        self._dbapi = dbapi
        self._driver = driver
        self._pgconn = driver.pgconn
        self._prepared = prepared
        # Of each command on its way, whether it asks for rows: one that prepares does not.
        self._asks: list[bool] = []

    def answers(self, said: Sequence[Said]) -> list[Sequence[Any]]:
        """What the database answers to each, once it has committed."""
        self._pgconn.enter_pipeline_mode()
        try:
            for one, given in said:
                self._send(one, given)
            self._pgconn.pipeline_sync()
            results = self._driver.wait(self._received())
        finally:
            self._leave()
        pairs = zip(said, results, strict=True)
        return [self._rows(one, result) for (one, _), result in pairs]

    def _leave(self) -> None:
        """A connection that was left in the middle of it is of no use to anybody else."""
        try:
            self._pgconn.exit_pipeline_mode()
        except self._dbapi.Error:
            self._driver.close()
        else:
            self._pass_on_what_was_announced()

    def _pass_on_what_was_announced(self) -> None:
        """The driver waits for more to come, and does not see what has come already."""
        while (message := self._pgconn.notifies()) is not None:
            if self._pgconn.notify_handler is not None:
                self._pgconn.notify_handler(message)

    def _send(self, one: Written, given: Mapping[str, Any]) -> None:
        name = self._prepared.names.get(one.text)
        if name is None:
            name = self._prepared.name(one.text)
            self._pgconn.send_prepare(name, one.text.encode())
            self._asks.append(False)
        values, binary = one.values(given), self._dbapi.pq.Format.BINARY
        # As text, and the statement says of which type each is: it was prepared without values.
        format_ = self._dbapi.adapt.PyFormat.TEXT
        transformer = self._dbapi.adapt.Transformer(self._driver)
        dumped = transformer.dump_sequence(values, [format_] * len(values)) if values else None
        self._pgconn.send_query_prepared(name, dumped, result_format=binary)
        self._asks.append(True)

    def _received(self) -> Generator[Any, Any, list[Any]]:
        """The result of each that asks for rows; raises what the first that failed says."""
        status, read_or_write = self._dbapi.pq.ExecStatus, self._dbapi.waiting.Wait
        while self._pgconn.flush():
            if (yield read_or_write.RW) & read_or_write.R:
                self._pgconn.consume_input()
        results, failed = [], None
        while True:
            while self._pgconn.is_busy():
                yield read_or_write.R
                self._pgconn.consume_input()
            result = self._pgconn.get_result()
            if result is None:
                continue
            if result.status == status.PIPELINE_SYNC:
                break
            results.append(result)
            if result.status == status.FATAL_ERROR:
                failed = failed or result
        if failed is not None:
            raise self._dbapi.errors.error_from_result(failed, encoding="utf-8")
        return [one for one, asks in zip(results, self._asks, strict=True) if asks]

    def _rows(self, one: Written, result: Any) -> Sequence[Any]:
        if not result.nfields:
            return ()
        transformer = self._dbapi.adapt.Transformer(self._driver)
        transformer.set_pgresult(result)
        return one.shaped(transformer.load_rows(0, result.ntuples, tuple), result)
