"""Restarts of the database as a chaos run does them, on a real server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread

import psycopg
import pytest

from headway.applying import apply_declarations
from headway.store.migrate import migrate
from headway.torture import evidence
from headway.torture.application import build
from headway.torture.crew import Crew, Deployment, lineup
from headway.torture.evidence import Notebook
from headway.torture.facts import Facts
from headway.torture.outages import activations_that_waited, starts_that_waited
from headway.torture.plan import SIRENS, Fault, Plan
from headway.torture.restarts import MODES, DatabaseRestarts
from tests.builders import eventually
from tests.postgres_server import PostgresServer

PATIENT = 60.0

# With a long lease, so that no process loses it and each start meets the server that is down.
PLAN = Plan(
    seed=20,
    minutes=1,
    schedulers=3,
    workers=3,
    lease=60.0,
    tickers=1,
    capped=1,
    flaky=0,
    hopeless=0,
    poisonous=0,
    chains=0,
)


@pytest.fixture
def crew(own_server: PostgresServer, tmp_path: Path) -> Iterator[Crew]:
    """Three schedulers and three workers that have come up."""
    deployment = Deployment(own_server.url(), tmp_path, PLAN)
    app = build(deployment.url, tmp_path, PLAN)
    store = app.open_store()
    migrate(store)
    apply_declarations(app, store)
    store.close()
    crew = Crew(deployment, Notebook(tmp_path))
    try:
        for roles in lineup(PLAN):
            crew.start(roles)
        eventually(lambda: not crew.starting())
        yield crew
    finally:
        crew.disband()


@pytest.mark.full
@pytest.mark.parametrize("fault", MODES)
def test_starts_and_activations_meet_the_restart(
    own_server: PostgresServer, crew: Crew, fault: Fault, tmp_path: Path
) -> None:
    hw = build(own_server.url(), tmp_path, PLAN)
    restarts = DatabaseRestarts(own_server, crew, hw, Notebook(tmp_path), crew.resume, PATIENT)
    with closing(hw.runtime.store):
        restarts.restart(fault)
    eventually(lambda: not crew.starting())
    eventually(lambda: ended(tmp_path) >= {f"siren-0-{place}" for place in range(len(SIRENS))})

    facts = Facts(PLAN, tuple(evidence.read(tmp_path)), (), (), (), cutoff=0.0)
    assert len(facts.outages()) == 1
    assert len(starts_that_waited(facts)) >= 2
    assert activations_that_waited(facts)
    assert not facts.noted("exited")


def ended(folder: Path) -> set[str]:
    return {line.words[1] for line in evidence.read(folder) if line.what == "end"}


def test_a_commit_is_written_and_not_answered(own_server: PostgresServer) -> None:
    errors: list[Exception] = []

    def insert() -> None:
        try:
            with psycopg.connect(own_server.url(), autocommit=True) as connection:
                connection.execute("INSERT INTO noted VALUES (1)")
        except psycopg.OperationalError as error:
            errors.append(error)

    with psycopg.connect(own_server.url(), autocommit=True) as admin:
        admin.execute("CREATE TABLE noted (number integer)")
        own_server.withhold_commits()
        shown = "SHOW synchronous_standby_names"
        eventually(lambda: admin.execute(shown).fetchone() == ("nobody",))
        thread = Thread(target=insert)
        thread.start()
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        eventually(lambda: admin.execute(waiting).fetchone() == (1,))
    own_server.stop("immediate")
    thread.join()
    own_server.answer_commits()
    own_server.start(durable=True)

    assert len(errors) == 1
    with psycopg.connect(own_server.url(), autocommit=True) as admin:
        assert admin.execute("SELECT number FROM noted").fetchall() == [(1,)]
        admin.execute("INSERT INTO noted VALUES (2)")
