"""The failures that count for a manifest: those since its last success or resolution."""

import json
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    Select,
    Text,
    cast,
    extract,
    func,
    select,
    type_coerce,
)

from headway.domain.execution import ExecutionState, FailureCode
from headway.store.tables import execution_history, manifest, manifest_state
from headway.store.transaction import Asking, word
from headway.store.types import EPOCH, MICROSECOND

MICROSECONDS = 1_000_000


class Failures(NamedTuple):
    """How many there were, when the last was, for which occurrence, and whether for good."""

    number: int = 0
    last_at: datetime | None = None
    scheduled_for: datetime | None = None
    for_good: bool = False


NONE = Failures()


def failures_of(tx: Asking) -> ColumnElement[str]:
    """What counts against a manifest as one JSON text: one look into the index for all of it.

    Each maximum on its own could be looked for in another index, by reading the whole history.
    """
    history = execution_history.c
    fields = (
        func.count(),
        _microseconds(tx, func.max(history.finished_at)),
        _microseconds(tx, func.max(history.scheduled_for)),
        func.max(cast(history.final, Integer)),
    )
    listed = func.json_build_array(*fields) if tx.on_postgresql else func.json_array(*fields)
    return _counted(cast(listed, Text)).scalar_subquery()


def last_retry_at() -> ColumnElement[Any]:
    """When the newest of them said that it may be tried again."""
    newest_first = execution_history.c.id.desc()
    return _counted(execution_history.c.retry_at).order_by(newest_first).limit(1).scalar_subquery()


def read_failures(text: str) -> Failures:
    """What :func:`failures_of` says.

    >>> read_failures("[2, 60000000, null, 1]").last_at.minute
    1
    """
    if text.startswith("[0,"):
        return NONE
    count, last_at, scheduled_for, for_good = json.loads(text)
    return Failures(count, _moment(last_at), _moment(scheduled_for), bool(for_good))


def _moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else EPOCH + microseconds * MICROSECOND


def _microseconds(tx: Asking, moment: ColumnElement[Any]) -> ColumnElement[int]:
    if tx.on_postgresql:
        return cast(extract("epoch", moment) * MICROSECONDS, BigInteger)
    return type_coerce(moment, BigInteger)


def _counted(what: ColumnElement[Any]) -> Select[tuple[Any]]:
    """*what* of the failures since the later of last success and last resolution.

    Crashes of workers are not failures.
    """
    return (
        select(what)
        .select_from(execution_history)
        .where(
            execution_history.c.manifest_id == manifest.c.id,
            execution_history.c.id > manifest_state.c.failures_after,
            execution_history.c.state == word(ExecutionState.FAILED),
            execution_history.c.failure_type != word(FailureCode.WORKER_LOST),
        )
        .correlate(manifest, manifest_state)
    )
