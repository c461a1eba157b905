"""Whoever is behind walks back over what was missed, with every look: the way is looked up once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cronsim import CronSim

from headway.domain import wall_clock
from headway.domain.occurrences import Occurrences
from headway.domain.schedule import cron

MISSED = 100


def test_manifests_that_share_an_expression_share_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    occurrences = Occurrences(cron("7-59/13 * * * * *"))
    searched: list[Any] = []

    def count(*arguments: Any, **options: Any) -> Any:
        searched.append(arguments)
        return CronSim(*arguments, **options)

    monkeypatch.setattr(wall_clock, "CronSim", count)
    now = datetime(2031, 5, 4, 12, tzinfo=UTC)
    since = now - timedelta(hours=1)
    ways = [
        [next(walk) for _ in range(MISSED)]
        for walk in (occurrences.backwards(since, now) for _ in range(50))
    ]

    assert all(way == ways[0] for way in ways) and len(set(ways[0])) == MISSED
    assert len(searched) <= MISSED
