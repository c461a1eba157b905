"""Checks of the database itself, each broken by hand where that database can be."""

from __future__ import annotations

import os
from contextlib import closing
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from sqlalchemy import delete, select

from headway.doctor.checks import CHECKS
from headway.doctor.examination import Doctor
from headway.doctor.findings import Severity
from headway.store import examining_database
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.tables import manifest_group, wake
from tests.builders import Scene
from tests.doctor.examining import change, declare, examine, found, tell, without_references
from tests.doctor.test_checks import CASES
from tests.pgbouncer import with_setting
from tests.postgres_server import PostgresServer

HERE = {
    "clock-skew",
    "read-only",
    "dangling-references",
    "unsafe-settings",
    "old-snapshots",
    "prepared-transactions",
    "idle-replication-slots",
    "vacuum-off",
    "dead-rows",
    "transaction-age",
    "superuser",
}


def test_every_check_has_a_test_that_breaks_a_database() -> None:
    assert {case.check for case in CASES} | HERE == {one.name for one in CHECKS}


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(3600.0, "3600.0 s ahead of the database"), (-5.0, "5.0 s behind the database")],
)
def test_a_clock_that_differs_is_told(scene: Scene, seconds: float, said: str) -> None:
    def wrong_clock() -> datetime:
        return datetime.now(UTC) + timedelta(seconds=seconds)

    [row] = found(scene, machine_clock=wrong_clock)["clock-skew"]
    assert row == f"this machine is {said}"
    assert found(scene) == {}


def test_rows_that_refer_to_nothing_are_told(sqlite_scene: Scene) -> None:
    declare(sqlite_scene, "load")
    with without_references(sqlite_scene) as tx:
        tx.connection.execute(delete(manifest_group))
    assert found(sqlite_scene)["dangling-references"] == (
        "headway_manifest row 1 refers to a row of headway_manifest_group that is gone",
    )


def test_an_index_the_database_does_not_use_is_built_anew(postgres_scene: Scene) -> None:
    scene = postgres_scene
    tell(
        scene,
        "UPDATE pg_index SET indisvalid = false"
        " WHERE indexrelid = 'headway_execution_pending'::regclass",
    )
    assert found(scene) == {"broken-indexes": ("index headway_execution_pending is invalid",)}
    assert dict(examine(scene, fix=True).repaired) == {"broken-indexes": 1}
    assert found(scene) == {}


def test_a_transaction_that_stays_open_is_told(
    postgres_scene: Scene, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examining_database, "OLD", timedelta(0))
    other = Store(postgres_url)
    try:
        with other.reading() as tx:
            tx.connection.execute(select(wake))
            [row] = found(postgres_scene)["old-snapshots"]
            assert "(headway, user postgres): idle in transaction for 0 minutes" in row
    finally:
        other.close()
    assert found(postgres_scene) == {}


def test_autovacuum_switched_off_is_told(postgres_scene: Scene) -> None:
    tell(postgres_scene, "ALTER TABLE headway_wake SET (autovacuum_enabled = false)")
    assert found(postgres_scene) == {"vacuum-off": ("headway_wake: autovacuum_enabled is off",)}
    tell(postgres_scene, "ALTER TABLE headway_wake RESET (autovacuum_enabled)")
    assert found(postgres_scene) == {}


