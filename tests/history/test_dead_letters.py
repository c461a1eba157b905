"""Dead letters as lists and pages show them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway.domain.dead_letter import DeadLetterStatus
from headway.domain.work_queue import Source
from headway.history import (
    DeadLetterFilter,
    DeadLetterOverview,
    History,
)
from headway.store import (
    resolution,
    work_queue,
)
from headway.store.engine import Store
from headway.store.reading import dead_letters
from tests.store.factories import (
    FAILED,
    NOON,
    Clock,
    dead_letter_for,
    ran,
)


def test_a_dead_letter_is_shown_with_what_became_of_it(
    family: Store, history: History, clock: Clock
) -> None:
    failed = ran(family, "load", FAILED, source=Source.DEPENDENT)
    dead_letter_for(family, "load")
    [waiting] = history.dead_letters.page().items
    assert waiting == DeadLetterOverview(
        id=waiting.id,
        external_id="load",
        workflow="work",
        group_name="loads",
        status=DeadLetterStatus.AWAITING_INTERVENTION,
        dead_lettered_at=NOON,
        reason="max retries exceeded",
        failures=3,
        execution_id=failed.id,
        resolved_at=None,
        resolution_note=None,
        retry_execution_id=None,
    )
    assert history.dead_letters.detail(waiting.id).letter == waiting
    assert history.manifests.detail("load").dead_letter == waiting
    resolved_at = clock.advance(minutes=1)
    with family.writing() as tx:
        entry = resolution.requeue(tx, [waiting.id], "try it once more")[waiting.id]
    with family.writing() as tx:
        again = work_queue.dispatch(tx, [entry])[entry]
    assert history.dead_letters.detail(waiting.id).letter == replace(
        waiting,
        status=DeadLetterStatus.RETRIED,
        resolved_at=resolved_at,
        resolution_note="try it once more",
        retry_execution_id=again,
    )
    assert history.manifests.detail("load").dead_letter is None
    assert history.manifests.detail("extract").dead_letter is None


def test_dead_letters_come_page_by_page(family: Store, history: History) -> None:
    for name in ("extract", "load", "report", "stray"):
        dead_letter_for(family, name)
    for filters in (DeadLetterFilter(), DeadLetterFilter(workflow="work")):
        first = history.dead_letters.page(filters, limit=3)
        assert [one.external_id for one in first.items] == ["stray", "report", "load"]
        rest = history.dead_letters.page(filters, first.next, 3)
        assert ([one.external_id for one in rest.items], rest.next) == (["extract"], None)
        assert history.dead_letters.page(filters, limit=4).next is None
    waiting = DeadLetterFilter(DeadLetterStatus.AWAITING_INTERVENTION, "extracts", "work")
    with family.writing() as tx:
        resolution.acknowledge(tx, resolution.Waiting(group="loads"), None)
    assert [one.external_id for one in history.dead_letters.page(waiting).items] == [
        "stray",
        "extract",
    ]
    acknowledged = DeadLetterFilter(DeadLetterStatus.ACKNOWLEDGED)
    assert [one.external_id for one in history.dead_letters.page(acknowledged).items] == ["load"]


def test_a_page_of_dead_letters_looks_at_so_many_rows_and_no_more(
    family: Store, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "EXAMINED", 2)
    for name in ("extract", "load", "report", "stray"):
        dead_letter_for(family, name)
    of_loads = DeadLetterFilter(group="loads")
    first = history.dead_letters.page(of_loads)
    assert first.items == ()
    rest = history.dead_letters.page(of_loads, first.next)
    assert [one.external_id for one in rest.items] == ["load"]
    assert history.dead_letters.page(of_loads, rest.next).items == ()
