"""Pages are complete and repeat nothing, whatever happens between two of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert

from headway.domain.execution import ExecutionState
from headway.domain.manifest import Group
from headway.domain.paging import BadCursor, cursor_at
from headway.domain.work_queue import Source
from headway.errors import DefinitionError
from headway.history import (
    AuditFilter,
    ExecutionFilter,
    GroupFilter,
    History,
    ManifestFilter,
    Page,
    QueueFilter,
)
from headway.store.engine import Store
from headway.store.reading import execution_pages, queue_pages
from headway.store.tables import audit
from tests.store.factories import (
    CANCELLED,
    COMPLETED,
    FAILED,
    Clock,
    a_declaration,
    a_manifest,
    apply,
    change_group,
    dead_letter_for,
    declare,
    dispatched,
    queue,
    queue_ad_hoc,
    ran,
    started,
)

Read = Callable[..., Page[Any]]
COUNT = 7


def all_pages(
    page: Read, filters: Any, limit: int = 2, between: Callable[[], object] = lambda: None
) -> list[Any]:
    """Every item of every page, in their order; *between* happens after each page."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(100):
        got = page(filters, cursor, limit)
        assert len(got.items) <= limit
        found += got.items
        if got.next is None:
            return found
        cursor = got.next
        between()
    raise AssertionError("the pages do not end")


def names(items: list[Any]) -> list[str]:
    return [one.external_id for one in items]


@pytest.fixture
def etl(store: Store) -> Store:
    """Seven manifests in two groups."""
    groups = [Group("even"), Group("odd", priority=5)]
    items = [
        a_manifest(f"load-{number}", group=groups[number % 2], workflow=f"work-{number % 3}")
        for number in range(COUNT)
    ]
    declare(store, *items, groups=groups)
    return store


def test_manifests_come_by_name_once_each(etl: Store, history: History) -> None:
    found = all_pages(history.manifests.page, ManifestFilter())
    assert names(found) == [f"load-{number}" for number in range(COUNT)]


def test_manifests_declared_meanwhile_disturb_nothing(etl: Store, history: History) -> None:
    numbers = iter(range(100))

    def declare_more() -> None:
        number = next(numbers)
        more = [a_manifest(f"{place}-{number}") for place in ("a", "z")]
        apply(etl, a_declaration(*more, application=f"other-{number}"))

    found = names(all_pages(history.manifests.page, ManifestFilter(), between=declare_more))
    assert len(found) == len(set(found))
    assert {f"load-{number}" for number in range(COUNT)} <= set(found)


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        (ManifestFilter(search="load-3"), [3]),
        (ManifestFilter(search="oad-3"), []),
        (ManifestFilter(search="OAD-3", anywhere=True), [3]),
        (ManifestFilter(group="odd"), [1, 3, 5]),
        (ManifestFilter(group="odd", search="load-"), [1, 3, 5]),
        (ManifestFilter(group="odd", search="5", anywhere=True), [5]),
        (ManifestFilter(group="nobody's"), []),
        (ManifestFilter(workflow="work-1"), [1, 4]),
        (ManifestFilter(workflow="work-1", group="even"), [4]),
        (ManifestFilter(kind="interval"), list(range(COUNT))),
        (ManifestFilter(kind="cron"), []),
        (ManifestFilter(enabled=True), list(range(COUNT))),
        (ManifestFilter(enabled=False), []),
        (ManifestFilter(dead_lettered=True), [2, 5]),
        (ManifestFilter(dead_lettered=True, group="odd"), [5]),
    ],
)
def test_manifests_are_filtered(
    etl: Store, history: History, filters: ManifestFilter, numbers: list[int]
) -> None:
    for number in (5, 2):
        dead_letter_for(etl, f"load-{number}")
    found = all_pages(history.manifests.page, filters)
    assert names(found) == [f"load-{number}" for number in numbers]
    assert [one.dead_lettered for one in found] == [number in (2, 5) for number in numbers]


