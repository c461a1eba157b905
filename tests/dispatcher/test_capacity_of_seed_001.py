"""Seed 001: "How Global and Per-Group Limits Interact", its table and its sentences."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway import Group, every
from headway.domain.admission import Active, Admission, Verdict, admit
from headway.domain.work_queue import Source, WorkQueueEntry
from tests.builders import START, Scene, names

NOBODY = Active(0, {})
DISPATCHED = (Verdict.DISPATCH, "dispatched")
GROUP_CAP = (Verdict.SKIP, "group 'A' has reached its cap of 3")
GLOBAL_CAP = (Verdict.STOP, "global limit of 5 reached")
TABLE = {
    "A-1": DISPATCHED,
    "A-2": DISPATCHED,
    "A-3": DISPATCHED,
    "A-4": GROUP_CAP,
    "B-1": DISPATCHED,
    "B-2": DISPATCHED,
    "B-3": GLOBAL_CAP,
    "B-4": GLOBAL_CAP,
}


def entry(
    external_id: str,
    group_id: int | None = None,
    cap: int | None = None,
    priority: int = 0,
    workflow: str = "work",
) -> WorkQueueEntry:
    return WorkQueueEntry(
        id=int.from_bytes(external_id.encode()),
        workflow=workflow,
        source=Source.SCHEDULE if group_id else Source.AD_HOC,
        priority=priority,
        created_at=START,
        manifest_id=1 if group_id else None,
        group_id=group_id,
        external_id=external_id,
        group_name=external_id.partition("-")[0] if group_id else None,
        group_priority=priority,
        group_max_active_jobs=cap,
    )


def rows(admissions: list[Admission] | tuple[Admission, ...]) -> dict[str | None, tuple[str, str]]:
    return {one.entry.external_id: (one.verdict, one.reason) for one in admissions}


def taken(admissions: list[Admission]) -> int:
    return sum(one.verdict is Verdict.DISPATCH for one in admissions)


def test_the_capacity_table() -> None:
    entries = [entry(f"A-{n}", 1, 3, 20) for n in (1, 2, 3, 4)]
    entries += [entry(f"B-{n}", 2, 3, 10) for n in (1, 2, 3, 4)]

    admissions = admit(entries, NOBODY, max_active_jobs=5)

    assert list(rows(admissions).items()) == list(TABLE.items())


def test_the_capacity_table_through_the_dispatcher(scene: Scene) -> None:
    scene.configure(max_active_jobs=5)
    groups = {"A": Group("A", 3, priority=20), "B": Group("B", 3, priority=10)}
    for name in reversed(TABLE):  # declared the other way round: priority decides, not age
        scene.app.schedule("work", name, None, every(hours=1), group=groups[name[0]])
        scene.apply()
        scene.manage()
        scene.clock.advance(seconds=-1)

    result = scene.dispatch()

    assert list(rows(result.admissions).items()) == list(TABLE.items())
    assert (result.loaded, len(result.dispatched)) == (8, 5)
    assert result.skipped == {GROUP_CAP[1]: 1, GLOBAL_CAP[1]: 2}
    assert sorted(map(str, names(scene.history.queue.all()))) == ["A-4", "B-3", "B-4"]
    assert Counter(one.group_name for one in scene.history.executions.all()) == {"A": 3, "B": 2}

    again = scene.dispatch()
    assert (again.dispatched, again.skipped) == ((), {GLOBAL_CAP[1]: 3})

    scene.run()
    assert scene.dispatch().skipped == {}
    assert scene.history.queue.all() == []


@pytest.mark.parametrize(
    ("limit", "active", "expected"), [(100, 95, 5), (100, 100, 0), (100, 120, 0), (None, 95, 20)]
)
def test_the_global_limit_leaves_room_for(limit: int | None, active: int, expected: int) -> None:
    entries = [entry(f"M-{n}") for n in range(20)]

    assert taken(admit(entries, Active(active, {}), limit)) == expected


def test_a_limit_of_100_with_95_active_takes_5_from_the_queue(scene: Scene) -> None:
    scene.configure(max_active_jobs=100)
    for _ in range(95):
        scene.pending("work")
    for number in range(20):
        scene.app.schedule("work", f"load-{number}", None, every(hours=1), group="all")
    scene.apply()
    scene.manage()

    assert len(scene.dispatch().dispatched) == 5
    assert len(scene.history.queue.all()) == 15
    scene.configure(max_active_jobs=50)
    assert scene.dispatch().dispatched == (), "exceeded, because it was lowered"
    scene.configure(max_active_jobs=None)
    assert len(scene.dispatch().dispatched) == 15


def test_excluded_workflows_neither_need_nor_use_a_global_slot() -> None:
    entries = [entry("M-1"), entry("M-2", workflow="internal"), entry("M-3")]

    found = rows(admit(entries, NOBODY, 1, excluded=("internal",)))

    stopped = (Verdict.STOP, "global limit of 1 reached")
    assert found == {"M-1": DISPATCHED, "M-2": DISPATCHED, "M-3": stopped}


def test_the_cap_of_its_group_binds_an_excluded_workflow_too() -> None:
    entries = [entry(f"G-{number}", 1, 1, workflow="internal") for number in (1, 2)]

    [first, second] = admit(entries, NOBODY, None, excluded=("internal",))

    assert (first.verdict, second.verdict) == (Verdict.DISPATCH, Verdict.SKIP)


def test_excluded_workflows_through_the_dispatcher(scene: Scene) -> None:
    def internal() -> None: ...

    scene.app.workflow(internal)
    scene.configure(max_active_jobs=2, exclude_from_max_active_jobs=("internal",))
    for number in range(3):
        for workflow in ("internal", "work"):
            name = f"{workflow}-{number}"
            scene.app.schedule(workflow, name, None, every(hours=1), group="all")
    scene.apply()
    scene.manage()

    scene.dispatch()

    counted = Counter(one.workflow for one in scene.history.executions.all())
    assert counted == {"internal": 3, "work": 2}
    assert names(scene.history.queue.all()) == ["work-2"]
    assert scene.dispatch().dispatched == ()


def test_a_full_group_does_not_block_another() -> None:
    entries = [entry(f"A-{n}", 1, 3, 20) for n in range(9)] + [entry("B-1", 2, 3, 10)]

    found = rows(admit(entries, Active(3, {1: 3}), 5))

    assert Counter(found.values()) == {GROUP_CAP: 9, DISPATCHED: 1}
    assert found["B-1"] == DISPATCHED


def test_jobs_without_a_manifest_ignore_group_caps_but_use_global_slots() -> None:
    entries = [entry("A-1", 1, 1), entry("A-2", 1, 1), *(entry(f"M-{n}") for n in range(3))]

    verdicts = [one.verdict for one in admit(entries, NOBODY, 3)]

    assert verdicts == [Verdict.DISPATCH, Verdict.SKIP, *[Verdict.DISPATCH] * 2, Verdict.STOP]


GROUPED = st.integers(1, 4)
CAPS = st.dictionaries(GROUPED, st.integers(1, 6))
QUEUE = st.lists(st.tuples(st.none() | GROUPED, st.sampled_from(["work", "internal"])), max_size=40)
HOLDERS = st.dictionaries(GROUPED, st.integers(0, 8))


@given(QUEUE, CAPS, HOLDERS, st.integers(0, 5), st.none() | st.integers(1, 30))
def test_admission_never_exceeds_a_limit_keeps_the_order_and_stops_only_at_the_global_limit(
    queue: list[tuple[int | None, str]],
    caps: dict[int, int],
    active: dict[int, int],
    ad_hoc: int,
    limit: int | None,
) -> None:
    entries = [
        entry(f"{group}-{place}", group, caps.get(group or 0), workflow=workflow)
        for place, (group, workflow) in enumerate(queue)
    ]
    before = sum(active.values()) + ad_hoc

    admissions = admit(entries, Active(before, active), limit, excluded=("internal",))

    assert [one.entry for one in admissions] == entries
    counted = [one for one in admissions if one.entry.workflow == "work"]
    admitted = [one.entry for one in counted if one.verdict is Verdict.DISPATCH]
    assert limit is None or before + len(admitted) <= max(limit, before)
    dispatched = [one.entry for one in admissions if one.verdict is Verdict.DISPATCH]
    by_group = Counter(one.group_id for one in dispatched)
    for group, cap in caps.items():
        assert active.get(group, 0) + by_group[group] <= max(cap, active.get(group, 0))
    verdicts = [one.verdict for one in counted]
    if Verdict.STOP in verdicts:
        first = verdicts.index(Verdict.STOP)
        assert set(verdicts[first:]) == {Verdict.STOP}
        assert limit is not None and before + len(admitted) >= limit
    for one in admissions:
        if one.verdict is Verdict.SKIP:
            group = one.entry.group_id or 0
            assert active.get(group, 0) + by_group[group] >= caps[group]
        assert one.entry.workflow == "work" or one.verdict is not Verdict.STOP


def test_a_page_full_of_full_groups_hides_nobody(scene: Scene) -> None:
    scene.configure(
        max_active_jobs=None,
        max_queued_jobs_per_cycle=None,
        max_work_queue_entries_per_cycle=None,
    )
    for number in range(11):
        group = Group(f"full-{number}", max_active_jobs=1, priority=5)
        for place in range(101):
            scene.app.schedule("work", f"{group.name}-{place}", None, every(hours=1), group=group)
    scene.app.schedule("work", "low", None, every(hours=1), group="idle")
    scene.apply()
    while scene.manage().queued:
        pass

    scene.dispatch()

    started = {one.external_id for one in scene.history.executions.all()}
    assert "low" in started and len(started) == 12


@given(st.lists(st.booleans(), max_size=20), st.integers(-2, 20))
def test_no_more_go_to_the_workers_than_they_have_room_for(plan: list[bool], room: int) -> None:
    entries = [entry(f"A-{n}", 1, None if free else 0) for n, free in enumerate(plan)]
    admissions = admit(entries, NOBODY, None)

    kept = admit(entries, NOBODY, None, room=room)

    assert [one.entry for one in kept] == entries
    went = [one for one in kept if one.verdict is Verdict.DISPATCH]
    wanted = [one for one in admissions if one.verdict is Verdict.DISPATCH]
    assert went == wanted[: max(room, 0)]


def test_slots_are_free_again_when_runs_end_whatever_their_end(scene: Scene) -> None:
    scene.configure(max_active_jobs=None)
    group = Group("all", max_active_jobs=2)
    for number in range(4):
        scene.app.schedule("work", f"load-{number}", None, every(hours=1), group=group)
    scene.apply()
    scene.manage()
    scene.dispatch()
    scene.failing.add("load-0")

    assert scene.dispatch().dispatched == ()
    assert scene.run().claimed == 2
    scene.clock.advance(seconds=1)
    assert len(scene.dispatch().dispatched) == 2
