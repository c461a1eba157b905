"""What the overview says of the whole deployment, and what of its servers."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from headway.domain.work_queue import Source
from headway.history import (
    Attention,
    AttentionKind,
    History,
    NextRun,
    ServerOverview,
    Summary,
    Waiting,
)
from headway.store import (
    executions,
    leases,
    removal,
    resolution,
    unknown_workflows,
    work_queue,
)
from headway.store.engine import Store
from headway.store.servers import ServerProcess
from tests.store.factories import (
    FAILED,
    ME,
    NOON,
    Clock,
    change_group,
    change_state,
    dead_letter_for,
    declare,
    dispatched,
    finish,
    manifest_ids,
    queue,
    queue_ad_hoc,
    ran,
    started,
)

LEASE = timedelta(seconds=15)


def test_the_summary_says_everything_it_counts(
    family: Store, history: History, clock: Clock
) -> None:
    ran(family, "stray")
    ran(family, "stray", FAILED)
    clock.advance(minutes=10)
    queue(family, "extract")
    for name in ("extract", "load"):
        queue(family, name, source=Source.TRIGGER, scheduled_at=clock.now + timedelta(hours=1))
    queue(family, "report", source=Source.ACTIVATION, scheduled_at=clock.now + timedelta(hours=1))
    with family.writing() as tx:
        work_queue.cancel_queued(tx, [manifest_ids(family)["report"]], "not today")
    started(family, "stray", source=Source.TRIGGER)
    dead_letter_for(family, "stray")
    with family.writing() as tx:
        for name, slots in (("one", 4), ("two", 2), ("web", 0)):
            process = ServerProcess(name, "host", 1, ["worker"], ["work"], slots)
            leases.register(tx, process, LEASE)
    assert history.overview.summary() == Summary(
        now=clock.now,
        queued=1,
        delayed=2,
        pending=0,
        running=1,
        completed_per_minute=0,
        failed_per_minute=0,
        success_rate=0.5,
        dead_letters=1,
        workers=2,
        slots=6,
        rated=timedelta(minutes=5),
    )
    assert history.overview.waiting() == Waiting(running=1, queued=1, dead_letters=1)
    clock.advance(minutes=1)
    shown = history.overview.summary()
    assert (shown.workers, shown.slots) == (0, 0)


def test_rates_are_those_of_whole_minutes(family: Store, history: History, clock: Clock) -> None:
    def rates() -> tuple[float, float]:
        shown = history.overview.summary()
        return shown.completed_per_minute, shown.failed_per_minute

    ran(family, "stray")
    clock.advance(minutes=10)
    ran(family, "stray")
    ran(family, "stray", FAILED, source=Source.TRIGGER)
    assert rates() == (0, 0), "this minute is not over yet"
    for _ in range(5):
        clock.advance(minutes=1)
        assert rates() == (0.2, 0.2)
    clock.advance(minutes=1)
    assert rates() == (0, 0)


@pytest.mark.parametrize(
    ("hours", "step", "points"),
    [(1, timedelta(minutes=1), 60), (3, timedelta(minutes=1), 180), (4, timedelta(hours=1), 4)],
)
def test_a_chart_of_up_to_three_hours_is_drawn_by_the_minute(
    history: History, hours: int, step: timedelta, points: int
) -> None:
    chart = history.overview.throughput(timedelta(hours=hours))
    assert (chart.step, len(chart.points)) == (step, points)
    assert (chart.points[0].start, chart.points[-1].start) == (NOON - (points - 1) * step, NOON)


def test_the_next_runs_come_in_the_order_of_their_times(
    family: Store, history: History, clock: Clock
) -> None:
    soon, later = clock.now + timedelta(minutes=5), clock.now + timedelta(hours=1)
    change_state(family, "extract", wake_at=later)
    change_state(family, "stray", wake_at=soon)
    change_state(family, "load", wake_at=soon)
    wanted = [
        NextRun("stray", "extracts", "work", soon),
        NextRun("extract", "extracts", "work", later),
    ]
    assert history.overview.next_runs() == wanted
    assert history.overview.next_runs(1) == wanted[:1]
    change_state(family, "stray", wake_at=None)
    assert history.overview.next_runs() == wanted[1:]
    change_group(family, "extracts", enabled=False)
    assert history.overview.next_runs() == []


def test_each_that_needs_attention_is_named_with_its_moment(
    family: Store, history: History, clock: Clock
) -> None:
    ran(family, "extract", FAILED)
    dead_letter_for(family, "stray")
    shut = clock.advance(minutes=1)
    queue(family, "load", source=Source.TRIGGER)
    change_group(family, "loads", enabled=False, last_shut_at=shut)
    change_group(family, "reports", enabled=False)
    with family.writing() as tx:
        unknown_workflows.note_seen(tx, {"b": shut, "a": NOON})
        process = ServerProcess("late", "host-1", 1, ["web"], [], 0)
        leases.register(tx, process, LEASE)
    clock.advance(seconds=10)
    assert history.overview.attention() == [
        Attention(
            AttentionKind.NO_MANAGER,
            "servers",
            "no process with the manager role is alive: nothing becomes due",
        ),
        Attention(
            AttentionKind.NO_WORKER,
            "servers",
            "no worker is alive: nothing is run by headway's own workers",
        ),
        Attention(
            AttentionKind.LATE_SERVER,
            "late",
            "server late on host-1 is late: last heard of at 2025-01-01 12:01:00 UTC",
            shut,
        ),
        Attention(
            AttentionKind.DEAD_LETTER,
            "stray",
            "stray waits for a person: max retries exceeded",
            NOON,
        ),
        *(
            Attention(
                AttentionKind.UNKNOWN_WORKFLOW,
                name,
                f"no living server knows the workflow {name!r}, and entries wait for it",
                since,
            )
            for name, since in (("a", NOON), ("b", shut))
        ),
        Attention(
            AttentionKind.DISABLED_GROUP,
            "loads",
            "group loads is disabled, and work waits in it",
            shut,
        ),
        Attention(
            AttentionKind.FAILING,
            "extract",
            "extract has failed since its last success: ValueError",
            NOON,
        ),
    ]


def test_what_is_in_order_needs_no_attention(family: Store, history: History, clock: Clock) -> None:
    ran(family, "extract", FAILED)
    ran(family, "extract")
    for name in ("load", "stray"):
        ran(family, name, FAILED, source=Source.TRIGGER)
    dead_letter_for(family, "load")
    with family.writing() as tx:
        resolution.acknowledge(tx, resolution.Waiting(), None)
        removal.remove(tx, [manifest_ids(family)["stray"]])
        process = ServerProcess("all", "host", 1, ["manager", "worker"], ["work"], 1)
        leases.register(tx, process, LEASE)
    queue(family, "report", source=Source.ACTIVATION)
    assert history.overview.attention() == []


def fail_without_a_manifest(store: Store) -> None:
    entry = queue_ad_hoc(store)
    with store.writing() as tx:
        [key] = work_queue.dispatch(tx, [entry]).values()
        one = executions.claim_one(tx, ME, key)
    assert one is not None
    finish(store, one, FAILED)


def test_of_each_kind_of_attention_there_are_only_so_many(
    family: Store, history: History, clock: Clock
) -> None:
    for name in ("load", "report", "extract", "stray"):
        ran(family, name, FAILED, source=Source.TRIGGER)
    fail_without_a_manifest(family)
    for name in ("load", "report"):
        dead_letter_for(family, name)
        queue(family, name, source=Source.TRIGGER)
        change_group(family, f"{name}s", enabled=False)
    with family.writing() as tx:
        unknown_workflows.note_seen(tx, {"b": clock.now, "a": clock.now})
        for server in ("one", "two"):
            leases.register(tx, ServerProcess(server, "host", 1, [], [], 4), LEASE)
    clock.advance(seconds=10)
    first = history.overview.attention(1)
    assert [(one.kind.value, one.subject) for one in first] == [
        ("no_manager", "servers"),
        ("late_server", "one"),
        ("dead_letter", "report"),
        ("unknown_workflow", "a"),
        ("disabled_group", "loads"),
        ("failing", "stray"),
    ]
    clock.advance(minutes=1)
    found = history.overview.attention(1)
    assert found[1].kind is AttentionKind.NO_WORKER
    assert [one.subject for one in found if one.kind is AttentionKind.DEAD_LETTER] == ["report"]
    assert [one.subject for one in found if one.kind is AttentionKind.FAILING] == ["stray"]
    every = [one.subject for one in history.overview.attention()]
    assert every[2:] == [
        *("one", "two"),
        *("report", "load"),
        *("a", "b"),
        *("loads", "reports"),
        *("stray", "extract"),
    ]


def test_a_server_is_shown_as_it_presented_itself(
    store: Store, history: History, clock: Clock
) -> None:
    first = ServerProcess("z", "host-1", 7, ["worker", "manager"], ["work", "load"], 4)
    with store.writing() as tx:
        leases.register(tx, first, LEASE)
    clock.advance(seconds=5)
    with store.writing() as tx:
        leases.renew(tx, "z", LEASE)
        leases.register(tx, replace(first, id="a", workflows=[], slots=0), LEASE)
    declare(store, "extract", "load")
    started(store, owner="z")
    dispatched(store, "load")
    shown, youngest = history.servers.all()
    assert shown == ServerOverview(
        id="z",
        host="host-1",
        pid=7,
        roles=("manager", "worker"),
        workflows=("load", "work"),
        slots=4,
        running=1,
        started_at=NOON,
        renewed_at=clock.now,
        expires_at=clock.now + LEASE,
        unbroken_since=NOON,
        alive=True,
        late=False,
    )
    assert (youngest.id, youngest.running, youngest.slots) == ("a", 0, 0)
    clock.advance(seconds=5)
    assert not history.servers.all()[0].late, "a third of its lease has just passed"
    clock.advance(seconds=10)
    assert not history.servers.all()[0].alive, "its lease ends at that moment"
