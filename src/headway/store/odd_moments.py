"""Timestamps of PostgreSQL that Python has no value for: ``infinity``, and years beyond 9999 or BC.

The driver refuses them with the whole result they are in, so that one edited row would hold up
every claim, cycle and page that reads it. They are read as moments far ahead or long ago instead.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from sqlalchemy import Engine, event

from headway.store.types import FAR_AHEAD, LONG_AGO

_NAME, _OID = "timestamptz", 1184


class Moment:
    """Reads a timestamp as the driver does, and one that the driver refuses as well.

    The driver itself is not imported here: an installation for SQLite alone does not have it.
    """

    format: Any
    usual: Callable[..., Any]
    refused: type[Exception]

    def __init__(self, oid: int, context: Any = None) -> None:
        self._load = type(self).usual(oid, context).load

    def load(self, data: Any) -> Any:
        """The moment, or one that stands for it."""
        try:
            return self._load(data)
        except self.refused as error:
            return FAR_AHEAD if "too large" in str(error) else LONG_AGO


@cache
def _loaders(driver: Any) -> list[type[Moment]]:
    """One class for each of the two ways in which values come."""
    return [
        type(
            "Moment",
            (Moment,),
            {
                "format": way,
                "usual": driver.adapters.get_loader(_OID, way),
                "refused": driver.DataError,
            },
        )
        for way in (driver.pq.Format.TEXT, driver.pq.Format.BINARY)
    ]


def read_odd_moments(engine: Engine) -> None:
    """Have every connection of *engine* read timestamps like that."""

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: Any) -> None:
        driver: Any = engine.dialect.loaded_dbapi
        for loader in _loaders(driver):
            connection.adapters.register_loader(_NAME, loader)
