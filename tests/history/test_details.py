"""What the pages about one thing show, and the overview of everything."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import update

from headway.domain.dead_letter import DeadLetterStatus
from headway.domain.execution import ExecutionState
from headway.domain.manifest import Group
from headway.domain.routing import Routing
from headway.domain.schedule import Never, cron, every
from headway.domain.work_queue import Source
from headway.errors import ExecutionNotFound, GroupNotFound, ManifestNotFound
from headway.history import (
    AttentionKind,
    DeadLetterFilter,
    DeadLetterNotFound,
    History,
    NodeState,
)
from headway.store import leases, unknown_workflows
from headway.store.engine import Store
from headway.store.servers import ServerProcess
from headway.store.tables import manifest
from tests.store.factories import (
    CANCELLED,
    FAILED,
    NOBODY,
    NOON,
    Clock,
    a_manifest,
    change_group,
    change_manifest,
    dead_letter_for,
    declare,
    dispatched,
    finish,
    queue,
    ran,
    started,
)

LEASE = timedelta(seconds=15)


@pytest.fixture
def family(store: Store) -> Store:
    """extract → load → report, each in a group of its own, and stray, which nobody waits for."""
    first, second, third = Group("extracts", 2, 3), Group("loads"), Group("reports")
    declare(
        store,
        a_manifest("extract", group=first, schedule=cron("0 * * * *", tz="Europe/Berlin")),
        a_manifest("load", group=second, schedule=Never(), parents=("extract",)),
        a_manifest("report", group=third, schedule=Never(), parents=("load",), dormant=True),
        a_manifest("stray", group=first, schedule=every(minutes=5)),
        groups=[first, second, third],
    )
    return store


def test_a_manifest_is_shown_with_everything_around_it(family: Store, history: History) -> None:
    ran(family, "extract")
    failed = ran(family, "load", FAILED, source=Source.DEPENDENT)
    dead_letter_for(family, "load")
    waiting = queue(family, "load", source=Source.TRIGGER)
    shown = history.manifests.detail("load")
    assert (shown.overview.schedule, shown.overview.state) == ("after extract", NodeState.FAILED)
    [parent], [child] = shown.parents, shown.children
    assert (parent.external_id, parent.group_name, parent.fresh) == ("extract", "extracts", True)
    assert (child.external_id, child.fresh, child.state) == ("report", False, NodeState.IDLE)
    assert (shown.parent_count, shown.child_count) == (1, 1)
    assert [one.id for one in shown.executions] == [failed.id]
    assert shown.dead_letter is not None and shown.dead_letter.reason == "max retries exceeded"
    assert [one.id for one in shown.entries] == [waiting]
    assert (shown.next_runs, shown.trouble) == ((), None)
    assert (shown.definition.input, shown.definition.owner) == ("null", "warehouse")


def test_what_runs_by_time_shows_its_schedule_in_words_and_its_next_runs(
    family: Store, history: History, clock: Clock
) -> None:
    clock.advance(minutes=10)
    ran(family, "extract")
    shown = history.manifests.detail("extract")
    assert shown.overview.schedule.endswith("(Europe/Berlin)")
    assert [run.at for run in shown.next_runs][1:3] == [
        NOON + timedelta(hours=1),
        NOON + timedelta(hours=2),
    ]
    change_manifest(family, "extract", enabled=False)
    assert history.manifests.detail("extract").next_runs == ()
    assert history.manifests.detail("extract").overview.state is NodeState.DISABLED


def test_a_manifest_whose_group_is_off_shows_no_next_runs_and_is_not_enabled(
    family: Store, history: History
) -> None:
    ran(family, "extract")
    assert history.manifests.detail("extract").next_runs != ()
    change_group(family, "extracts", enabled=False)
    shown = history.manifests.detail("extract")
    assert (shown.next_runs, shown.trouble) == ((), None)
    assert shown.overview.enabled, "the manifest itself is on"
    assert shown.overview.state is NodeState.DISABLED


def test_a_row_that_somebody_broke_is_shown_with_what_is_wrong(
    family: Store, history: History
) -> None:
    with family.writing() as tx:
        broken = update(manifest).where(manifest.c.external_id == "extract")
        tx.connection.execute(broken.values(cron_expression="61 * * * *"))
    shown = history.manifests.detail("extract")
    assert shown.trouble is not None and "61" in shown.trouble
    assert shown.overview.schedule == "its schedule cannot be understood"


def test_what_is_not_there_is_said(family: Store, history: History) -> None:
    with pytest.raises(ManifestNotFound):
        history.manifests.detail("nobody")
    with pytest.raises(GroupNotFound):
        history.groups.detail("nobody's")
    with pytest.raises(ExecutionNotFound):
        history.executions.detail(NOBODY)
    with pytest.raises(DeadLetterNotFound, match="dead letter = 7: there is none of this id"):
        history.dead_letters.detail(7)


def test_a_group_shows_who_holds_its_slots_and_its_neighbours(
    family: Store, history: History
) -> None:
    running, pending = started(family, "extract"), dispatched(family, "stray")
    shown = history.groups.detail("extracts")
    assert [one.id for one in shown.holders] == [running.id, pending]
    assert (shown.overview.active, shown.overview.max_active_jobs) == (2, 2)
    assert (shown.parents, shown.children) == ((), ("loads",))
    middle = history.groups.detail("loads")
    assert (middle.parents, middle.children) == (("extracts",), ("reports",))


def test_all_attempts_of_an_entry_are_shown_with_an_execution(
    family: Store, history: History, clock: Clock
) -> None:
    from_trigger = {"source": Source.TRIGGER, "max_attempts": 2}
    first = ran(family, "stray", FAILED, **from_trigger)
    shown = history.executions.detail(first.id)
    assert [one.id for one in shown.attempts] == [first.id]
    assert shown.execution == first
    assert shown.queued_at == NOON


def test_the_last_runs_of_manifests_come_as_strips(family: Store, history: History) -> None:
    ids = {one.external_id: one.id for one in history.manifests.page().items}
    for outcome in (FAILED, CANCELLED):
        ran(family, "extract", outcome)
    newest = [ran(family, "extract").id for _ in range(2)]
    strips = history.manifests.strips(list(ids.values()), 3)
    assert set(strips) == {ids["extract"]}
    assert [one.state for one in strips[ids["extract"]]] == ["cancelled", "completed", "completed"]
    assert [one.execution_id for one in strips[ids["extract"]][1:]] == newest
    assert history.manifests.strips([]) == {}


def test_the_timeline_has_what_ran_between_two_moments(
    family: Store, history: History, clock: Clock
) -> None:
    before = ran(family, "stray")
    clock.advance(minutes=30)
    overlapping = started(family, "extract")
    clock.advance(minutes=30)
    start = clock.now
    inside = ran(family, "load", source=Source.DEPENDENT)
    clock.advance(minutes=30)
    end = clock.now + timedelta(seconds=1)
    line = history.executions.timeline(start, end)
    assert [one.id for one in line.executions] == [overlapping.id, inside.id]
    assert not line.truncated and before.id not in {one.id for one in line.executions}
    own = history.executions.timeline(start, end, group="loads")
    assert [one.id for one in own.executions] == [inside.id]
    assert history.executions.timeline(start, end, limit=1).truncated


@pytest.mark.parametrize("group", [None, "loads"])
def test_a_timeline_of_too_much_has_the_newest(
    family: Store, history: History, clock: Clock, group: str | None
) -> None:
    start = clock.now
    made = []
    for _ in range(4):
        made.append(ran(family, "load", source=Source.DEPENDENT))
        clock.advance(minutes=1)
    end = clock.now
    ran(family, "load", source=Source.DEPENDENT)
    line = history.executions.timeline(start, end, group, limit=2)
    assert [one.id for one in line.executions] == [one.id for one in made[-2:]]
    assert line.truncated and start < line.start < end
    assert history.executions.timeline(start, end, group, limit=4).start == start


def test_a_timeline_has_what_ended_after_it(family: Store, history: History, clock: Clock) -> None:
    start = clock.now
    long = started(family, "extract")
    end = clock.now + timedelta(seconds=1)
    clock.advance(minutes=1)
    finish(family, long)
    assert [one.id for one in history.executions.timeline(start, end).executions] == [long.id]


def test_a_deployment_began_with_its_first_run(
    family: Store, history: History, clock: Clock
) -> None:
    assert history.executions.began() is None
    first = clock.now
    ran(family, "load", source=Source.DEPENDENT)
    clock.advance(hours=2)
    started(family, "extract")
    assert history.executions.began() == first


def test_the_graph_of_groups_and_its_neighbourhoods(family: Store, history: History) -> None:
    started(family, "extract")
    change_group(family, "reports", enabled=False)
    graph = history.groups.graph()
    assert [(node.name, node.state) for node in graph.nodes] == [
        ("extracts", NodeState.RUNNING),
        ("loads", NodeState.IDLE),
        ("reports", NodeState.DISABLED),
    ]
    edges = [(edge.parent, edge.child, edge.weight) for edge in graph.edges]
    assert edges == [("extracts", "loads", 1), ("loads", "reports", 1)]
    assert not graph.truncated
    near = history.groups.graph(around="reports")
    assert [node.name for node in near.nodes] == ["extracts", "loads", "reports"]
    cut = history.groups.graph(around="reports", limit=2)
    assert ([node.name for node in cut.nodes], cut.truncated) == (["loads", "reports"], True)
    assert history.groups.graph(limit=2).truncated
    assert history.groups.graph(around="nobody's").nodes == ()


def test_edges_within_a_group_are_none_of_the_graph_of_groups(
    store: Store, history: History
) -> None:
    declare(
        store,
        a_manifest("extract", group=Group("etl")),
        a_manifest("load", group=Group("etl"), schedule=Never(), parents=("extract",)),
        a_manifest("report", group=Group("reports"), schedule=Never(), parents=("load",)),
    )
    for around in (None, "etl"):
        edges = history.groups.graph(around=around).edges
        assert [(edge.parent, edge.child) for edge in edges] == [("etl", "reports")]


def test_the_graph_of_manifests(family: Store, history: History) -> None:
    dead_letter_for(family, "load")
    queue(family, "report", source=Source.TRIGGER)
    graph = history.manifests.graph(around="load")
    assert [(node.name, node.group, node.state) for node in graph.nodes] == [
        ("extract", "extracts", NodeState.IDLE),
        ("load", "loads", NodeState.FAILED),
        ("report", "reports", NodeState.QUEUED),
    ]
    assert [(edge.parent, edge.child) for edge in graph.edges] == [
        ("extract", "load"),
        ("load", "report"),
    ]
    own = history.manifests.graph(group="extracts")
    assert [node.name for node in own.nodes] == ["extract", "stray"]
    assert own.edges == ()


def test_dead_letters_are_paged_filtered_and_shown(family: Store, history: History) -> None:
    failed = ran(family, "load", FAILED, source=Source.DEPENDENT)
    for name in ("load", "stray"):
        dead_letter_for(family, name)
    page = history.dead_letters.page
    assert [one.external_id for one in page().items] == ["stray", "load"]
    assert [one.external_id for one in page(DeadLetterFilter(group="loads")).items] == ["load"]
    awaiting = DeadLetterFilter(DeadLetterStatus.AWAITING_INTERVENTION)
    assert len(page(awaiting).items) == 2
    assert page(DeadLetterFilter(DeadLetterStatus.RETRIED)).items == ()
    assert page(DeadLetterFilter(workflow="other")).items == ()
    shown = history.dead_letters.detail(page().items[-1].id)
    assert shown.execution is not None and shown.execution.id == failed.id
    assert [one.id for one in shown.executions] == [failed.id]
    assert shown.input == "null"


def test_the_summary_counts_what_waits_and_runs(
    family: Store, history: History, clock: Clock
) -> None:
    queue(family, "extract")
    queue(family, "stray", scheduled_at=clock.now + timedelta(hours=1))
    started(family, "load", source=Source.DEPENDENT)
    dispatched(family, "report", source=Source.TRIGGER)
    dead_letter_for(family, "stray")
    shown = history.overview.summary()
    assert (shown.queued, shown.delayed, shown.pending, shown.running) == (1, 1, 1, 1)
    assert (shown.dead_letters, shown.success_rate) == (1, None)
    ran(family, "extract", source=Source.TRIGGER)
    ran(family, "extract", FAILED, source=Source.TRIGGER)
    clock.advance(minutes=1)
    shown = history.overview.summary()
    assert (shown.success_rate, shown.completed_per_minute, shown.failed_per_minute) == (0.5, 1, 1)
    assert shown.rated == timedelta(minutes=1)


def test_rates_are_those_of_five_minutes_once_there_were_five(
    family: Store, history: History, clock: Clock
) -> None:
    ran(family, "stray")
    clock.advance(minutes=8)
    ran(family, "extract")
    ran(family, "extract", FAILED, source=Source.TRIGGER)
    clock.advance(minutes=1)
    shown = history.overview.summary()
    assert (shown.success_rate, shown.completed_per_minute, shown.failed_per_minute) == (
        2 / 3,
        0.2,
        0.2,
    )
    assert shown.rated == timedelta(minutes=5)


def test_what_runs_next_comes_first(family: Store, history: History) -> None:
    change_manifest(family, "stray", enabled=False)
    assert [one.external_id for one in history.overview.next_runs()] == ["extract"]


def test_what_needs_attention_is_said_in_sentences(
    family: Store, history: History, clock: Clock
) -> None:
    ran(family, "extract", FAILED)
    dead_letter_for(family, "stray")
    queue(family, "load", source=Source.TRIGGER)
    change_group(family, "loads", enabled=False)
    with family.writing() as tx:
        unknown_workflows.note_seen(tx, {"forgotten": clock.now})
        process = ServerProcess("late", "host", 1, ["worker"], [], 4, Routing())
        leases.register(tx, process, LEASE)
    clock.advance(seconds=10)
    found = {one.kind: one for one in history.overview.attention()}
    assert found.keys() == set(AttentionKind) - {AttentionKind.NO_WORKER}
    assert found[AttentionKind.FAILING].subject == "extract"
    assert found[AttentionKind.DEAD_LETTER].subject == "stray"
    assert found[AttentionKind.DISABLED_GROUP].subject == "loads"
    assert found[AttentionKind.UNKNOWN_WORKFLOW].subject == "forgotten"
    assert all(one.sentence for one in found.values())
    clock.advance(minutes=1)
    kinds = {one.kind for one in history.overview.attention()}
    assert AttentionKind.NO_WORKER in kinds


def test_servers_are_shown_with_their_leases(store: Store, history: History, clock: Clock) -> None:
    with store.writing() as tx:
        process = ServerProcess("one", "host", 7, ["worker"], ["work"], 4, Routing())
        leases.register(tx, process, LEASE)
    declare(store, "extract")
    started(store, owner="one")
    [server] = history.servers.all()
    assert (server.alive, server.late, server.running, server.slots) == (True, False, 1, 4)
    clock.advance(seconds=6)
    assert history.servers.all()[0].late
    clock.advance(seconds=10)
    assert not history.servers.all()[0].alive


def test_a_run_that_was_stopped_is_on_its_way(family: Store, history: History) -> None:
    one = started(family, "extract")
    [shown] = history.executions.page().items
    assert (shown.id, shown.state, shown.seconds) == (one.id, ExecutionState.IN_PROGRESS, None)