def test_names_sort_by_code_point_on_both_databases(store: Store, history: History) -> None:
    wanted = ["A", "B", "_a", "a", "a b", "a-1", "b", "ä", "日本"]
    declare(store, *random.Random(3).sample(wanted, len(wanted)))
    assert names(all_pages(history.manifests.page, ManifestFilter())) == wanted
    assert [one.name for one in all_pages(history.groups.page, GroupFilter())] == ["etl"]
    assert names(all_pages(history.manifests.page, ManifestFilter(search="a"))) == wanted[3:6]
    assert names(all_pages(history.manifests.page, ManifestFilter(search="%"))) == []


def test_groups_come_by_name_and_are_filtered(etl: Store, history: History) -> None:
    change_group(etl, "odd", enabled=False)
    page = history.groups.page
    assert [one.name for one in all_pages(page, GroupFilter(), 1)] == ["even", "odd"]
    assert [one.name for one in page(GroupFilter(search="o")).items] == ["odd"]
    assert [one.name for one in page(GroupFilter(search="E", anywhere=True)).items] == ["even"]
    assert [one.name for one in page(GroupFilter(enabled=False)).items] == ["odd"]
    assert [one.name for one in page(GroupFilter(enabled=True)).items] == ["even"]
    assert page(GroupFilter(search="o", enabled=True)).items == ()


def some_executions(store: Store) -> list[int]:
    return [
        ran(store, "load-0").id,
        ran(store, "load-1", FAILED).id,
        ran(store, "load-2", CANCELLED, source=Source.TRIGGER).id,
        ran(store, "load-1", COMPLETED).id,
        ran(store, "load-4", FAILED).id,
        started(store, "load-5").id,
        dispatched(store, "load-6"),
    ]


def test_executions_come_newest_first_live_or_finished(etl: Store, history: History) -> None:
    ids = some_executions(etl)
    found = all_pages(history.executions.page, ExecutionFilter())
    assert [one.id for one in found] == ids[::-1]
    assert [one.state for one in found[:2]] == ["pending", "in_progress"]
    failed = found[2]
    assert failed.failure == "load: ValueError: no rows"


def test_executions_that_start_and_end_meanwhile_disturb_nothing(
    etl: Store, history: History
) -> None:
    ids = some_executions(etl)
    found = all_pages(
        history.executions.page, ExecutionFilter(), between=lambda: ran(etl, "load-3")
    )
    assert [one.id for one in found] == ids[::-1]


@pytest.mark.parametrize(
    ("filters", "places"),
    [
        (ExecutionFilter(states=[ExecutionState.FAILED]), [4, 1]),
        (ExecutionFilter(states=[ExecutionState.FAILED, ExecutionState.CANCELLED]), [4, 2, 1]),
        (ExecutionFilter(states=[ExecutionState.COMPLETED]), [3, 0]),
        (ExecutionFilter(states=[ExecutionState.COMPLETED, ExecutionState.FAILED]), [4, 3, 1, 0]),
        (ExecutionFilter(states=[ExecutionState.PENDING]), [6]),
        (ExecutionFilter(states=[ExecutionState.IN_PROGRESS, ExecutionState.FAILED]), [5, 4, 1]),
        (ExecutionFilter(manifest="load-1"), [3, 1]),
        (ExecutionFilter(manifest="load-1", states=[ExecutionState.FAILED]), [1]),
        (ExecutionFilter(manifest="nobody"), []),
        (ExecutionFilter(group="even"), [6, 4, 2, 0]),
        (ExecutionFilter(group="even", states=[ExecutionState.FAILED]), [4]),
        (ExecutionFilter(group="nobody's"), []),
        (ExecutionFilter(workflow="work-1"), [4, 3, 1]),
        (ExecutionFilter(source=Source.TRIGGER), [2]),
        (ExecutionFilter(source=Source.TRIGGER, group="even", workflow="work-2"), [2]),
    ],
)
def test_executions_are_filtered(
    etl: Store, history: History, filters: ExecutionFilter, places: list[int]
) -> None:
    ids = some_executions(etl)
    found = all_pages(history.executions.page, filters, 1)
    assert [ids.index(one.id) for one in found] == places


