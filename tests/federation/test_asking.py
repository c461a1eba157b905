"""Deployments are asked side by side, within a budget, and the asker goes on with its own work."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

from headway.domain.azolla.artifacts import (
    ArtifactType,
    ResponseStatus,
    SubstrateQuery,
    SubstrateQueryResponse,
)
from headway.federation.asking import Patience, ask_all, unavailable

NOW = datetime(2030, 1, 1, tzinfo=UTC)
QUERY = SubstrateQuery(
    query_id="query-3f9a1c2b5d6e",
    source_azolla_id="sales",
    target_azolla_id="warehouse",
    artifact_type=ArtifactType.OBJECTIVE,
    filter={},
    created_at=NOW,
)


def test_what_is_to_be_done_meanwhile_is_done_again_and_again() -> None:
    called, enough = list[int](), threading.Event()

    def meanwhile() -> None:
        called.append(1)
        if len(called) == 3:
            enough.set()

    def slow(query: SubstrateQuery) -> tuple[SubstrateQueryResponse, str | None]:
        assert enough.wait(20), "the claim would not have been renewed while it was waited"
        return unavailable(query, "", NOW).response, "answered"

    [asked] = ask_all([QUERY], slow, Patience(budget=60, pause=0.01, meanwhile=meanwhile))
    assert (asked.note, len(called) >= 3) == ("answered", True)


def test_who_has_not_answered_within_the_budget_is_unavailable() -> None:
    never = threading.Event()

    def silent(query: SubstrateQuery) -> tuple[SubstrateQueryResponse, str | None]:
        never.wait(20)
        raise AssertionError("nobody asks any more")

    [asked] = ask_all([QUERY], silent, Patience(budget=0.01, pause=60, meanwhile=lambda: None))
    never.set()
    assert asked.response.status is ResponseStatus.TARGET_UNAVAILABLE
    assert asked.note == "no answer within 0.01 s"
