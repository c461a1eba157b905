"""What the dispatcher reads, in which order, what it makes of it, and what a refusal means."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import select

from headway import Group, every
from headway.dispatcher.cycle import JOB_DISPATCHER
from headway.domain.execution import ExecutionState
from headway.domain.work_queue import NewEntry, Source
from headway.store.engine import Store
from headway.store.locks import Lock
from headway.store.tables import execution, manifest, work_queue, work_queue_entries
from tests.builders import START, Scene, names

DISPATCHED = "execution.dispatched"


class Refusing:
    """A task server that cannot be reached."""

    def submit(self, execution_ids: Sequence[int]) -> None:
        raise ConnectionError("broker unreachable")


def declare(scene: Scene, external_id: str, **options: Any) -> None:
    scene.app.schedule("work", external_id, None, every(hours=1), **options)


def ids_of(scene: Scene, external_id: str) -> tuple[int, int]:
    with scene.store.reading() as tx:
        chosen = select(manifest.c.id, manifest.c.group_id)
        row = tx.connection.execute(chosen.where(manifest.c.external_id == external_id)).one()
        return row.id, row.group_id


def entry_rows(scene: Scene) -> list[Any]:
    with scene.store.reading() as tx:
        return list(tx.connection.execute(select(work_queue).order_by(work_queue.c.id)))


def test_the_four_steps_in_the_seeds_order() -> None:
    assert [step.name for step in JOB_DISPATCHER.steps] == [
        "load_queued_jobs",
        "load_dispatch_capacity",
        "apply_capacity_limits",
        "dispatch_jobs",
    ]


def test_an_entry_becomes_a_pending_execution_with_the_entrys_fields(scene: Scene) -> None:
    declare(scene, "load-users", group=Group("users", priority=7))
    scene.apply()
    scene.manage()
    [entry] = scene.history.queue.all()
    scene.clock.advance(minutes=1)

    [execution_id] = scene.dispatch().dispatched

    assert scene.history.queue.all() == []
    [pending] = scene.history.executions.all()
    assert (pending.id, pending.entry_id) == (execution_id, entry.id)
    assert (pending.state, pending.owner) == (ExecutionState.PENDING, None)
    assert (pending.external_id, pending.group_name) == ("load-users", "users")
    assert (pending.workflow, pending.input, pending.source) == ("work", "null", "schedule")
    assert (pending.priority, pending.attempt, pending.scheduled_for) == (7, 1, START)
    assert (pending.dispatched_at, pending.started_at) == (START + timedelta(minutes=1), None)
    with scene.store.reading() as tx:
        assert tx.connection.execute(select(execution.c.queued_at)).scalar_one() == START


def test_a_dispatched_entry_reads_as_such_with_its_execution_and_the_time(scene: Scene) -> None:
    declare(scene, "load-users")
    scene.apply()
    scene.manage()
    [entry] = scene.history.queue.all()

    def read() -> tuple[object, ...]:
        columns = work_queue_entries.c
        fields = (columns.id, columns.status, columns.execution_id, columns.dispatched_at)
        with scene.store.reading() as tx:
            return tuple(tx.connection.execute(select(*fields)).one())

    assert read() == (entry.id, "queued", None, None)
    [execution_id] = scene.dispatch().dispatched
    assert read() == (entry.id, "dispatched", execution_id, START)
    scene.run()
    assert read() == (entry.id, "dispatched", execution_id, START)


def test_group_priority_then_entry_priority_then_age(scene: Scene) -> None:
    declare(scene, "low", group=Group("low", priority=1))
    declare(scene, "high", group=Group("high", priority=9))
    scene.apply()
    manifests = {name: ids_of(scene, name) for name in ("low", "high")}

    def entry(name: str | None, priority: int) -> NewEntry:
        manifest_id, group_id = manifests[name] if name else (None, None)
        source = Source.TRIGGER if name else Source.AD_HOC
        return NewEntry(
            "work", source, "null", "", priority, manifest_id=manifest_id, group_id=group_id
        )

    ad_hoc = scene.enqueue(entry(None, 30), entry(None, 31))
    low = scene.enqueue(entry("low", 31))
    high = scene.enqueue(entry("high", 0))
    scene.clock.advance(seconds=-1)
    older = scene.enqueue(entry(None, 30))

    order = [one.entry.id for one in scene.dispatch().admissions]

    assert order == [*high, *low, ad_hoc[1], *older, ad_hoc[0]]


def test_a_disabled_group_dispatches_nothing(scene: Scene) -> None:
    declare(scene, "load-users", group=Group("users"))
    declare(scene, "other")
    scene.apply()
    scene.manage()
    manifest_id, group_id = ids_of(scene, "load-users")
    by_hand = NewEntry("work", Source.TRIGGER, "null", manifest_id=manifest_id, group_id=group_id)
    scene.enqueue(by_hand)
    scene.new_app()
    declare(scene, "load-users", group=Group("users", enabled=False))
    declare(scene, "other")
    scene.apply()

    assert scene.dispatch().loaded == 1
    assert names(scene.history.executions.all()) == ["other"]
    assert names(scene.history.queue.all()) == ["load-users", "load-users"]

    scene.new_app()
    declare(scene, "load-users", group=Group("users", priority=1))
    declare(scene, "other")
    scene.apply()
    assert len(scene.dispatch().dispatched) == 1, "one at a time, whoever asked"


def test_a_manifest_disabled_after_it_was_queued_waits(scene: Scene) -> None:
    declare(scene, "load-users")
    scene.apply()
    scene.manage()
    scene.new_app()
    declare(scene, "load-users", enabled=False)
    scene.apply()

    assert scene.dispatch().loaded == 0
    assert names(scene.history.queue.all()) == ["load-users"]


def test_a_delayed_entry_waits_and_the_cycle_says_how_long(scene: Scene) -> None:
    scene.enqueue(
        NewEntry("work", Source.AD_HOC, "null", scheduled_at=START + timedelta(minutes=30))
    )

    result = scene.dispatch()
    assert (result.loaded, result.due_in) == (0, timedelta(minutes=30))

    scene.clock.advance(minutes=30)
    assert len(scene.dispatch().dispatched) == 1


def test_no_group_takes_up_the_whole_page(scene: Scene) -> None:
    scene.configure(max_queued_jobs_per_cycle=3, max_active_jobs=None)
    for number in range(10):
        declare(scene, f"big-{number}", group=Group("big", priority=31))
    declare(scene, "small", group=Group("small", priority=0))
    scene.apply()
    scene.manage()

    assert len(scene.dispatch().dispatched) == 4
    assert "small" in names(scene.history.executions.all())


def test_a_refused_hand_over_puts_entries_back_uncharged(scene: Scene) -> None:
    declare(scene, "load-users")
    declare(scene, "load-rows")
    scene.apply()
    scene.manage()
    queued = [(one.id, one.external_id, one.scheduled_for) for one in scene.history.queue.all()]

    scene.dispatch(Refusing())

    back = [(one.id, one.external_id, one.scheduled_for) for one in scene.history.queue.all()]
    assert back == queued
    assert [one.state for one in scene.history.executions.all()] == [ExecutionState.HANDED_BACK] * 2
    assert {row.dispatch_attempts for row in entry_rows(scene)} == {1}
    [refused] = scene.events.named("dispatch.refused")
    assert refused.fields == {
        "task_server": "local",
        "count": 2,
        "error": "ConnectionError('broker unreachable')",
    }

    assert scene.dispatch().dispatched == (), "the task server is left some time"
    scene.clock.advance(seconds=5)
    scene.dispatch()
    assert scene.run().ended == {ExecutionState.COMPLETED: 2}
    assert {one.attempt for one in scene.ended(ExecutionState.COMPLETED)} == {1}


def test_an_entry_refused_too_often_fails_with_the_reason(scene: Scene) -> None:
    scene.configure(max_dispatch_attempts=3)
    scene.enqueue(NewEntry("work", Source.AD_HOC, "null"))

    for _ in range(5):
        scene.dispatch(Refusing())
        scene.clock.advance(seconds=5)

    assert entry_rows(scene) == []
    *given_back, last = scene.history.executions.all()
    assert [one.state for one in given_back] == [ExecutionState.HANDED_BACK] * 2
    assert last.state is ExecutionState.FAILED
    assert last.failure is not None and "broker unreachable" in last.failure.message


def test_what_was_refused_too_often_is_tried_again_by_the_settings(scene: Scene) -> None:
    scene.configure(max_dispatch_attempts=1, default_retry_delay="3h", max_retry_delay="9h")
    [entry] = scene.enqueue(NewEntry("work", Source.AD_HOC, "null", max_attempts=2))

    scene.dispatch(Refusing())

    [row] = entry_rows(scene)
    assert (row.id, row.attempts, row.scheduled_at) == (entry, 1, START + timedelta(hours=3))


def test_a_refused_hand_over_is_a_reason_to_look_again(scene: Scene) -> None:
    scene.enqueue(NewEntry("work", Source.AD_HOC, "null"))
    assert scene.dispatch(Refusing()).more
    scene.clock.advance(minutes=1)
    assert not scene.dispatch().more


def test_a_cycle_tells_what_it_dispatched_and_how_long_each_step_took(scene: Scene) -> None:
    scene.configure(max_active_jobs=2)
    declare(scene, "load-users", group=Group("users"))
    scene.apply()
    scene.manage()
    later = START + timedelta(minutes=1)
    [delayed] = scene.enqueue(NewEntry("work", Source.AD_HOC, "null", scheduled_at=later))
    [queued] = [one.id for one in scene.history.queue.all() if one.external_id]
    scene.clock.advance(minutes=2)
    scene.enqueue(NewEntry("work", Source.AD_HOC, "null"))

    result = scene.dispatch()

    first, second = result.dispatched
    assert sum(result.reasons.values()) == 1, "the third one waits for a slot"

    told = {one.fields["entry_id"]: one.fields for one in scene.events.named(DISPATCHED)}
    assert told[queued] == {
        "execution_id": first,
        "entry_id": queued,
        "external_id": "load-users",
        "group": "users",
        "workflow": "work",
        "source": "schedule",
        "task_server": "local",
        "queued_at": START,
        "ready_at": START,
        "dispatched_at": START + timedelta(minutes=2),
    }
    assert told[delayed]["execution_id"] == second
    assert (told[delayed]["queued_at"], told[delayed]["ready_at"]) == (START, later)
    [cycle] = scene.events.named("dispatcher.cycle")
    seconds = cycle.fields.pop("seconds")
    expected = {"loaded": 3, "dispatched": 2, "failed": 0, "reasons": result.reasons}
    assert cycle.fields == expected
    assert list(seconds) == [step.name for step in JOB_DISPATCHER.steps]


def test_a_task_server_that_is_always_away_ends_in_a_dead_letter(scene: Scene) -> None:
    scene.configure(max_dispatch_attempts=2)
    declare(scene, "load-users")
    scene.apply()

    for _ in range(12):
        scene.manage()
        scene.dispatch(Refusing())
        scene.clock.advance(hours=1)
    scene.manage()

    [letter] = scene.history.dead_letters.awaiting()
    assert (letter.external_id, letter.failures) == ("load-users", 3)
    assert scene.history.queue.all() == []


def test_a_dispatcher_without_the_lock_does_nothing(postgres_url: str) -> None:
    with Scene(postgres_url) as scene:
        scene.enqueue(NewEntry("work", Source.AD_HOC, "null"))
        second = Store(postgres_url, clock=scene.clock)
        with scene.store.leading(Lock.DISPATCH):
            result = scene.dispatch(store=second)
        second.close()

        assert (result.led, result.dispatched) == (False, ())
        assert len(scene.history.queue.all()) == 1
