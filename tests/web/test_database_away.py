"""Requests while the database is away: a clean 503, and one line each in the log."""

import logging

import pytest

from headway import Headway
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.web.app import build_app
from headway.web.routing import Scope
from headway.web.security.access import Access
from headway.web.security.identity import Identity
from tests.postgres_server import PostgresServer
from tests.web.site import listening

READER = Identity("rita", {Scope.READ})


def test_each_failed_request_is_one_line_in_the_log(
    own_server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(own_server.url())
    migrate(store)
    with listening(build_app(Headway("shop"), store, Access(lambda request: READER))) as site:
        assert site.get("/api/v1/manifests").status == 200
        own_server.stop()
        caplog.clear()
        answers = [site.get(path).status for path in ("/api/v1/manifests", "/manifests")]
        json = {"content-type": "application/json", "authorization": "Bearer x"}
        refused = site.ask("POST", "/api/v1/queue", b"{}", json)
    store.close()

    assert answers == [503, 503]
    failed = [record for record in caplog.records if record.name == "headway.web"]
    assert [record.levelno for record in failed] == [*[logging.ERROR] * 2, logging.WARNING]
    assert [record.exc_info for record in failed] == [None] * 3
    assert refused.status == 403, "although it cannot be noted"
    unnoted = failed[2].getMessage()
    assert unnoted.startswith("the refusal of POST /api/v1/queue is not in the audit: ")
    line = failed[0].getMessage()
    assert line.startswith("GET /api/v1/manifests failed: DatabaseOutage: the database failed: ")
    assert line.count("terminating connection") == 1
    assert len(line.splitlines()) == 1