def test_tables_full_of_dead_rows_are_told(
    postgres_scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = postgres_scene
    tell(scene, "ALTER TABLE headway_manifest_group SET (autovacuum_enabled = false)")
    declare(scene, "load")
    for priority in range(20):
        change(scene, manifest_group, priority=priority)
    tell(scene, "SELECT pg_stat_force_next_flush()")
    assert "dead-rows" not in found(scene)
    monkeypatch.setattr(examining_database, "DEAD_ROWS", 10)
    [row] = found(scene)["dead-rows"]
    assert row.startswith("headway_manifest_group: ")
    assert row.endswith(" dead, 1 living")


def test_transaction_ids_that_run_out_are_told(
    postgres_scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examining_database, "TRANSACTIONS", 0)
    [row] = found(postgres_scene)["transaction-age"]
    assert row.startswith("age(datfrozenxid) is ")


def test_a_database_that_takes_no_writes_is_told(postgres_url: str) -> None:
    url = with_setting(postgres_url, "default_transaction_read_only", "on")
    with closing(Store(url)) as store:
        findings = {one.check: one for one in Doctor(store).examine().findings}
    assert findings["read-only"].rows == ("default_transaction_read_only is on",)
    assert findings["read-only"].severity is Severity.ERROR


def test_a_superuser_is_a_hint_and_no_illness(postgres_scene: Scene) -> None:
    report = examine(postgres_scene)
    [hint] = [one for one in report.findings if one.check == "superuser"]
    assert (hint.severity, hint.rows) == (Severity.HINT, ("user postgres is a superuser",))


def test_sqlite_that_does_not_wait_for_the_disk_is_told(sqlite_url: str) -> None:
    with Scene(sqlite_url) as scene:
        [finding] = examine(scene).findings
        assert (finding.check, finding.rows) == ("unsafe-settings", ("PRAGMA synchronous = 0",))
    durable = Store(sqlite_url)
    assert Doctor(durable).examine().findings == ()
    durable.close()


def test_what_blocks_vacuum_and_what_loses_commits(
    own_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(own_server.url(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET max_prepared_transactions = 2")
    own_server.stop()
    own_server.start(durable=True)
    store = Store(own_server.url())
    migrate(store)
    monkeypatch.setattr(examining_database, "OLD", timedelta(0))
    assert [one.check for one in Doctor(store).examine().findings] == ["superuser"]
    assert Doctor(store).examine().healthy

    with psycopg.connect(own_server.url(), autocommit=True) as connection:
        connection.execute("BEGIN")
        connection.execute("INSERT INTO headway_wake (manifest_id, scope) VALUES (1, 'self')")
        connection.execute("PREPARE TRANSACTION 'forgotten'")
        connection.execute("SELECT pg_create_physical_replication_slot('standby', true)")
        connection.execute("ALTER DATABASE postgres SET synchronous_commit = off")
    store.close()
    report = Doctor(store).examine()
    assert {one.check: one.rows for one in report.findings} == {
        "prepared-transactions": ("'forgotten' of postgres, prepared for 0 minutes",),
        "idle-replication-slots": ("slot standby (physical)",),
        "unsafe-settings": ("synchronous_commit = off",),
        "superuser": ("user postgres is a superuser",),
    }
    assert not report.healthy
    store.close()


def test_a_table_somebody_dropped_is_the_only_finding(scene: Scene) -> None:
    tell(scene, "DROP TABLE headway_dead_letter")
    report = examine(scene, fix=True)
    [finding] = report.findings
    assert (finding.check, finding.rows) == ("schema", ("headway_dead_letter is missing",))
    assert not report.healthy


def test_a_table_one_may_not_read_is_told_and_stops_no_other_check(
    postgres_scene: Scene, postgres_url: str
) -> None:
    role = f"plain_{os.urandom(4).hex()}"
    tell(postgres_scene, f"CREATE ROLE {role}")
    schema = postgres_url.rpartition("%3D")[2]
    tell(postgres_scene, f"GRANT USAGE ON SCHEMA {schema} TO {role}")
    tell(postgres_scene, f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}")
    tell(postgres_scene, f"REVOKE SELECT ON headway_dead_letter FROM {role}")
    limited = Store(f"{postgres_url}%20-crole%3D{role}")
    try:
        found = {one.check: one.rows for one in Doctor(limited).examine().findings}
        [row] = found["dead-letters-twice"]
        assert row == "could not be looked at: permission denied for table headway_dead_letter"
        assert "superuser" not in found
        assert "broken-indexes" not in found
    finally:
        limited.close()
        tell(postgres_scene, f"DROP OWNED BY {role}")
        tell(postgres_scene, f"DROP ROLE {role}")
