"""Stories behind a pooler that lends a session of PostgreSQL for one transaction at a time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import Barrier

import psycopg
import pytest

from headway.domain.execution import ExecutionState
from headway.store import triggers
from headway.store.engine import Store
from headway.store.locks import Lock
from headway.store.migrate import migrate
from tests.builders import PATIENCE, eventually
from tests.pgbouncer import create_role, pgbouncer, pooled
from tests.postgres_server import PostgresServer
from tests.scenarios.bodies import most_at_once, read_diaries
from tests.scenarios.chained import CAP, SECOND
from tests.scenarios.deployment import Deployment
from tests.store.factories import at_once

NAME = "headway"
CHAINS = 10
PROCESSES = 3
SHARED = 3  # each process would have three for itself
LEADERS = 4
# The default polling intervals of all actors, one after the other, on a busy machine.
FOUND_WITHIN = 15.0
SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'headway'"
LOCKS = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"


@pytest.fixture
def prepared(pgbouncer_is_there: None, own_server: PostgresServer) -> PostgresServer:
    """With a schema and a role for headway, as the guide says."""
    with psycopg.connect(own_server.url(), autocommit=True) as connection:
        connection.execute("CREATE SCHEMA headway")
        create_role(connection, NAME)
    return own_server


@pytest.fixture
def deployment(prepared: PostgresServer, tmp_path: Path) -> Iterator[Deployment]:
    with pgbouncer(prepared, pool=SHARED):
        deployment = Deployment(pooled(prepared.url(), NAME), tmp_path)
        yield deployment
        deployment.close()


def told(server: PostgresServer, question: str) -> int:
    """What PostgreSQL itself says, asked without the pooler."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        row = connection.execute(question.encode()).fetchone()
        assert row is not None
        return int(row[0])


@pytest.mark.full
@pytest.mark.story(25)
def test_processes_that_share_a_few_sessions_run_everything_once_and_within_limits(
    deployment: Deployment, prepared: PostgresServer
) -> None:
    processes = [deployment.start(jobs=CHAINS, app="chained:hw") for _ in range(PROCESSES)]
    deployment.wait_until_completed(2 * CHAINS)
    before = time.monotonic()
    with deployment.store.writing() as tx:
        assert triggers.trigger(tx, "first-0", None, None)
    deployment.wait_until_completed(2 * CHAINS + 2)
    found_after = time.monotonic() - before
    sessions = told(prepared, SESSIONS)
    deployment.stop(*processes)

    bodies = read_diaries(deployment.folder, [])
    again = {0, SECOND}
    everything = [chain + step for chain in range(CHAINS) for step in (0, SECOND)]
    assert Counter(body.job for body in bodies) == Counter([*everything, *again])
    assert deployment.states() == {ExecutionState.COMPLETED: len(everything) + len(again)}
    assert most_at_once(bodies) <= CAP
    assert found_after < FOUND_WITHIN, "with no notification to be heard, polling finds it"
    assert sessions <= SHARED, "fewer than the connections of these processes"
    assert "failed" not in deployment.log()


@pytest.mark.story(25)
def test_no_lock_stays_with_a_session_that_others_get(prepared: PostgresServer) -> None:
    """Nobody lets go before all have asked, and each round is lent the same few sessions."""
    all_asked = Barrier(LEADERS)

    def lead(store: Store) -> bool:
        with store.leading(Lock.MANAGE, seconds=int(PATIENCE)) as tx:
            all_asked.wait(PATIENCE)
            return tx is not None

    with pgbouncer(prepared, pool=LEADERS), ExitStack() as stack:
        stores = [Store(pooled(prepared.url(), NAME)) for _ in range(LEADERS)]
        for store in stores:
            stack.callback(store.close)
        migrate(stores[0])
        for _ in range(20):
            assert sum(at_once(*(partial(lead, store) for store in stores))) == 1
            assert told(prepared, LOCKS) == 0
        assert told(prepared, SESSIONS) <= LEADERS


@pytest.mark.full
@pytest.mark.story(25)
def test_a_pooler_that_is_killed_and_started_again_ends_no_process(
    prepared: PostgresServer, tmp_path: Path
) -> None:
    with pgbouncer(prepared):
        deployment = Deployment(pooled(prepared.url(), NAME), tmp_path)
        process = deployment.start(jobs=1)
        deployment.wait_for("start", 1)
    deployment.store.close()  # it kept connections to the pooler that is gone
    deployment.release()
    deployment.wait_for("end", 1)
    with pgbouncer(prepared):
        eventually(lambda: process.poll() is not None or was_recorded(prepared))
        assert process.poll() is None, deployment.log()
        deployment.stop(process)
        assert deployment.states() == {ExecutionState.COMPLETED: 1}
        deployment.close()


def was_recorded(server: PostgresServer) -> bool:
    return bool(told(server, "SELECT count(*) FROM headway.headway_execution_history"))
