"""What a chaos run says of work that is not over in the end."""

from __future__ import annotations

from contextlib import closing

from headway.definition.app import Headway
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.torture.run import _explained
from tests.postgres_server import PostgresServer


def test_what_is_left_is_told_although_an_idle_session_was_ended(
    own_server: PostgresServer,
) -> None:
    hw = Headway("tests", database_url=own_server.url())
    hw.workflow("work")(lambda: None)
    with closing(Store(own_server.url())) as store:
        migrate(store)
    with closing(hw.runtime.store):
        entry = hw.enqueue("work")
        own_server.stop()
        own_server.start(durable=True)
        with closing(Store(own_server.url())) as store:
            told = _explained(["entry is queued"], hw, store)
            again = _explained(["entry is queued"], hw, store)

    assert told[0] == "entry is queued" and told[1].startswith("why: not known: ")
    assert again[1].startswith("why: ") and "not known" not in again[1]
    assert entry
