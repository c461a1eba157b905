"""Several applications on one database: what no living server knows waits, then fails visibly."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headway import every
from headway.dispatcher.cycle import DispatchResult
from headway.domain.execution import ExecutionState, FailureCode
from headway.domain.faults import unknown_since
from headway.domain.work_queue import NewEntry, Source
from tests.builders import START, Scene
from tests.dispatcher.test_own_workers import alive, dispatch

MINUTE = timedelta(minutes=1)


def live(scene: Scene, minutes: int, *workflows: str) -> list[DispatchResult]:
    """So many minutes in which servers that know these workflows live, a cycle in each."""
    results = []
    for _ in range(minutes):
        for workflow in workflows:
            alive(scene, name=workflow, workflow=workflow, slots=20)
        results.append(dispatch(scene))
        scene.clock.advance(minutes=1)
    return results


def ad_hoc(scene: Scene, workflow: str, count: int = 1) -> list[int]:
    return scene.enqueue(*[NewEntry(workflow, Source.AD_HOC, "null")] * count)


def test_an_entry_waits_with_the_reason_and_fails_after_the_timeout(scene: Scene) -> None:
    [lost] = ad_hoc(scene, "elsewhere")

    waiting = live(scene, 20, "work")
    assert waiting[0].unknown == {"elsewhere": 1}
    [told] = scene.events.named("dispatcher.cycle")[:1]
    assert told.fields["reasons"] == {"no living server knows 'elsewhere'": 1}
    assert [one.id for one in scene.history.queue.all()] == [lost]

    [last] = live(scene, 1, "work")
    assert last.failed == (lost,)
    assert scene.history.queue.all() == []
    [failed] = scene.ended(ExecutionState.FAILED)
    assert failed.failure is not None
    assert failed.failure.type == FailureCode.UNKNOWN_WORKFLOW
    assert failed.failure.message == "no living server knows its workflow"
    [told] = [one for one in scene.events.named("dispatcher.cycle") if one.fields["failed"]]
    assert told.fields["failed"] == 1
    assert live(scene, 3, "work")[-1].failed == (), "counted once"


def test_two_applications_fail_nothing_of_each_others(scene: Scene) -> None:
    ad_hoc(scene, "work")
    ad_hoc(scene, "elsewhere")

    results = live(scene, 60, "work", "elsewhere")

    assert [one.failed for one in results] == [()] * 60
    assert sum(len(one.dispatched) for one in results) == 2


def test_a_short_absence_counts_from_its_own_beginning(scene: Scene) -> None:
    scene.enqueue(
        NewEntry("elsewhere", Source.AD_HOC, "null", scheduled_at=START + timedelta(hours=2))
    )
    live(scene, 15, "work")
    live(scene, 3, "work", "elsewhere")

    assert all(one.failed == () for one in live(scene, 102, "work")), "it is not even due"
    assert all(one.failed == () for one in live(scene, 19, "work"))
    assert any(one.failed for one in live(scene, 3, "work"))


def test_after_an_outage_the_first_one_back_fails_nothing_of_the_others(scene: Scene) -> None:
    ad_hoc(scene, "elsewhere", 3)
    live(scene, 10, "work")
    live(scene, 90)

    assert all(one.failed == () for one in live(scene, 20, "work"))


def test_it_ends_in_a_dead_letter_after_the_manifests_attempts(scene: Scene) -> None:
    scene.app.workflow("elsewhere")(lambda: None)
    scene.app.schedule("elsewhere", "load", None, every(days=9), max_retries=2)
    scene.apply()

    for _ in range(3):
        scene.manage()
        live(scene, 22, "work")
        scene.clock.advance(hours=1)
    scene.manage()

    [letter] = scene.history.dead_letters.awaiting()
    assert (letter.external_id, letter.failures) == ("load", 2)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (frozenset({"a"}), {"b": START - MINUTE, "c": START}),
        (frozenset({"a", "b", "c"}), {}),
        (frozenset[str](), {}),
    ],
)
def test_since_when_workflows_are_unknown(known: frozenset[str], expected: object) -> None:
    before = {"b": START - MINUTE, "gone": START - MINUTE}

    assert unknown_since(before, ["a", "b", "c"], known, START) == expected
