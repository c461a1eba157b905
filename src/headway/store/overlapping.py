"""What the live runs of a manifest that may overlap stand for: nobody needs to queue that again.

Such runs are not in the way of the next one, so it has to be told what is being dealt with.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import Column, ColumnElement, Text, cast, func, select

from headway.store.eligibility import OVERLAPPING
from headway.store.tables import execution
from headway.store.transaction import Asking


def running_for(manifest_id: Column[Any]) -> ColumnElement[datetime]:
    """The newest occurrence that a run of the manifest stands for."""
    return _of_runs(func.max(execution.c.scheduled_for), manifest_id)


def seen_by_runs(tx: Asking, manifest_id: Column[Any]) -> ColumnElement[str]:
    """What its runs have seen of its parents, as one JSON list of texts."""
    listed = func.json_agg if tx.on_postgresql else func.json_group_array
    return _of_runs(cast(listed(execution.c.parents_seen), Text), manifest_id)


def _of_runs(what: ColumnElement[Any], manifest_id: Column[Any]) -> ColumnElement[Any]:
    return (
        select(what)
        .select_from(execution)
        .where(execution.c.manifest_id == manifest_id, OVERLAPPING)
        .correlate(manifest_id.table)
        .scalar_subquery()
    )


def later(one: datetime | None, other: datetime | None) -> datetime | None:
    """The later of two moments, either of which may be missing.

    >>> later(None, datetime(2025, 1, 1)).year
    2025
    """
    return max((moment for moment in (one, other) if moment is not None), default=None)
