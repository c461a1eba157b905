"""Inside a sandbox the application is the sandbox; outside it is itself again."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from headway import Headway, HeadwayError, every
from headway.applying import apply_declarations
from headway.errors import DatabaseUnavailable, ManifestNotFound
from headway.history import History
from headway.store.migrate import migrate
from headway.testing import Sandbox
from tests import sandboxed_app
from tests.databases import database_url, postgres_url, sqlite_url
from tests.pgbouncer import create_schema, drop_schema
from tests.store.factories import everything

__all__ = ["database_url", "postgres_url", "sqlite_url"]


@pytest.fixture
def hw(database_url: str) -> Iterator[Headway]:
    """An application whose own database is migrated and applied."""
    hw = Headway("tests", database_url=database_url)

    @hw.workflow
    def work() -> None: ...

    @hw.workflow
    async def calling() -> None:
        await asyncio.to_thread(hw.enqueue, "work")
        hw.trigger("by-hand")

    hw.schedule("work", "hourly", None, every(hours=1))
    hw.schedule("work", "by-hand")
    hw.schedule("calling", "calling")
    with closing(hw.runtime.store):
        apply_declarations(hw, hw.runtime.store)
        yield hw


def test_every_verb_of_the_application_acts_on_the_sandbox(hw: Headway) -> None:
    before = everything(hw.runtime.store)
    with Sandbox(hw) as box:
        hw.enqueue("work")
        hw.trigger("by-hand")
        hw.enqueue_many("work", [None, None])
        hw.operator("alice").trigger("by-hand")
        hw.set_group("by-hand", priority=3)
        assert hw.azolla.capture("orders look too low") in hw.azolla.captures()
        hw.tokens.create("ci", created_by="alice")
        thread = threading.Thread(target=hw.trigger, args=("by-hand",))
        thread.start()
        thread.join()
        assert len(box.queued()) == 6
        assert hw.dead_letters.awaiting() == []
        assert str(hw.why("by-hand")) == str(box.why("by-hand"))
        with closing(hw.open_store()) as store:
            assert History(store).queue.all() == box.queued()
            with store.reading() as tx:
                assert tx.now == box.now
        hw.runtime.schedule("work", "made", None, every(hours=2))
        box.advance(hours=2)
        assert len(box.executions("made")) == 2
    assert everything(hw.runtime.store) == before


def test_jobs_that_call_the_application_call_the_sandbox(hw: Headway) -> None:
    before = everything(hw.runtime.store)
    with Sandbox(hw) as box:
        hw.trigger("calling")
        box.run_until_idle()
        assert box.last("calling").failure is None
        assert len(box.executions("by-hand")) == 1
        assert [one.workflow for one in box.executions()].count("work") == 3
    assert everything(hw.runtime.store) == before


@pytest.fixture(params=["throw-away file", "postgresql"])
def empty_url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """A database of the sandbox's own: none is named, or an empty schema."""
    if request.param != "postgresql":
        yield None
        return
    database, name = request.getfixturevalue("postgres_database"), f"test_{os.urandom(6).hex()}"
    yield create_schema(database, name).replace("postgresql:", "postgresql+psycopg:")
    drop_schema(database, name)


def test_isolated_jobs_that_call_the_application_call_the_sandbox(empty_url: str | None) -> None:
    with Sandbox(sandboxed_app.hw, database_url=empty_url) as box:
        box.advance(hours=1)
        sandboxed_app.hw.trigger("calling")
        box.run_until_idle()
        assert box.last("calling").failure is None
        assert box.last("by-hand").started_at == box.now
        assert [one.workflow for one in box.executions()].count("work") == 2
        [noted] = box.history.audit.page().items
        assert (noted.actor, noted.subject) == ("alice", "by-hand")


