"""Chaos without processes: seeded stories of the real actors, and what breaks them."""

from __future__ import annotations

from typing import Any

import pytest

from headway.store import outcomes, settling
from headway.torture.simulation import simulate

STEPS = 150


def test_whatever_comes_in_between_everything_is_done_once() -> None:
    told = {seed: simulate(seed, STEPS) for seed in range(6)}
    assert {seed: broken for seed, (broken, _) in told.items() if broken} == {}
    assert sum(refused for _, refused in told.values()) > 0, "zombies did come back"


def test_a_seed_plays_the_same_story_every_time() -> None:
    assert simulate(1, 60) == simulate(1, 60)


def test_without_the_sweep_the_story_ends_badly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "end_orphans", lambda tx, max_crashes: ([], []))
    assert any(simulate(seed, STEPS)[0] for seed in range(3))


def test_without_what_follows_from_an_end_a_schedule_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    settle, calls = settling.settle_ended, []

    def forget_some(tx: Any, ended: Any) -> None:
        calls.append(ended)
        if len(calls) % 5:
            settle(tx, ended)

    monkeypatch.setattr(outcomes, "settle_ended", forget_some)
    told = [sentence for seed in range(2) for sentence in simulate(seed, STEPS)[0]]
    assert any("nothing after" in sentence for sentence in told)
