"""The statements of a dispatcher's first cycle are there before it, and are those it sends."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from headway.config import Settings
from headway.dispatcher.cycle import JobDispatcher
from headway.domain.work_queue import NewEntry, Source
from headway.observe import Observer
from headway.servers.local import LocalServer
from headway.store import leases, straight, work_queue
from headway.store.drafting import draft_cycle
from headway.store.engine import Store
from headway.store.servers import ServerProcess
from tests.dispatcher.test_started_at_once import Workers

pytestmark = pytest.mark.postgresql

ME = ServerProcess("me", "host", 1, ["dispatcher", "worker"], ["work", "rest"], slots=2)
# To put a short one together takes no time.
LONG = 700


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The long statements that are put together, whoever has done so before."""
    texts: list[str] = []
    actual = straight.Written

    def noting(statement: Any) -> Any:
        texts.append(str(statement))
        return actual(statement)

    straight.written.cache_clear()
    monkeypatch.setattr(straight, "Written", noting)
    return texts


def cycle(store: Store, jobs: int) -> int:
    """How many of so many *jobs* a new dispatcher starts in its first two cycles."""
    with store.writing() as tx:
        work_queue.enqueue(tx, [NewEntry("work", Source.AD_HOC, "null")] * jobs)
    dispatcher = JobDispatcher(
        store,
        Settings(),
        Observer(),
        LocalServer(lambda: None),
        to_own_workers=True,
        own_workers=Workers(free=2),
    )
    return sum(len(dispatcher.run_once().dispatched) for _ in range(2))


def test_what_the_first_cycles_send_is_put_together_before(
    emptied_postgres_url: str, written: list[str]
) -> None:
    store = Store(emptied_postgres_url)
    with store.writing() as tx:
        leases.register(tx, ME, timedelta(minutes=1))
    draft_cycle(ME, {"work": "work"})
    before = [one for one in written if len(one) > LONG]
    assert len(before) >= 4
    written.clear()

    assert cycle(store, 1) == 1

    assert [one for one in written if len(one) > LONG] == []
    store.close()