def test_what_was_taken_from_the_application_before_acts_on_the_sandbox(hw: Headway) -> None:
    alice, runtime, azolla, tokens = hw.operator("alice"), hw.runtime, hw.azolla, hw.tokens
    letters, before = hw.dead_letters, everything(hw.runtime.store)
    with Sandbox(hw) as box:
        alice.trigger("by-hand")
        runtime.enqueue("work")
        runtime.enqueue_many("work", [None])
        azolla.capture("orders look too low")
        tokens.create("ci", created_by="alice")
        assert letters.awaiting() == []
        assert len(box.queued()) == 3
        assert len(hw.azolla.captures()) == len(hw.tokens.all()) == 1
        engine = create_engine(box.store.url)
        with engine.begin() as connection:
            runtime.trigger("by-hand", connection=connection)
        engine.dispose()
        assert len(box.queued()) == 4
    assert everything(runtime.store) == before
    alice.trigger("by-hand")
    assert everything(runtime.store) != before


def test_afterwards_the_application_is_itself_again_also_after_an_error(hw: Headway) -> None:
    own = hw.runtime
    with pytest.raises(ZeroDivisionError), Sandbox(hw):
        assert hw.runtime is not own
        raise ZeroDivisionError
    assert hw.runtime is own
    hw.trigger("by-hand")
    assert len(History(hw.runtime.store).queue.all()) == 1
    with Sandbox(hw) as box:
        assert box.queued() == []


def test_one_application_is_in_one_sandbox_at_a_time(hw: Headway, tmp_path: Path) -> None:
    box, unused = Sandbox(hw), tmp_path / "unused.db"
    with box:
        for second in (box, Sandbox(hw), Sandbox(hw, database_url=f"sqlite:///{unused}")):
            with pytest.raises(HeadwayError, match="'tests' is in a sandbox already"), second:
                pass
        hw.trigger("by-hand")
        assert len(box.queued()) == 1
    assert not unused.exists()
    with box:
        assert box.queued() == []


def test_a_database_that_is_refused_leaves_the_application_alone(hw: Headway) -> None:
    own = hw.runtime
    with pytest.raises(HeadwayError, match="empty"), Sandbox(hw, database_url=hw.database_url):
        pass
    assert hw.runtime is own


def test_a_connection_to_another_database_is_refused(hw: Headway) -> None:
    before = everything(hw.runtime.store)
    engine = create_engine(hw.runtime.store.url)
    with Sandbox(hw), engine.connect() as connection:
        with pytest.raises(DatabaseUnavailable, match="inside the sandbox"):
            hw.trigger("by-hand", connection=connection)
        connection.commit()
    engine.dispose()
    assert everything(hw.runtime.store) == before


def test_a_manifest_made_at_run_time_has_executions(hw: Headway) -> None:
    with Sandbox(hw) as box:
        hw.runtime.schedule("work", "made", None, every(hours=1))
        assert box.executions("made") == []
        with pytest.raises(HeadwayError, match="'made' has not run yet"):
            box.last("made")
        box.advance(hours=1)
        assert len(box.executions("made")) == 2
        assert box.last("made").external_id == "made"
        with pytest.raises(ManifestNotFound, match="'misspelt'"):
            box.executions("misspelt")


def test_async_code_may_open_and_leave_it(hw: Headway) -> None:
    async def use() -> int:
        with Sandbox(hw) as box:
            hw.trigger("calling")
            await asyncio.to_thread(box.run_until_idle)
            return len(box.executions("calling"))

    assert asyncio.run(use()) == 1


def test_async_code_may_leave_it_in_a_thread(hw: Headway) -> None:
    async def use() -> None:
        box = Sandbox(hw)
        await asyncio.to_thread(box.__enter__)
        await asyncio.to_thread(hw.trigger, "calling")
        await asyncio.to_thread(box.run_until_idle)
        await asyncio.to_thread(box.advance, timedelta(hours=1))
        await asyncio.to_thread(box.__exit__)

    asyncio.run(use())


def test_a_sandbox_on_the_applications_own_empty_database(tmp_path: Path) -> None:
    hw = Headway("tests", database_url=f"sqlite:///{tmp_path / 'own.db'}")

    @hw.workflow
    def work() -> None: ...

    with Sandbox(hw, database_url=hw.database_url) as box:
        hw.enqueue("work")
        assert len(box.queued()) == 1
    with closing(hw.runtime.store) as store:
        assert migrate(store) == []
        assert len(History(store).queue.all()) == 1
