"""Dead letters as lists and pages show them."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Row, Select, select

from headway.domain.dead_letter import DeadLetterStatus
from headway.domain.views import DeadLetterDetail, DeadLetterFilter, DeadLetterOverview
from headway.store.execution_rows import to_execution
from headway.store.reading import execution_pages, executions
from headway.store.reading.bounded import EXAMINED, choose, in_order_of
from headway.store.reading.names import group_named
from headway.store.tables import dead_letter, manifest, manifest_group
from headway.store.transaction import Transaction, among, word

RUNS = 20


def page(
    tx: Transaction, wanted: DeadLetterFilter, before: int | None, limit: int
) -> tuple[list[DeadLetterOverview], int | None]:
    """The newest dead letters below the id *before*, and the id to go on from."""
    letter = dead_letter.c
    statement = select(letter.id, letter.manifest_id).order_by(letter.id.desc())
    if before is not None:
        statement = statement.where(letter.id < before)
    if wanted.status is not None:
        statement = statement.where(letter.status == word(wanted.status))
    everything = wanted.group is None and wanted.workflow is None
    read = limit + 1 if everything else EXAMINED
    rows = tx.connection.execute(statement.limit(read)).all()
    own = None if everything else _of_these(tx, wanted, {row.manifest_id for row in rows})
    matches = None if own is None else lambda row: row.manifest_id in own
    found = choose(rows, matches, limit, cut=len(rows) == read)
    stopped = found.stopped_at and found.stopped_at.id
    return _overviews(tx, [row.id for row in found.rows]), stopped


def _of_these(tx: Transaction, wanted: DeadLetterFilter, ids: Iterable[int]) -> set[int]:
    """Those manifests that belong to the group and have the workflow asked for."""
    statement = select(manifest.c.id).where(among(tx, manifest.c.id, ids))
    if wanted.group is not None:
        statement = statement.where(manifest.c.group_id == group_named(tx, wanted.group))
    if wanted.workflow is not None:
        statement = statement.where(manifest.c.workflow == wanted.workflow)
    return set(tx.connection.execute(statement).scalars())


def _overviews(tx: Transaction, ids: Sequence[int]) -> list[DeadLetterOverview]:
    rows = tx.connection.execute(_columns().where(among(tx, dead_letter.c.id, ids)))
    return [_overview(row) for row in in_order_of(ids, rows)]


def detail(tx: Transaction, letter_id: int) -> DeadLetterDetail | None:
    """Everything about a dead letter, None if there is none of this id."""
    statement = _columns(dead_letter.c.input).where(dead_letter.c.id == letter_id)
    row = tx.connection.execute(statement).one_or_none()
    if row is None:
        return None
    failed = None if row.execution_id is None else executions.find(tx, row.execution_id)
    return DeadLetterDetail(
        letter=_overview(row),
        input=row.input,
        execution=None if failed is None else to_execution(failed),
        executions=tuple(execution_pages.newest_of(tx, row.manifest_id, RUNS)),
    )


def awaiting_of(tx: Transaction, manifest_id: int) -> DeadLetterOverview | None:
    """The dead letter of a manifest that still waits for a person."""
    statement = _columns().where(
        dead_letter.c.manifest_id == manifest_id,
        dead_letter.c.status == word(DeadLetterStatus.AWAITING_INTERVENTION),
    )
    row = tx.connection.execute(statement).one_or_none()
    return None if row is None else _overview(row)


_SHOWN = [
    "id",
    "manifest_id",
    "status",
    "dead_lettered_at",
    "reason",
    "failures",
    "execution_id",
    "resolved_at",
    "resolution_note",
    "retry_execution_id",
]


def _columns(*more: Any) -> Select[Any]:
    return select(
        *(dead_letter.c[name] for name in _SHOWN),
        manifest.c.external_id,
        manifest.c.workflow,
        manifest_group.c.name.label("group_name"),
        *more,
    ).select_from(dead_letter.join(manifest).join(manifest_group))


def _overview(row: Row[Any]) -> DeadLetterOverview:
    return DeadLetterOverview(
        id=row.id,
        external_id=row.external_id,
        workflow=row.workflow,
        group_name=row.group_name,
        status=DeadLetterStatus(row.status),
        dead_lettered_at=row.dead_lettered_at,
        reason=row.reason,
        failures=row.failures,
        execution_id=row.execution_id,
        resolved_at=row.resolved_at,
        resolution_note=row.resolution_note,
        retry_execution_id=row.retry_execution_id,
    )