@pytest.mark.parametrize(
    "wanted",
    [
        ExecutionFilter(),
        ExecutionFilter(workflow="work-0"),
        ExecutionFilter(states=[ExecutionState.COMPLETED], group="even"),
    ],
)
def test_executions_of_a_time_are_found(
    etl: Store, history: History, clock: Clock, wanted: ExecutionFilter
) -> None:
    moments = {}
    for number in range(12):
        clock.advance(minutes=10)
        one = ran(etl, f"load-{number % COUNT}")
        moments[one.id] = (clock.now, number % COUNT)
    since, until = clock.now - timedelta(minutes=80), clock.now - timedelta(minutes=30)
    filters = replace(wanted, since=since, until=until)
    found = [one.id for one in all_pages(history.executions.page, filters, 2)]
    right = [
        key
        for key, (moment, number) in moments.items()
        if since <= moment < until
        and (wanted.workflow is None or f"work-{number % 3}" == wanted.workflow)
        and (wanted.group is None or number % 2 == 0)
    ]
    assert found == right[::-1]


def test_a_page_looks_at_so_many_rows_and_no_more(
    etl: Store, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution_pages, "EXAMINED", 3)
    ids = some_executions(etl)
    rare = ExecutionFilter(workflow="work-0")
    first = history.executions.page(rare, limit=2)
    assert [one.id for one in first.items] == [ids[6]]
    assert first.next is not None, "it has stopped before the end"
    found = all_pages(history.executions.page, rare)
    assert [one.id for one in found] == [ids[6], ids[0]]


