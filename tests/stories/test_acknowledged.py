"""What was acknowledged is there after a crash, or nothing starts that could acknowledge it."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from headway import Headway
from headway.definition.runtime import Runtime
from headway.errors import SettingsError
from headway.executor import Executor
from headway.history import History
from headway.service import Service
from headway.store.engine import Store
from headway.store.migrate import migrate
from tests.builders import Scene, eventually
from tests.postgres_server import PostgresServer

CRASHES = 5


def careless(url: str) -> str:
    """The same database for somebody who does not wait for the disk."""
    return f"{url}%20-csynchronous_commit%3Doff"


@pytest.mark.story(44)
def test_no_start_on_a_database_that_does_not_wait_for_the_disk(postgres_url: str) -> None:
    with Scene(careless(postgres_url), virtual_time=False) as scene:
        service = Service(scene.app)
        with pytest.raises(SettingsError, match=r"^synchronous_commit = off: must be on, .+") as no:
            service.start()
        service.stop()
        with pytest.raises(SettingsError), Executor(scene.app):
            pass
        assert "\n" not in str(no.value) and "HEADWAY_ALLOW_LOST_COMMITS=true" in str(no.value)


@pytest.mark.story(44)
def test_whoever_asks_for_it_starts_there_all_the_same(postgres_url: str) -> None:
    with Scene(careless(postgres_url), virtual_time=False, allow_lost_commits=True) as scene:
        with Executor(scene.app):
            pass
        service = Service(scene.app)
        service.start()
        service.stop()
        assert scene.events.named("service.started")


@pytest.mark.story(44)
def test_sqlite_is_opened_so_that_it_waits_for_the_disk(sqlite_url: str) -> None:
    store = Headway(database_url=sqlite_url).open_store()
    with store.writing() as tx:
        assert tx.connection.execute(text("PRAGMA synchronous")).scalar_one() == 2, "FULL"
    store.close()


@pytest.mark.full
@pytest.mark.story(44)
def test_what_was_queued_survives_the_death_of_the_database(own_server: PostgresServer) -> None:
    """kill -9 of the postmaster as soon as each call has returned."""
    store = Store(own_server.url())
    migrate(store)
    app = Headway("tests", database_url=own_server.url())
    app.workflow("work")(lambda: None)
    acknowledged = []
    for _ in range(CRASHES):
        acknowledged.append(Runtime("tests", app.registry, store).enqueue("work"))
        own_server.kill()
        store.close()
        eventually(lambda: starts_again(own_server))

    assert [one.id for one in History(store).queue.all()] == acknowledged
    store.close()


def starts_again(server: PostgresServer) -> bool:
    """Not before the last process of the dead one has ended."""
    try:
        server.start(durable=True)
    except RuntimeError:
        return False
    return True
