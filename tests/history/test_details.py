"""What the pages about one thing show, and the overview of everything."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select, update

from headway.domain.dead_letter import DeadLetterStatus
from headway.domain.due import MisfirePolicy
from headway.domain.exclusions import exclude
from headway.domain.execution import ExecutionState
from headway.domain.manifest import Group
from headway.domain.retry import RetryPolicy
from headway.domain.routing import Routing
from headway.domain.schedule import Never, cron, every
from headway.domain.time_options import TimeOptions
from headway.domain.timing import FirstRun
from headway.domain.work_queue import Source
from headway.errors import ExecutionNotFound, GroupNotFound, ManifestNotFound
from headway.history import (
    AttentionKind,
    DeadLetterFilter,
    DeadLetterNotFound,
    EdgeView,
    ExecutionFilter,
    GroupOverview,
    History,
    ManifestDefinition,
    ManifestFilter,
    ManifestOverview,
    NodeState,
)
from headway.store import (
    leases,
    removal,
    resolution,
    unknown_workflows,
)
from headway.store.edges import parents_seen
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
    change_state,
    dead_letter_for,
    declare,
    dispatched,
    finish,
    manifest_ids,
    queue,
    ran,
    started,
)

LEASE = timedelta(seconds=15)


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
    ends = [history.manifests.detail(name) for name in ("extract", "report")]
    assert [(one.parent_count, one.child_count) for one in ends] == [(0, 1), (1, 0)]
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


def test_the_next_runs_are_the_five_after_what_is_settled(family: Store, history: History) -> None:
    hour = timedelta(hours=1)
    change_state(family, "extract", settled_until=NOON + 2 * hour)
    runs = history.manifests.detail("extract").next_runs
    assert [(one.at, one.stands_for) for one in runs] == [
        (NOON + number * hour, NOON + number * hour) for number in range(3, 8)
    ]


def test_a_first_run_is_counted_from_the_declaration(
    store: Store, history: History, clock: Clock
) -> None:
    time = TimeOptions(first_run=FirstRun.AT_FIRST_OCCURRENCE)
    declare(store, a_manifest("load", schedule=every(minutes=5), time=time))
    clock.advance(minutes=2)
    first = history.manifests.detail("load").next_runs[0]
    assert (first.at, first.stands_for) == (NOON + timedelta(minutes=5),) * 2


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


def test_a_definition_shows_everything_that_was_declared(
    store: Store, history: History, clock: Clock
) -> None:
    pausing = (exclude.window("22:00", "06:00", then="defer"), exclude.weekends())
    time = TimeOptions(
        misfire_policy=MisfirePolicy.CATCH_UP,
        misfire_threshold=timedelta(seconds=90),
        catch_up_limit=5,
        variance=timedelta(seconds=30),
        exclusions=pausing,
        first_run=FirstRun.AT_FIRST_OCCURRENCE,
        tz="Europe/Berlin",
    )
    retry = RetryPolicy(timedelta(seconds=10), 1.5, timedelta(minutes=2), 0.2)
    declare(
        store,
        a_manifest(
            "load",
            schedule=cron("0 12 * * *", tz="Europe/Berlin"),
            input='{"day": 1}',
            input_type="Day",
            priority=7,
            max_retries=4,
            timeout=timedelta(minutes=20),
            retry=retry,
            time=time,
            batch="days",
            allow_overlap=True,
        ),
    )
    clock.advance(minutes=1)
    change_manifest(store, "load", updated_at=clock.now)
    assert history.manifests.detail("load").definition == ManifestDefinition(
        input='{"day": 1}',
        input_type="Day",
        priority=7,
        time_zone="Europe/Berlin",
        exclusions=("on sun, sat (skip)", "between 22:00 and 06:00 (defer)"),
        misfire_policy="catch_up",
        misfire_threshold=timedelta(seconds=90),
        catch_up_limit=5,
        first_run="at_first_occurrence",
        variance=timedelta(seconds=30),
        max_retries=4,
        retry="after 0:00:10, × 1.5 up to 0:02:00, up to 20% longer",
        timeout=timedelta(minutes=20),
        join=None,
        when_busy=None,
        allow_overlap=True,
        owner="warehouse",
        batch="days",
        scheduled_since=NOON,
        created_at=NOON,
        updated_at=clock.now,
    )


def test_what_was_left_out_of_a_definition_is_shown_as_the_default(
    family: Store, history: History
) -> None:
    declared = {name: history.manifests.detail(name).definition for name in ("stray", "report")}
    assert declared["stray"] == ManifestDefinition(
        input="null",
        input_type="None",
        priority=0,
        time_zone=None,
        exclusions=(),
        misfire_policy=None,
        misfire_threshold=None,
        catch_up_limit=None,
        first_run=None,
        variance=None,
        max_retries=None,
        retry=None,
        timeout=None,
        join=None,
        when_busy=None,
        allow_overlap=False,
        owner="warehouse",
        batch=None,
        scheduled_since=NOON,
        created_at=NOON,
        updated_at=NOON,
    )
    assert (declared["report"].join, declared["report"].when_busy) == ("all", "skip")


def test_a_manifest_in_a_list_says_where_it_stands(
    family: Store, history: History, clock: Clock
) -> None:
    ran(family, "extract")
    change_state(family, "extract", settled_until=NOON - timedelta(hours=1))
    clock.advance(minutes=1)
    started(family, "extract")
    queue(family, "extract", source=Source.TRIGGER)
    dead_letter_for(family, "extract")
    change_group(family, "extracts", enabled=False)
    [shown] = history.manifests.page(ManifestFilter(search="extract")).items
    assert shown == ManifestOverview(
        id=shown.id,
        external_id="extract",
        workflow="work",
        group_name="extracts",
        schedule_kind="cron",
        enabled=True,
        last_success_at=NOON,
        settled_until=NOON - timedelta(hours=1),
        wake_at=NOON,
        schedule=shown.schedule,
        group_enabled=False,
        running=True,
        queued=True,
        dead_lettered=True,
        state=NodeState.RUNNING,
    )
    assert shown.schedule.endswith("(Europe/Berlin)")
    stray = history.manifests.detail("stray").overview
    assert (stray.running, stray.queued, stray.dead_lettered) == (False, False, False)


def test_a_run_that_may_overlap_is_shown_as_running(store: Store, history: History) -> None:
    declare(store, a_manifest("extract", allow_overlap=True))
    assert not history.manifests.detail("extract").overview.running
    started(store)
    assert history.manifests.detail("extract").overview.running


def test_a_dependent_names_its_first_parent_and_counts_the_others(
    store: Store, history: History
) -> None:
    parents = ("c", "a", "b")
    dependent: dict[str, Any] = {"schedule": Never(), "parents": parents}
    declare(
        store,
        *parents,
        a_manifest("both", **dependent),
        a_manifest("dormant", **dependent, dormant=True),
        a_manifest("after-one", schedule=Never(), parents=("b",)),
    )
    shown = {one.external_id: one.schedule for one in history.manifests.page().items}
    assert (shown["both"], shown["after-one"]) == ("after a and 2 more", "after b")
    assert shown["dormant"] == "when activated by a and 2 more"
    with store.writing() as tx:
        removal.remove(tx, [manifest_ids(store)["b"]])
    shown = {one.external_id: one.schedule for one in history.manifests.page().items}
    assert (shown["both"], shown["after-one"]) == ("after a and 1 more", "after a removed parent")


def test_an_edge_shows_how_its_other_end_stands(
    family: Store, history: History, clock: Clock
) -> None:
    ran(family, "extract")
    clock.advance(minutes=1)
    started(family, "report", source=Source.ACTIVATION)
    change_group(family, "extracts", enabled=False)
    [parent] = history.manifests.detail("load").parents
    assert parent == EdgeView("extract", "extracts", False, NodeState.DISABLED, NOON, True)
    [child] = history.manifests.detail("load").children
    assert child == EdgeView("report", "reports", True, NodeState.RUNNING, None, False)
    change_manifest(family, "report", enabled=False)
    dead_letter_for(family, "extract")
    [parent] = history.manifests.detail("load").parents
    assert (parent.state, parent.enabled) == (NodeState.FAILED, False)
    assert not history.manifests.detail("load").children[0].enabled
    change_group(family, "extracts", enabled=True)
    ran(family, "load", source=Source.DEPENDENT, parents_seen=None)
    queue(family, "load", source=Source.DEPENDENT)
    [load] = history.manifests.detail("extract").children
    assert (load.external_id, load.state) == ("load", NodeState.QUEUED)


def test_a_success_that_the_child_has_consumed_is_not_fresh(
    family: Store, history: History
) -> None:
    ran(family, "extract")
    with family.reading() as tx:
        seen = tx.connection.execute(
            select(parents_seen(tx, manifest.c.id)).where(manifest.c.external_id == "load")
        ).scalar_one()
    assert history.manifests.detail("load").parents[0].fresh
    ran(family, "load", source=Source.DEPENDENT, parents_seen=seen)
    assert not history.manifests.detail("load").parents[0].fresh
    ran(family, "extract")
    assert history.manifests.detail("load").parents[0].fresh
    assert history.manifests.detail("extract").children[0].fresh


def test_a_removed_parent_is_an_edge_without_a_name(family: Store, history: History) -> None:
    with family.writing() as tx:
        removal.remove(tx, [manifest_ids(family)["extract"]])
    shown = history.manifests.detail("load")
    assert shown.parents == (EdgeView(None, None, False, NodeState.DISABLED, None, False),)
    assert (shown.parent_count, shown.child_count) == (1, 1)


def test_a_group_shows_its_row_and_when_it_changed(
    family: Store, history: History, clock: Clock
) -> None:
    changed = clock.advance(minutes=1)
    change_group(family, "extracts", enabled=False, updated_at=changed)
    queue(family, "stray", scheduled_at=changed + timedelta(hours=1))
    queue(family, "extract")
    for name in ("extract", "stray"):
        dead_letter_for(family, name)
    with family.writing() as tx:
        resolution.acknowledge(tx, [history.dead_letters.page().items[0].id], None)
    shown = history.groups.detail("extracts")
    assert (shown.created_at, shown.updated_at) == (NOON, changed)
    assert shown.overview == GroupOverview(
        name="extracts",
        max_active_jobs=2,
        priority=3,
        enabled=False,
        manifests=2,
        queued=1,
        active=0,
        completed=0,
        failed=0,
        dead_letters=1,
    )
    assert history.groups.page().items[0] == shown.overview


def test_a_name_stands_for_the_manifest_that_was_not_removed(
    store: Store, history: History
) -> None:
    old = declare(store, "extract")["extract"]
    ran(store)
    with store.writing() as tx:
        removal.remove(tx, [old])
    with pytest.raises(ManifestNotFound):
        history.manifests.detail("extract")
    new = declare(store, "extract")["extract"]
    mine = ran(store)
    assert history.manifests.detail("extract").overview.id == new != old
    found = history.executions.page(ExecutionFilter(manifest="extract")).items
    assert [one.id for one in found] == [mine.id]