@pytest.fixture(params=["short", "long"])
def queue_of_any_length(
    request: pytest.FixtureRequest, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A short queue is sorted whole; on PostgreSQL a long one is looked through lane by lane."""
    if request.param == "long" and store.on_postgresql:
        monkeypatch.setattr(queue_pages, "SORTED", 0)


def in_dispatch_order(store: Store, history: History, clock: Clock) -> list[int]:
    """A queue in which each rule of the order decides somewhere; returns the right order."""
    low = queue(store, "load-0", priority=1)
    clock.advance(seconds=1)
    high = queue(store, "load-2", priority=9)
    odd_low = queue(store, "load-1", priority=0)
    odd_high = queue(store, "load-3", priority=3)
    same = queue(store, "load-4", priority=9)
    ad_hoc = queue_ad_hoc(store, priority=9)
    clock.advance(seconds=1)
    young = queue(store, "load-6", priority=9)
    last = queue(store, "load-5", scheduled_at=clock.now + timedelta(hours=2))
    later = queue(store, "load-0", source=Source.RERUN, scheduled_at=clock.now + timedelta(hours=1))
    return [odd_high, odd_low, high, same, ad_hoc, young, low, later, last]


@pytest.mark.parametrize("limit", [1, 2, 3, 50])
@pytest.mark.usefixtures("queue_of_any_length")
def test_the_queue_comes_in_the_order_of_dispatch(
    etl: Store, history: History, clock: Clock, limit: int
) -> None:
    right = in_dispatch_order(etl, history, clock)
    found = all_pages(history.queue.page, QueueFilter(), limit)
    assert [one.id for one in found] == right
    assert [one.delayed for one in found[-2:]] == [True, True]


@pytest.mark.usefixtures("queue_of_any_length")
def test_what_is_queued_meanwhile_disturbs_nothing(
    etl: Store, history: History, clock: Clock
) -> None:
    right = in_dispatch_order(etl, history, clock)

    def queue_more() -> None:
        for number, priority in ((1, 31), (4, 0)):
            queue(etl, f"load-{number}", source=Source.TRIGGER, priority=priority)

    found = [one.id for one in all_pages(history.queue.page, QueueFilter(), 2, between=queue_more)]
    assert len(found) == len(set(found))
    assert [one for one in found if one in right] == right


@pytest.mark.usefixtures("queue_of_any_length")
def test_a_long_queue_of_many_groups_is_paged_as_it_would_be_sorted(
    store: Store, history: History, clock: Clock
) -> None:
    rng = random.Random(9)
    groups = [Group(f"g-{number}", priority=rng.randrange(3)) for number in range(9)]
    items = [a_manifest(f"m-{number}", group=rng.choice(groups)) for number in range(40)]
    declare(store, *items, groups=groups)
    for number in range(40):
        clock.advance(seconds=rng.randrange(2))
        queue(store, f"m-{number}", priority=rng.randrange(3))
    found = all_pages(history.queue.page, QueueFilter(), 4)
    order = [(-one.group_priority, -one.priority, one.created_at, one.id) for one in found]
    assert order == sorted(order)
    assert len({one.id for one in found}) == 40


@pytest.mark.parametrize(
    ("filters", "places"),
    [
        (QueueFilter(group="odd"), [0, 1, 8]),
        (QueueFilter(group="even"), [2, 3, 5, 6, 7]),
        (QueueFilter(manifest="load-0"), [6, 7]),
        (QueueFilter(source=Source.RERUN), [7]),
        (QueueFilter(source=Source.AD_HOC), [4]),
        (QueueFilter(source=Source.SCHEDULE, group="even"), [2, 3, 5, 6]),
        (QueueFilter(group="nobody's"), []),
    ],
)
def test_the_queue_is_filtered(
    etl: Store,
    history: History,
    clock: Clock,
    filters: QueueFilter,
    places: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queue_pages, "AT_ONCE", 3)
    monkeypatch.setattr(queue_pages, "EXAMINED", 3)
    right = in_dispatch_order(etl, history, clock)
    found = all_pages(history.queue.page, filters, 2)
    assert [right.index(one.id) for one in found] == places


def test_the_audit_trail_comes_newest_first_and_is_filtered(
    store: Store, history: History, clock: Clock
) -> None:
    start = clock.now
    with store.writing() as tx:
        for number in range(6):
            row = {
                "at": start + timedelta(minutes=number),
                "actor": f"person-{number % 2}",
                "action": "trigger" if number < 3 else "cancel",
                "subject": f"load-{number % 3}",
            }
            tx.connection.execute(insert(audit).values(row))

    def found(filters: AuditFilter) -> list[int]:
        records = all_pages(history.audit.page, filters, 1)
        return [(one.at - start) // timedelta(minutes=1) for one in records]

    assert found(AuditFilter()) == [5, 4, 3, 2, 1, 0]
    assert found(AuditFilter(actor="person-1")) == [5, 3, 1]
    assert found(AuditFilter(action="trigger")) == [2, 1, 0]
    assert found(AuditFilter(subject="load-2")) == [5, 2]
    assert found(AuditFilter(since=start + timedelta(minutes=4))) == [5, 4]
    assert found(AuditFilter(subject="load-2", actor="person-1", action="cancel")) == [5]


@pytest.mark.parametrize("cursor", ["nonsense", "W10", "eyJ9", "A" * 5000, cursor_at("x", 1, 2)])
def test_a_cursor_nobody_gave_is_refused_in_one_line(history: History, cursor: str) -> None:
    for page in (
        history.manifests.page,
        history.groups.page,
        history.executions.page,
        history.queue.page,
        history.dead_letters.page,
        history.audit.page,
    ):
        with pytest.raises(BadCursor, match=r"^cursor = .*leave it out for the first page$"):
            page(cursor=cursor)


@pytest.mark.parametrize("limit", [0, -1, 201, True, "7", None])
def test_a_limit_is_a_number_up_to_two_hundred(history: History, limit: Any) -> None:
    with pytest.raises(DefinitionError, match=r"^limit = .*: must be a whole number from 1 to 200"):
        history.executions.page(limit=limit)
