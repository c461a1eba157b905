"""Ten workers, five hundred events, and kills at the boundary of every step."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import func, insert, select

from headway.domain.azolla import ids
from headway.domain.azolla.artifacts import Event, EventType
from headway.federation.worker import MANIFEST_SCHEDULER_WORKER
from headway.store import objectives, tables
from headway.store.artifact_rows import to_row
from headway.store.engine import Store
from headway.store.migrate import migrate
from tests.federation.mortal import WORKFLOW_STEPS
from tests.store.factories import rows_of

EVENTS = 500
ROLES = {"schedule": 10, "execute": 2}
KILLS_EACH = 2
PATIENCE = 1200.0  # only against hanging: a busy machine needs minutes
BOUNDARIES = [step.name for step in MANIFEST_SCHEDULER_WORKER.steps] + list(WORKFLOW_STEPS)
ONE_EACH = (
    tables.context_snapshot,
    tables.workorder,
    tables.output_bundle,
    tables.run_record,
    tables.session_manifest,
)


class Workers:
    """Processes that die; each is replaced by another."""

    def __init__(self, url: str, folder: Path) -> None:
        self._arguments = [url, str(folder)]
        self._log = folder / "log"
        self._living: dict[subprocess.Popen[bytes], str] = {}
        self.killed = 0
        self.ended_otherwise: list[int] = []

    def keep_alive(self) -> None:
        for process in [one for one in self._living if one.poll() is not None]:
            del self._living[process]
            if process.returncode == -9:
                self.killed += 1
            else:
                self.ended_otherwise.append(process.returncode)
        living = Counter(self._living.values())
        for role, wanted in ROLES.items():
            for _ in range(wanted - living[role]):
                command = [sys.executable, "-m", "tests.federation.mortal", role]
                with self._log.open("ab") as log:
                    process = subprocess.Popen([*command, *self._arguments], stdout=log, stderr=log)
                self._living[process] = role

    def stop(self) -> None:
        for process in self._living:
            process.kill()
        for process in self._living:
            process.wait()


@pytest.mark.long
@pytest.mark.timeout(PATIENCE + 60)
def test_every_event_leads_to_one_of_everything_whoever_is_killed(
    postgres_url: str, tmp_path: Path
) -> None:
    tokens = tmp_path / "tokens"
    tokens.mkdir()
    for boundary in BOUNDARIES:
        for number in range(KILLS_EACH):
            (tokens / f"{boundary}.{number}").touch()
    with closing(Store(postgres_url)) as store:
        migrate(store)
        with store.writing() as tx:
            objectives.ensure_standing(tx, "mortal", "mortal")
        requested = request(store)
        workers = Workers(postgres_url, tmp_path)
        try:
            wait_until_judged(store, workers, tmp_path)
        finally:
            workers.stop()
        check(store, requested)
    assert list(tokens.iterdir()) == [], "every boundary was met"
    assert workers.killed == len(BOUNDARIES) * KILLS_EACH
    assert workers.ended_otherwise == []
    versions = Counter(
        tuple(line.split()[:3]) for line in (tmp_path / "claims").read_text().splitlines()
    )
    assert [one for one, times in versions.items() if times > 1] == [], "one owner per version"


def request(store: Store) -> list[str]:
    with store.writing() as tx:
        new = [
            Event(
                event_id=ids.event_of(str(number)),
                type=EventType.MANIFEST_REQUESTED,
                resource_id="mortal",
                azolla_id="mortal",
                created_at=tx.now,
            )
            for number in range(EVENTS)
        ]
        tx.connection.execute(insert(tables.event), [to_row(one) for one in new])
    return [one.event_id for one in new]


def wait_until_judged(store: Store, workers: Workers, folder: Path) -> None:
    end = time.monotonic() + PATIENCE
    judged = select(func.count()).select_from(tables.run_record)
    while True:
        workers.keep_alive()
        with store.reading() as tx:
            count = tx.connection.execute(judged).scalar_one()
        if count >= EVENTS and not list((folder / "tokens").iterdir()):
            return
        assert time.monotonic() < end, f"{count} judged\n{(folder / 'log').read_text()[-3000:]}"
        time.sleep(0.2)


def check(store: Store, requested: list[str]) -> None:
    orders = {ids.workorder_of(event_id) for event_id in requested}
    for table in ONE_EACH:
        assert len(rows_of(store, table)) == EVENTS, table.name
    assert {row["work_order_id"] for row in rows_of(store, tables.workorder)} == orders
    for table in (tables.output_bundle, tables.run_record):
        assert {row["work_order_id"] for row in rows_of(store, table)} == orders
    for row in rows_of(store, tables.event):
        assert (row["processed"], row["terminal_reason"]) == (True, "SCHEDULED")
    assert {row["gate_result"] for row in rows_of(store, tables.run_record)} == {"PASS"}
    assert {row["status"] for row in rows_of(store, tables.workorder)} == {"EXECUTED"}
