"""Resolving dead letters: run again what failed, or leave it at that."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from headway import Headway, RetryPolicy, Run, cron, every, once
from headway.definition.interventions import DeadLetters
from headway.domain.dead_letter import DeadLetterStatus
from headway.domain.execution import ExecutionState
from headway.domain.schedule import Schedule
from headway.errors import DefinitionError, HeadwayError
from headway.store.tables import dead_letter, work_queue
from headway.testing import Sandbox

START = datetime(2030, 1, 7, 12, tzinfo=UTC)
AT_ONCE = RetryPolicy(timedelta(seconds=1), 1.0, timedelta(seconds=1))


class World:
    """Jobs that fail while ``broken``, and what those that did not were given."""

    def __init__(self, url: str) -> None:
        self.broken = True
        self.given: list[int] = []
        self.activate_with: list[int] = []
        self.hw = Headway("shop", database_url=url)
        self.hw.workflow("work")(self.work)
        self.hw.workflow("parent")(self.parent)
        self.url = url

    def work(self, number: int) -> None:
        if self.broken:
            raise RuntimeError("no rows")
        self.given.append(number)

    def parent(self, run: Run) -> None:
        for number in self.activate_with:
            run.activate("dormant", number)

    def open(self) -> Sandbox:
        return Sandbox(self.hw, start=START, database_url=self.url)

    @contextmanager
    def dead(self, schedule: Schedule, **options: Any) -> Iterator[Sandbox]:
        """A sandbox whose manifest ``load`` has just been dead-lettered."""
        self.hw.schedule("work", "load", 1, schedule, max_retries=1, retry=AT_ONCE, **options)
        with self.open() as box:
            box.run_until_idle()
            assert [one.external_id for one in letters(box).awaiting()] == ["load"]
            yield box


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    yield World(database_url)


def letters(box: Sandbox) -> DeadLetters:
    return box.runtime.dead_letters


def letter_of(box: Sandbox) -> int:
    [letter] = letters(box).awaiting()
    return letter.id


def stored(box: Sandbox) -> Any:
    with box.store.reading() as tx:
        return tx.connection.execute(select(dead_letter)).one()


@pytest.mark.parametrize("schedule", [every(hours=1), cron("0 * * * *"), once(at=START)])
def test_acknowledging_consumes_what_was_missed(world: World, schedule: Schedule) -> None:
    """Handled, no retry: nothing fires in the next cycle (W3)."""
    with world.dead(schedule) as box:
        box.advance(hours=5)
        world.broken = False
        assert letters(box).acknowledge(letter_of(box), "known").success
        box.run_until_idle()
        assert world.given == []
        row = stored(box)
        assert row.status == DeadLetterStatus.ACKNOWLEDGED and row.resolution_note == "known"
        box.advance(hours=1)
        assert len(world.given) == (0 if schedule.kind == "once" else 1), "then it goes on"


def test_acknowledging_with_catch_up_consumes_that_one_alone(world: World) -> None:
    with world.dead(cron("0 * * * *"), misfire="catch_up") as box:
        box.advance(hours=3)
        world.broken = False
        letters(box).acknowledge_all()
        box.run_until_idle()
        assert len(world.given) == 3


def test_an_acknowledged_dependent_waits_for_the_next_success_of_its_parent(world: World) -> None:
    chain = world.hw.schedule("parent", "extract", None, every(hours=1))
    chain.then_include("work", "load", 1, max_retries=1)
    with world.open() as box:
        box.run_until_idle()
        world.broken = False
        letters(box).acknowledge_all()
        box.run_until_idle()
        assert world.given == []
        box.advance(hours=1)
        assert world.given == [1]


def test_requeueing_runs_it_once_more_and_counts_failures_anew(world: World) -> None:
    with world.dead(every(hours=1)) as box:
        world.broken = False
        done = letters(box).requeue(letter_of(box), "the server is back")
        assert done.success and done.message == f"requeued as entry {done.entry_id}"
        row = stored(box)
        assert (
            row.status == DeadLetterStatus.RETRIED and row.resolution_note == "the server is back"
        )
        box.run_until_idle()
        assert world.given == [1]
        [again] = [
            one for one in box.history.executions.all("load") if one.entry_id == done.entry_id
        ]
        assert (again.source, again.state) == ("requeue", ExecutionState.COMPLETED)


def test_a_requeued_run_that_fails_again_makes_another_dead_letter(world: World) -> None:
    with world.dead(every(hours=1)) as box:
        first = letter_of(box)
        letters(box).requeue(first)
        box.advance(minutes=1)
        assert letter_of(box) != first


def test_requeueing_an_activation_keeps_the_input_that_failed(world: World) -> None:
    """Not the one that was declared (W34)."""
    world.activate_with = [77]
    chain = world.hw.schedule("parent", "extract", None, every(hours=1))
    chain.then_include("work", "dormant", 1, dormant=True, max_retries=1)
    with world.open() as box:
        box.run_until_idle()
        world.broken = False
        assert letters(box).requeue_all().count == 1
        box.run_until_idle()
        assert world.given == [77]


def test_requeueing_what_is_queued_already_collides_with_nothing(world: World) -> None:
    with world.dead(every(hours=1)) as box:
        box.runtime.trigger("load", delay=timedelta(hours=1))
        assert letters(box).requeue(letter_of(box)).success
        with box.store.reading() as tx:
            sources = set(tx.connection.execute(select(work_queue.c.source)).scalars())
        assert sources == {"trigger", "requeue"}


def test_what_is_missing_or_resolved_is_said_and_raises_nothing(world: World) -> None:
    with world.dead(every(hours=1)) as box:
        letter = letter_of(box)
        assert letters(box).acknowledge(letter).success
        for again in (letters(box).acknowledge(letter), letters(box).requeue(letter)):
            assert not again.success
            assert again.message == f"dead letter {letter} was not found or is already resolved"
        assert not letters(box).requeue(letter + 1).success
        assert letters(box).requeue_many([letter, letter + 1]).count == 0
        assert letters(box).acknowledge_many([]).message == "0 acknowledged"


def test_many_at_once(world: World) -> None:
    for number in range(5):
        world.hw.schedule("work", f"load-{number}", number, every(hours=1), max_retries=1)
    with world.open() as box:
        box.run_until_idle()
        first, second, *_ = [one.id for one in letters(box).awaiting()]
        assert letters(box).acknowledge_many([first, second]).count == 2
        world.broken = False
        assert letters(box).requeue_all().message == "3 requeued"
        box.run_until_idle()
        assert sorted(world.given) == [2, 3, 4]


@pytest.mark.parametrize(
    ("verb", "told"),
    [
        ("requeue_many", "1 requeued"),
        ("requeue_all", "1 requeued"),
        ("acknowledge_many", "1 acknowledged"),
        ("acknowledge_all", "1 acknowledged"),
    ],
)
def test_a_note_about_several_is_kept_with_each(world: World, verb: str, told: str) -> None:
    with world.dead(every(hours=1)) as box:
        chosen = [[letter_of(box)]] if verb.endswith("many") else []
        done = getattr(letters(box), verb)(*chosen, "known since monday")
        assert (done.count, done.message) == (1, told)
        assert stored(box).resolution_note == "known since monday"


@pytest.mark.parametrize("length", [2000, 2001])
def test_a_note_is_kept_up_to_two_thousand_characters(world: World, length: int) -> None:
    with world.dead(every(hours=1)) as box:
        letters(box).acknowledge(letter_of(box), "x" * length)
        note = stored(box).resolution_note
    assert len(note) <= 2000 and ("characters cut" in note) is (length > 2000)


def test_of_two_people_one_wins(world: World) -> None:
    with world.dead(every(hours=1)) as box:
        letter, done = letter_of(box), list[bool]()
        together = threading.Barrier(4)

        def resolve() -> None:
            together.wait()
            done.append(letters(box).requeue(letter).success)

        people = [threading.Thread(target=resolve) for _ in range(4)]
        for one in people:
            one.start()
        for one in people:
            one.join()
        assert sorted(done) == [False, False, False, True]
        with box.store.reading() as tx:
            assert len(tx.connection.execute(select(work_queue)).all()) == 1


def test_the_letter_of_a_removed_manifest_cannot_be_requeued(world: World) -> None:
    with world.dead(every(hours=1)) as box:
        letter = letter_of(box)
        box.runtime.unschedule("load")
        assert not letters(box).requeue(letter).success
        assert stored(box).status == DeadLetterStatus.ACKNOWLEDGED, "its removal resolved it"


@pytest.mark.parametrize("letter", [0, -1, True, "7", None, 2**63])
def test_an_id_that_cannot_be_one_is_refused(world: World, letter: Any) -> None:
    with world.open() as box, pytest.raises(DefinitionError, match="must be its id"):
        letters(box).requeue(letter)


def test_a_list_or_note_of_another_kind_is_refused(world: World) -> None:
    wrong: Any = 7
    with world.open() as box:
        with pytest.raises(DefinitionError, match="must be a list of ids"):
            letters(box).acknowledge_many(wrong)
        text: Any = "78"
        with pytest.raises(DefinitionError, match="dead letters = '78': must be a list of ids"):
            letters(box).requeue_many(text)
        with pytest.raises(DefinitionError, match="note = 7: must be text"):
            letters(box).requeue_all(wrong)


def test_another_input_may_be_given_with_it(world: World) -> None:
    with world.dead(every(hours=1)) as box:
        world.broken = False
        assert letters(box).requeue(letter_of(box), "mended", input=7).success
        box.run_until_idle()
    assert world.given == [7], "not the 1 that failed"


def test_an_input_that_does_not_fit_resolves_nothing(world: World) -> None:
    with world.dead(every(hours=1)) as box:
        letter = letter_of(box)
        with pytest.raises(DefinitionError, match="load: input = 'seven': Input should be a valid"):
            letters(box).requeue(letter, input="seven")
        assert letter_of(box) == letter
        assert not letters(box).requeue(letter + 1, input=7).success


@pytest.mark.parametrize("verb", ["requeue_all", "acknowledge_all"])
def test_all_of_one_group_or_workflow(world: World, verb: str) -> None:
    options = {"max_retries": 1, "retry": AT_ONCE}
    world.hw.workflow("other")(world.work)
    for external_id, workflow, group in (
        ("a", "work", "nightly"),
        ("b", "other", "nightly"),
        ("c", "work", "daily"),
    ):
        world.hw.schedule(workflow, external_id, 1, every(hours=1), group=group, **options)  # type: ignore[arg-type]
    with world.open() as box:
        box.run_until_idle()
        resolve = getattr(letters(box), verb)
        assert resolve(group="nobody").count == 0
        assert resolve(group="nightly", workflow="other").count == 1
        assert sorted(one.external_id for one in letters(box).awaiting()) == ["a", "c"]
        assert resolve(workflow="work").count == 2
        with pytest.raises(HeadwayError, match="'unheard-of' is not registered"):
            resolve(workflow="unheard-of")
