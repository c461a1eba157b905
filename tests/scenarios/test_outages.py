"""A database that goes away ends no process and loses no job."""

import signal

import psycopg
import pytest

from headway.domain.execution import ExecutionState
from headway.domain.work_queue import NewEntry, Source
from headway.health import Health
from headway.service import Service
from tests.builders import Scene, eventually
from tests.postgres_server import PostgresServer
from tests.scenarios.deployment import Deployment

TWO_AT_A_TIME = {"HEADWAY_WORKER_COUNT": "2", "HEADWAY_SHUTDOWN_TIMEOUT": "0.1s"}


@pytest.fixture
def server(own_server: PostgresServer) -> PostgresServer:
    return own_server


@pytest.fixture
def deployment(on_own_server: Deployment) -> Deployment:
    """Every test of this file is about a server that it may stop."""
    return on_own_server


@pytest.mark.story(15)
def test_a_restart_of_the_database_ends_no_process_and_no_job(
    server: PostgresServer, deployment: Deployment
) -> None:
    """Jobs that run meanwhile go on, and their ends are written when it is back."""
    process = deployment.start(jobs=6, settings=TWO_AT_A_TIME)
    deployment.wait_for("start", 2)
    deployment.store.close()
    server.stop()
    deployment.release()
    deployment.wait_for("end", 2)
    assert process.poll() is None, deployment.log()
    server.start(durable=True)
    deployment.wait_until_completed(6)
    deployment.stop(process)

    assert deployment.states() == {ExecutionState.COMPLETED: 6}
    assert deployment.evidence("start") == deployment.evidence("end")
    assert set(deployment.evidence("end").values()) == {1}


@pytest.mark.full
def test_health_turns_red_while_the_database_is_away_and_work_goes_on_when_it_is_back(
    server: PostgresServer,
) -> None:
    """Once every loop has come to its longest pause."""
    with Scene(server.url(), virtual_time=False) as scene:
        service = Service(scene.app)
        service.start()
        try:
            assert service.health() == Health()
            scene.store.close()
            server.stop()
            [red] = scene.events.wait_for("service.unhealthy")
            scene.events.wait_for("loop.failed", loop="pulse", count=5)
            assert not service.health().green
            server.start(durable=True)
            scene.events.wait_for("service.healthy")
            scene.enqueue(NewEntry("work", Source.AD_HOC, "null"))
            scene.events.wait_for("execution.completed")
            assert service.health() == Health()
        finally:
            service.stop()

    assert red.fields["reasons"][0].startswith("the database does not answer since ")


@pytest.mark.full
def test_a_process_whose_database_is_away_still_stops(
    server: PostgresServer, deployment: Deployment
) -> None:
    process = deployment.start(settings=TWO_AT_A_TIME)
    deployment.wait_for("start", 2)
    server.stop()

    process.send_signal(signal.SIGTERM)
    deployment.ended(process)

    assert deployment.evidence("end").total() == 0
    assert "Task was destroyed" not in deployment.log()


@pytest.mark.full
@pytest.mark.story(17)
def test_every_session_ended_again_and_again_loses_no_job(
    server: PostgresServer, deployment: Deployment
) -> None:
    deployment.release()
    process = deployment.start(jobs=30, settings=TWO_AT_A_TIME)
    with psycopg.connect(server.url(), autocommit=True) as connection:
        for count in (1, 10, 20):
            deployment.wait_for("start", count)
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'headway' AND pid <> pg_backend_pid()"
            )
        deployment.wait_for("end", 30)
        completed = "SELECT count(*) FROM headway_execution_history WHERE state = 'completed'"
        eventually(lambda: connection.execute(completed).fetchone() == (30,))
    assert process.poll() is None, deployment.log()
    deployment.stop(process)

    assert set(deployment.evidence("end").values()) == {1}
