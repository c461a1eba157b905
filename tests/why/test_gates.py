"""Each gate holds something once, says so in a sentence, and knows when that can change."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event, update

from headway import Group, RetryPolicy, cron, every, exclude
from headway.definition.explaining import Explaining
from headway.definition.runtime import Runtime
from headway.dispatcher.cycle import JobDispatcher
from headway.domain.gates import Gate, GateName, Stage, Why
from headway.domain.routing import Routing
from headway.domain.work_queue import NewEntry, Source
from headway.errors import DefinitionError, EntryNotFound, ExecutionNotFound, ManifestNotFound
from headway.servers.local import LocalServer
from headway.store import leases, tables
from headway.store.servers import ServerProcess
from tests.builders import START, Scene
from tests.store.factories import everything

LEASE = timedelta(hours=24)


class Silent:
    """A relayed task server, which a test says to be away."""

    def publish(self, execution_id: int) -> None: ...
    def reach(self) -> None: ...


def ask(scene: Scene, external_id: str | None = None, *, living: bool = False, **about: int) -> Why:
    app = scene.app
    explaining = Explaining(scene.store, app.settings, app.task_servers, to_own_workers=living)
    return explaining.why(external_id, **about)


def the_gate(answer: Why, name: GateName) -> Gate:
    """Of those of this name the last one that is not passed: it is about what has come furthest."""
    return [gate for gate in answer.gates if gate.name is name and not gate.passed][-1]


def runtime(scene: Scene) -> Runtime:
    return Runtime(scene.app.name, scene.app.registry, scene.store)


def alive(
    scene: Scene, name: str, roles: list[str], workflows: tuple[str, ...] = (), slots: int = 0
) -> None:
    with scene.store.writing() as tx:
        leases.register(tx, ServerProcess(name, "host", 1, roles, workflows, slots), LEASE)


def dispatch_to_own_workers(scene: Scene) -> None:
    JobDispatcher(
        scene.store,
        scene.app.settings,
        scene.app.observer,
        LocalServer(lambda: None),
        to_own_workers=True,
    ).run_once()


def declare(scene: Scene, external_id: str = "load", **options: Any) -> None:
    schedule = options.pop("schedule", every(hours=1))
    scene.app.schedule("work", external_id, None, schedule, **options)


def at(**since_start: int) -> datetime:
    return START + timedelta(**since_start)


def disabled(scene: Scene) -> None:
    declare(scene, enabled=False)
    scene.apply()


def in_a_disabled_group(scene: Scene) -> None:
    declare(scene, group=Group("etl", enabled=False))
    scene.apply()


def failed_too_often(scene: Scene) -> None:
    declare(scene, max_retries=1)
    scene.failing.add("load")
    scene.apply()
    scene.cycle()


def dead_lettered(scene: Scene) -> None:
    failed_too_often(scene)
    scene.manage()


def not_due(scene: Scene) -> None:
    declare(scene)
    scene.apply()
    scene.cycle()


def excluded(scene: Scene) -> None:
    nobody = exclude.window("12:10", "12:40", then="defer")
    declare(scene, schedule=cron("5 * * * *"), exclude=[nobody])
    scene.apply()
    scene.cycle()
    scene.clock.advance(minutes=20)


def missed(scene: Scene) -> None:
    declare(scene, schedule=cron("0 * * * *"), misfire="do_nothing")
    scene.apply()
    scene.cycle()
    scene.clock.advance(minutes=90)


def failed_just_now(scene: Scene) -> None:
    declare(scene, retry=RetryPolicy(timedelta(minutes=7)))
    scene.failing.add("load")
    scene.apply()
    scene.cycle()


def retried_later(scene: Scene) -> None:
    failed_just_now(scene)
    scene.manage()


def after_a_parent(scene: Scene) -> None:
    root = scene.app.schedule("work", "extract", None, every(hours=1))
    root.then_include("work", "load", None)
    scene.apply()


def dormant(scene: Scene) -> None:
    root = scene.app.schedule("work", "extract", None, every(hours=1))
    root.include("work", "load", None, dormant=True)
    scene.apply()


def in_a_full_group(scene: Scene) -> None:
    users = Group("users", max_active_jobs=2)
    for name in ("load-1", "load-2", "load"):
        declare(scene, name, group=users)
    scene.apply()
    for name in ("load-1", "load-2"):
        scene.trigger(name)
    scene.dispatch()
    scene.trigger("load")


def beyond_the_global_limit(scene: Scene) -> None:
    scene.configure(max_active_jobs=1)
    declare(scene, "other")
    declare(scene)
    scene.apply()
    scene.trigger("other")
    scene.dispatch()


def behind_another(scene: Scene) -> None:
    scene.configure(max_active_jobs=1)
    declare(scene, "other", group=Group("other", priority=9))
    declare(scene)
    scene.apply()
    scene.manage()


def with_an_unreadable_row(scene: Scene) -> None:
    declare(scene, schedule=cron("0 * * * *"))
    scene.apply()
    with scene.store.writing() as tx:
        tx.connection.execute(update(tables.manifest).values(cron_expression="not cron"))


def put_off_by_an_exclusion(scene: Scene) -> None:
    nobody = exclude.window("12:10", "12:40", then="defer")
    declare(scene, exclude=[nobody])
    scene.apply()
    scene.manage()
    scene.clock.advance(minutes=20)


Case = tuple[Callable[[Scene], None], GateName, str, str, datetime | None]
CASES: dict[str, Case] = {
    "enabled": (
        disabled,
        GateName.ENABLED,
        "the manifest is disabled",
        "when somebody enables it",
        None,
    ),
    "group enabled": (
        in_a_disabled_group,
        GateName.GROUP_ENABLED,
        "group 'etl' is disabled",
        "when somebody enables the group",
        None,
    ),
    "dead letter to come": (
        failed_too_often,
        GateName.NO_DEAD_LETTER,
        "it is dead-lettered in this cycle",
        "when somebody requeues or acknowledges that",
        None,
    ),
    "dead letter": (
        dead_lettered,
        GateName.NO_DEAD_LETTER,
        "a dead letter awaits intervention (1: failed once (max_attempts 1))",
        "when somebody requeues or acknowledges that",
        None,
    ),
    "due": (
        not_due,
        GateName.DUE,
        "it is not due before 2030-01-07 13:00:00 UTC",
        "then",
        at(hours=1),
    ),
    "exclusion": (
        excluded,
        GateName.NOT_EXCLUDED,
        "it is due, but nothing runs between 12:10 and 12:40",
        "at 2030-01-07 12:40:00 UTC",
        at(minutes=40),
    ),
    "misfire": (
        missed,
        GateName.NOT_MISSED,
        "it missed 2030-01-07 13:00:00 UTC by more than the misfire threshold of 0:01:00",
        "at 2030-01-07 14:00:00 UTC",
        at(hours=2),
    ),
    "retry delay to come": (
        failed_just_now,
        GateName.DELAY_OVER,
        "retry 1 waits 0:07:00, until 2030-01-07 12:07:00 UTC",
        "then",
        at(minutes=7),
    ),
    "retry delay": (
        retried_later,
        GateName.DELAY_OVER,
        "retry 1 waits until 2030-01-07 12:07:00 UTC",
        "then",
        at(minutes=7),
    ),
    "parents": (
        after_a_parent,
        GateName.PARENTS,
        "it waits for the first success of 'extract'",
        "then",
        None,
    ),
    "dormant": (
        dormant,
        GateName.PARENTS,
        "it is dormant: runs only when its parent activates it",
        "then",
        None,
    ),
    "group cap": (
        in_a_full_group,
        GateName.GROUP_CAP,
        "its group 'users' is full (2 of 2: 'load-1', 'load-2')",
        "when one of them ends",
        None,
    ),
    "global cap": (
        beyond_the_global_limit,
        GateName.GLOBAL_CAP,
        "the global limit is reached (1 of 1)",
        "when any run ends",
        None,
    ),
    "turn": (
        behind_another,
        GateName.TURN,
        "what goes ahead of it takes the free slots",
        "in a later cycle",
        None,
    ),
    "exclusion of an entry": (
        put_off_by_an_exclusion,
        GateName.NOT_EXCLUDED,
        "nothing runs between 12:10 and 12:40",
        "at 2030-01-07 12:40:00 UTC",
        at(minutes=40),
    ),
}


@pytest.mark.parametrize(
    ("bring", "name", "sentence", "until", "moment"), CASES.values(), ids=CASES
)
def test_a_gate_says_what_holds_and_until_when(
    scene: Scene,
    bring: Callable[[Scene], None],
    name: GateName,
    sentence: str,
    until: str,
    moment: datetime | None,
) -> None:
    bring(scene)

    answer = ask(scene, "load")

    assert str(answer) == f"load does not run because {sentence}; it can {until}"
    gate = the_gate(answer, name)
    assert (gate.sentence, gate.until, gate.at) == (sentence, until, moment)


def test_a_row_that_cannot_be_read_says_so(scene: Scene) -> None:
    with_an_unreadable_row(scene)

    answer = ask(scene, "load")

    assert [gate.name for gate in answer.gates] == [GateName.READABLE]
    assert "does not run because its row cannot be read: " in str(answer)


def test_what_is_due_is_queued_and_what_is_queued_is_dispatched(scene: Scene) -> None:
    declare(scene)
    scene.apply()
    due = ask(scene, "load")
    scene.manage()
    queued = ask(scene, "load")

    assert str(due) == "load is due: the next cycle of the manager queues it"
    assert due.waits_for == ()
    ending = "is queued as entry 1: the next cycle of the dispatcher dispatches it"
    assert str(queued) == f"load {ending}" == str(ask(scene, entry=1))
    assert the_gate(queued, GateName.NOT_QUEUED).sentence == "it is already queued (entry 1)"
    assert queued.passes(Stage.DISPATCH) and not queued.passes(Stage.QUEUE)
    assert queued.entry == 1


def test_what_is_running_says_since_when_and_in_which_step(scene: Scene) -> None:
    declare(scene)
    scene.apply()
    scene.manage()
    scene.dispatch()
    pending = ask(scene, "load")
    scene.claim()
    running = ask(scene, "load")

    assert str(pending) == "load is dispatched as execution 1: the next free worker starts it"
    told = "execution 1 since 2030-01-07 12:00:00 UTC, in step '_work'"
    assert str(running) == f"load is running: {told}" == str(ask(scene, execution=1))
    assert the_gate(running, GateName.NOT_ACTIVE).sentence == f"it is already running ({told})"
    assert (running.execution, str(ask(scene, entry=1))) == (1, str(running))


def test_what_has_ended_says_how(scene: Scene) -> None:
    declare(scene)
    declare(scene, "broken")
    scene.failing.add("broken")
    scene.apply()
    for name in ("load", "broken"):
        scene.trigger(name)
    scene.dispatch()
    scene.run()

    completed, failed = (ask(scene, execution=key) for key in (1, 2))

    assert str(completed) == "execution 1 of load has ended: completed at 2030-01-07 12:00:00 UTC"
    assert str(failed).endswith("(_work: RuntimeError: told to fail)")
    assert completed.gates == failed.gates == ()
    told = [(one.subject, one.entry, one.execution) for one in (completed, failed)]
    assert told == [("load", 1, 1), ("broken", 2, 2)]
    assert str(ask(scene, entry=1)) == str(completed)


def test_a_cancelled_entry_never_started(scene: Scene) -> None:
    entry = runtime(scene).enqueue("work")
    runtime(scene).cancelling.cancel(None, None, None, entry, "wrong day")

    told = f"entry {entry} of a run of work never started: cancelled"
    answer = f"{told} at 2030-01-07 12:00:00 UTC: wrong day"
    assert ask(scene, entry=entry) == Why("a run of work", answer, entry=entry)


def test_one_run_of_a_manifest_at_a_time(scene: Scene) -> None:
    declare(scene)
    scene.apply()
    first, second = scene.trigger("load"), scene.trigger("load")
    behind = the_gate(ask(scene, entry=second), GateName.SINGLE_FLIGHT)
    scene.dispatch()
    waiting = the_gate(ask(scene, entry=second), GateName.SINGLE_FLIGHT)

    assert ask(scene, entry=first).execution == 1
    assert behind.sentence == "another entry of the manifest goes first"
    assert waiting.sentence == "another run of the manifest is going on"


def test_what_somebody_asked_for_minds_neither_switch_nor_dead_letter(scene: Scene) -> None:
    dead_lettered(scene)
    runtime(scene).disable("load")
    entry = scene.trigger("load")

    assert ask(scene, entry=entry).waits_for == ()


def test_a_run_without_a_manifest_waits_for_no_group(scene: Scene) -> None:
    entry = scene.enqueue(NewEntry("work", Source.AD_HOC, "null"))[0]

    names = [gate.name for gate in ask(scene, entry=entry).gates]

    assert GateName.GROUP_CAP not in names and GateName.ENABLED not in names
    assert GateName.GLOBAL_CAP in names


def test_what_can_never_be_dispatched_says_that_it_fails(scene: Scene) -> None:
    [entry] = scene.enqueue(NewEntry("work", Source.TRIGGER, "null", manifest_id=7, group_id=8))

    gate = the_gate(ask(scene, entry=entry), GateName.SOUND)

    assert gate.sentence.startswith("the manifest 7 it belongs to does not exist")


def test_without_a_living_process_it_says_who_is_missing(scene: Scene) -> None:
    declare(scene)
    scene.apply()

    nobody = ask(scene, "load", living=True)

    assert (
        str(nobody) == "load does not run because no manager is alive; it can when one is started"
    )
    missing = [gate.sentence for gate in nobody.waits_for]
    assert missing == ["no manager is alive", "no worker is alive", "no dispatcher is alive"]


def test_a_lone_entry_that_nobody_runs_does_not_wait_for_another(scene: Scene) -> None:
    declare(scene)
    scene.apply()
    entry = scene.trigger("load")

    nobody = ask(scene, entry=entry, living=True)

    assert [one.sentence for one in nobody.waits_for] == [
        "no worker is alive",
        "no dispatcher is alive",
    ]


def test_who_does_not_know_the_workflow_is_no_help(scene: Scene) -> None:
    declare(scene)
    scene.apply()
    scene.manage()
    alive(scene, "boss", ["manager", "dispatcher"])
    alive(scene, "stranger", ["worker"], ("another",), slots=3)
    entry = scene.history.queue.all()[0].id
    dispatch_to_own_workers(scene)

    gate = the_gate(ask(scene, living=True, entry=entry), GateName.WORKER)

    nobody = "no living server takes its workflow 'work'"
    assert gate.sentence == f"{nobody} (it fails at 2030-01-07 12:20:00 UTC)"


def test_who_waits_for_an_unknown_workflow_fails_so_long_after_it_came(scene: Scene) -> None:
    declare(scene)
    scene.apply()
    alive(scene, "boss", ["manager", "dispatcher"])
    alive(scene, "stranger", ["worker"], ("another",), slots=3)
    scene.trigger("load")
    dispatch_to_own_workers(scene)
    scene.clock.advance(minutes=10)
    later = scene.trigger("load")

    gate = the_gate(ask(scene, living=True, entry=later), GateName.WORKER)

    assert gate.sentence.endswith("(it fails at 2030-01-07 12:30:00 UTC)")


def test_everything_that_is_asked_on_the_way_is_told(scene: Scene) -> None:
    asked_to_queue = ["enabled", "group_enabled", "no_dead_letter", "not_queued", "not_active"]
    to_dispatch = ["delay_over", "group_cap", "global_cap", "worker", "dispatcher"]
    not_due(scene)
    waits = ask(scene, "load", living=True)
    scene.clock.advance(hours=1)
    scene.manage()
    queued = ask(scene, "load", living=True)
    scene.dispatch()
    pending = ask(scene, "load", living=True)

    assert names(waits) == [*asked_to_queue, "due", "manager", *to_dispatch]
    assert names(queued) == [
        *asked_to_queue,
        *("due", "not_excluded", "not_missed", "manager"),
        *("enabled", "group_enabled", "no_dead_letter", "delay_over", "single_flight"),
        *to_dispatch[1:],
    ]
    assert names(pending) == [*asked_to_queue, "manager", *to_dispatch, "worker"]
    told = [(one.subject, one.entry, one.execution) for one in (waits, queued, pending)]
    assert told == [("load", None, None), ("load", 2, None), ("load", None, 2)]
    alone = ask(scene, execution=2, living=True)
    assert (names(alone), alone.entry, alone.execution) == (["worker"], 2, 2)


def names(answer: Why) -> list[str]:
    return [gate.name.name.lower() for gate in answer.gates]


def test_busy_workers_are_counted(scene: Scene) -> None:
    for number in range(4):
        declare(scene, f"load-{number}")
    scene.apply()
    alive(scene, "boss", ["manager", "dispatcher"], (), slots=0)
    alive(scene, "hand", ["worker"], ("work",), slots=1)
    scene.manage()
    for _ in range(2):
        dispatch_to_own_workers(scene)
    scene.claim(limit=1)

    queued, pending = ask(scene, "load-2", living=True), ask(scene, "load-1", living=True)

    assert the_gate(queued, GateName.FREE_WORKER).sentence == "no worker is free (2 for 1 slots)"
    busy = "all workers are busy (1 of 1 slots); it can when one of their runs ends"
    assert str(pending) == f"load-1 does not run because {busy}"


def test_a_task_server_that_does_not_answer_is_named(scene: Scene) -> None:
    scene.app.task_servers.add("celery", Silent(), workflows=["work"])
    declare(scene)
    scene.apply()
    scene.manage()
    alive(scene, "boss", ["manager", "dispatcher"])

    assert ask(scene, "load", living=True).waits_for[1:] == ()
    scene.app.task_servers.note_away("celery", True)
    gate = the_gate(ask(scene, "load", living=True), GateName.WORKER)
    assert gate.sentence == "task server 'celery' does not answer"


def test_one_that_does_not_answer_is_named_although_a_living_dispatcher_sends_to_it(
    scene: Scene,
) -> None:
    scene.app.task_servers.add("celery", Silent(), workflows=["work"])
    declare(scene)
    scene.apply()
    scene.manage()
    roles, routing = ["manager", "dispatcher"], scene.app.task_servers.routing
    boss = ServerProcess("boss", "host", 1, roles, scene.app.registry.names(), 0, routing)
    with scene.store.writing() as tx:
        leases.register(tx, boss, LEASE)

    assert ask(scene, "load", living=True).waits_for[1:] == ()
    scene.app.task_servers.note_away("celery", True)
    gate = the_gate(ask(scene, "load", living=True), GateName.WORKER)
    assert gate.sentence == "task server 'celery' does not answer"


def test_what_another_application_sends_away_waits_for_nothing_here(scene: Scene) -> None:
    routing = Routing(by_workflow={"train": "gpu"})
    theirs = ServerProcess("boss", "host", 1, ["manager", "dispatcher"], ("train",), 0, routing)
    with scene.store.writing() as tx:
        leases.register(tx, theirs, LEASE)
    [entry] = scene.enqueue(NewEntry("train", Source.AD_HOC, "null"))

    answer = ask(scene, living=True, entry=entry)

    assert answer.waits_for == ()
    assert GateName.WORKER in [gate.name for gate in answer.gates]


def test_what_rests_takes_no_slot_from_what_waits_behind_it(scene: Scene) -> None:
    scene.configure(max_active_jobs=1)
    declare(scene, "resting", group="etl", exclude=[exclude.window("11:00", "13:00")])
    declare(scene, group="etl")
    scene.apply()
    manifest_id, group_id = scene.ids_of("resting")
    ahead = NewEntry("work", Source.SCHEDULE, "null", manifest_id=manifest_id, group_id=group_id)
    scene.enqueue(ahead._replace(priority=9))
    entry = scene.trigger("load")

    answer = ask(scene, entry=entry)

    assert answer.waits_for == ()
    scene.dispatch()
    assert [one.entry_id for one in scene.history.executions.all()] == [entry]


@pytest.mark.parametrize(
    ("about", "error", "said"),
    [
        ({}, DefinitionError, "why takes one thing to explain, not 0"),
        ({"entry": 1, "execution": 1}, DefinitionError, "not 2; for example why('load-users')"),
        ({"entry": 0}, DefinitionError, "entry = 0: must be its id, a positive number"),
        ({"entry": 99}, EntryNotFound, "entry = 99: no entry has this id"),
        ({"execution": 99}, ExecutionNotFound, "execution = 99: no execution has this id"),
    ],
)
def test_what_is_not_there_is_told_in_one_line(
    scene: Scene, about: dict[str, int], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=r".*") as refused:
        ask(scene, **about)  # type: ignore[arg-type]
    assert said in str(refused.value)


def test_an_unknown_manifest_is_not_found(scene: Scene) -> None:
    with pytest.raises(ManifestNotFound, match="no manifest has the external id 'load'"):
        ask(scene, "load")


def test_asking_writes_nothing_and_asks_no_more_for_many_manifests(scene: Scene) -> None:
    counts = []
    for size in (3, 60):
        for number in range(size):
            declare(scene, f"load-{number}", group="all")
        scene.apply()
        scene.manage()
        before, statements = everything(scene.store), list[str]()
        engine = scene.store._reader

        def note(*told: Any, statements: list[str] = statements) -> None:
            statements.append(told[2])

        event.listen(engine, "before_cursor_execute", note)
        assert ask(scene, "load-2").entry is not None
        event.remove(engine, "before_cursor_execute", note)
        assert everything(scene.store) == before
        counts.append(len(statements))
        scene.new_app()
    assert counts[0] == counts[1]
