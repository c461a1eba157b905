"""The story of an old snapshot, told in pages: how fast a machine reads them is not the point."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from sqlalchemy import event

from headway.domain.work_queue import NewEntry, Source
from headway.store import executions, outcomes, work_queue
from tests.builders import OWNER, Scene
from tests.stories.servers import COMPLETED

BATCH = 20
JOBS = 2000
PAGES_PER_DEAD_JOB = 0.15


@pytest.mark.story(42)
def test_claims_in_batches_do_not_collapse_while_somebody_holds_an_old_snapshot(
    postgres_url: str,
) -> None:
    """Every claim passes the entries of all jobs that have ended since; a batch does so once."""
    with Scene(postgres_url) as scene, psycopg.connect(plain(postgres_url)) as old:
        queue(scene, BATCH)
        fresh, fresh_alone = pages_of_claim(scene, BATCH), pages_of_claim(scene, 1)
        old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT count(*) FROM headway_execution")
        for _ in range(JOBS // BATCH):
            queue(scene, BATCH)
            with scene.store.writing() as tx:
                claimed = executions.claim_pending(tx, OWNER, BATCH, ["work"])
            with scene.store.writing() as tx:
                outcomes.finish(tx, OWNER, {one.id: COMPLETED for one in claimed})
        together, alone = pages_of_claim(scene, BATCH), pages_of_claim(scene, 1)
        old.rollback()

    assert together < fresh + PAGES_PER_DEAD_JOB * JOBS
    assert alone > 2 * fresh_alone, "the snapshot is felt at all"
    assert together / BATCH < alone / 4, "and shared by those that are claimed together"


def plain(url: str) -> str:
    return url.replace("+psycopg", "")


def queue(scene: Scene, count: int) -> None:
    with scene.store.writing() as tx:
        entries = [NewEntry("work", Source.AD_HOC, "null") for _ in range(count)]
        work_queue.dispatch(tx, work_queue.enqueue(tx, entries))


def pages_of_claim(scene: Scene, limit: int) -> int:
    """How many pages PostgreSQL looks at for one claim, which is then taken back."""
    sent: list[tuple[str, Any]] = []

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, *_more: Any) -> None:
        sent.append((statement, parameters))

    engine = scene.store._writer
    event.listen(engine, "before_cursor_execute", note)
    with engine.connect() as connection, connection.begin() as transaction:
        claimed = executions.claim_pending(
            scene.store._transaction(connection), OWNER, limit, ["work"]
        )
        transaction.rollback()
    event.remove(engine, "before_cursor_execute", note)
    assert len(claimed) == limit
    with engine.connect() as connection:
        cursor = connection.connection.cursor()
        pages = 0
        for statement, parameters in sent:
            cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", parameters)
            [[found]] = cursor.fetchall()
            plan = found[0]["Plan"]
            pages += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        connection.rollback()
    return pages
