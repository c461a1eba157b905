"""Planning: says what applying would do, writes nothing, refuses what applying would refuse."""

from __future__ import annotations

from typing import Any

import pytest

from headway.domain.declaration import Declaration
from headway.domain.field_changes import FieldChange
from headway.domain.manifest import Group, Manifest
from headway.domain.plan import Change, GroupChange, Kept, Plan
from headway.domain.schedule import Never, every
from headway.domain.work_queue import Source
from headway.errors import CircularDependencyError, HeadwayError, OwnedByAnother, ParentNotFound
from headway.store import planning, removal, work_queue
from headway.store.engine import Store
from tests.store.factories import (
    a_declaration,
    a_manifest,
    apply,
    change_group,
    change_manifest,
    declare,
    dispatched,
    everything,
    manifest_ids,
    queue,
    ran,
    started,
)


def plan(store: Store, wanted: Declaration) -> Plan:
    before = everything(store)
    with store.reading() as tx:
        found = planning.plan(tx, wanted)
    assert everything(store) == before
    return found


def after(external_id: str, *parents: str, **changes: Any) -> Manifest:
    return a_manifest(external_id, schedule=Never(), parents=parents, **changes)


def test_the_plan_of_an_empty_database_is_to_create_everything(store: Store) -> None:
    wanted = a_declaration(
        a_manifest("extract"), after("load", "extract"), groups=[Group("etl", 4)]
    )
    found = plan(store, wanted)
    assert [one.external_id for one in found.created] == ["extract", "load"]
    assert [(one.name, one.new) for one in found.groups] == [("etl", True)]
    apply(store, wanted)
    assert plan(store, wanted) == Plan("warehouse", unchanged=2)


def test_a_change_is_told_with_the_work_it_meets(store: Store) -> None:
    declare(store, "extract", "load")
    ran(store, "extract")
    started(store, "extract")
    for _ in range(2):
        queue(store, "extract", source=Source.TRIGGER)
    queue(store, "load")
    changed = a_manifest("extract", schedule=every(minutes=5))
    found = plan(store, a_declaration(changed, a_manifest("load")))
    runs = FieldChange("runs", "every 1 hour", "every 5 minutes")
    assert found.changed == (Change("extract", (runs,), queued=2, running=1),)
    assert (found.unchanged, found.removed) == (1, ())


def test_what_is_removed_is_told_with_its_work(store: Store) -> None:
    declare(store, "extract", "load")
    dispatched(store, "extract")
    queue(store, "extract")
    found = plan(store, a_declaration(a_manifest("load")))
    assert found.removed == (Change("extract", queued=1, running=1),)


def test_entries_that_have_ended_are_no_work(store: Store) -> None:
    ids = declare(store, "extract", "load")
    queue(store, "extract")
    with store.writing() as tx:
        work_queue.cancel_queued(tx, [ids["extract"]], "not today")
    ran(store, "extract")
    found = plan(store, a_declaration(a_manifest("load")))
    assert found.removed == (Change("extract"),)


def test_more_than_half_is_kept_back(store: Store) -> None:
    declare(store, "extract", "load", "report")
    found = plan(store, a_declaration(a_manifest("load")))
    assert [one.external_id for one in found.kept_back] == ["extract", "report"]
    assert found.removed == ()


def test_operators_values_are_listed_as_kept(store: Store) -> None:
    groups = [Group("etl", 4, 10)]
    declare(store, "extract", "load", groups=groups)
    change_manifest(store, "load", enabled=False)
    change_group(store, "etl", max_active_jobs=1, enabled=False)
    wanted = a_declaration(a_manifest("extract"), a_manifest("load"), groups=groups)
    found = plan(store, wanted)
    assert not found.has_changes
    assert found.kept == (
        Kept("group etl", "max active jobs", "1", "4"),
        Kept("group etl", "enabled", "no", "yes"),
        Kept("load", "enabled", "no", "yes"),
    )


def test_a_group_is_changed_where_the_code_moved(store: Store) -> None:
    declare(store, "extract", groups=[Group("etl", 4, 10)])
    change_group(store, "etl", max_active_jobs=1)
    found = plan(store, a_declaration(a_manifest("extract"), groups=[Group("etl", 8, 10)]))
    cap = FieldChange("max active jobs", "4", "8", operators="1")
    assert found.groups == (GroupChange("etl", (cap,)),)


def test_parents_are_compared_with_the_edges_there_are(store: Store) -> None:
    declare(store, "extract", "transform", after("load", "extract"))
    items = (a_manifest("extract"), a_manifest("transform"))
    found = plan(store, a_declaration(*items, after("load", "transform")))
    assert found.changed == (Change("load", (FieldChange("after", "extract", "transform"),)),)


def test_an_edge_may_be_turned_round(store: Store) -> None:
    declare(store, "extract", after("load", "extract"))
    found = plan(store, a_declaration(after("extract", "load"), a_manifest("load")))
    assert [one.external_id for one in found.changed] == ["extract", "load"]


def test_a_parent_that_its_owner_removed_is_missed_until_it_is_back(store: Store) -> None:
    invoice = a_declaration(a_manifest("invoice"), application="billing")
    mine = a_declaration(after("mail", "invoice"))
    apply(store, invoice)
    apply(store, mine)
    with store.writing() as tx:
        removal.remove(tx, [manifest_ids(store)["invoice"]])
    with pytest.raises(ParentNotFound):
        plan(store, mine)
    apply(store, invoice, go_back=True)
    apply(store, mine, go_back=True)
    assert plan(store, mine) == Plan("warehouse", unchanged=1)


def test_a_declaration_that_was_replaced_is_told(store: Store) -> None:
    old, new = (
        a_declaration(a_manifest("extract")),
        a_declaration(a_manifest("extract", priority=3)),
    )
    apply(store, old)
    assert not plan(store, old).outdated
    apply(store, new)
    assert plan(store, old).outdated
    assert not plan(store, new).outdated


REFUSED = [
    (a_declaration(a_manifest("invoice", priority=3)), OwnedByAnother),
    (a_declaration(a_manifest("invoice")), OwnedByAnother),
    (a_declaration(after("load", "nowhere")), ParentNotFound),
    (a_declaration(a_manifest("report"), after("load", "extract")), ParentNotFound),
    (
        a_declaration(after("a", "b", group=Group("x")), after("b", "a", group=Group("y"))),
        CircularDependencyError,
    ),
    (
        a_declaration(after("extract", "pay"), a_manifest("report")),
        CircularDependencyError,
    ),
]


@pytest.mark.parametrize(("wanted", "error"), REFUSED)
def test_it_refuses_what_applying_refuses(
    store: Store, wanted: Declaration, error: type[HeadwayError]
) -> None:
    declare(store, "extract", "report")
    foreign = [a_manifest("invoice"), after("pay", "extract", group=Group("bank"))]
    apply(store, a_declaration(*foreign, application="billing"))
    with pytest.raises(error) as planned:
        plan(store, wanted)
    with pytest.raises(error) as applied:
        apply(store, wanted)
    assert str(planned.value) == str(applied.value)


def test_many_manifests_are_planned_at_once(store: Store) -> None:
    many = [a_manifest(f"extract-{number}") for number in range(2500)]
    apply(store, a_declaration(*many))
    found = plan(store, a_declaration(*many[:2000], a_manifest("new")))
    assert (len(found.created), len(found.removed), found.unchanged) == (1, 500, 2000)
