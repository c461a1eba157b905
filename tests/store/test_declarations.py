"""Applying declarations: upserts by name that write only what changed, all or nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.exc import DatabaseError

from headway.domain.declaration import Declaration
from headway.domain.manifest import Group
from headway.domain.schedule import Never, cron, every
from headway.domain.work_queue import Source
from headway.errors import OwnedByAnother
from headway.store import declarations, removal
from headway.store.bulk import CHUNK
from headway.store.declarations import Applied
from headway.store.engine import Store
from headway.store.tables import (
    declaration,
    dependency,
    manifest,
    manifest_group,
    manifest_state,
    work_queue,
)
from tests.store.factories import (
    NOON,
    Clock,
    a_declaration,
    a_manifest,
    apply,
    change_group,
    change_manifest,
    declare,
    everything,
    manifest_ids,
    queue,
    ran,
    rows_of,
    state_of,
    wakes_of,
)


def test_a_new_declaration_creates_its_manifests_with_their_state_and_groups(store: Store) -> None:
    extract = a_manifest("extract", priority=3, max_retries=5, timeout=timedelta(minutes=2))
    load = a_manifest("load", schedule=cron("0 9 * * *", "Europe/Berlin"), group=Group("loads"))
    assert apply(store, a_declaration(extract, load)) == Applied(created=2)
    first, second = rows_of(store, manifest)
    assert (first["external_id"], first["interval_seconds"]) == ("extract", 3600)
    assert (first["priority"], first["max_retries"], first["timeout_seconds"]) == (3, 5, 120)
    assert (first["owner"], first["created_at"], first["updated_at"]) == ("warehouse", NOON, NOON)
    assert (second["cron_expression"], second["time_zone"]) == ("0 9 * * *", "Europe/Berlin")
    assert [group["name"] for group in rows_of(store, manifest_group)] == ["etl", "loads"]
    assert [state["wake_at"] for state in rows_of(store, manifest_state)] == [NOON, NOON]


def test_the_same_declaration_twice_writes_nothing(store: Store, clock: Clock) -> None:
    wanted = a_declaration(a_manifest("extract"), a_manifest("load"), groups=[Group("etl", 4)])
    apply(store, wanted)
    before = everything(store)
    clock.advance(hours=1)
    assert apply(store, wanted) == Applied(unchanged=2)
    assert everything(store) == before


def test_what_comes_back_after_another_declaration_is_unchanged_row_by_row(
    store: Store, clock: Clock
) -> None:
    apply(store, a_declaration(a_manifest("extract")))
    [before] = rows_of(store, manifest)
    clock.advance(hours=1)
    assert apply(store, a_declaration(a_manifest("extract"), a_manifest("load"))) == Applied(
        created=1, unchanged=1
    )
    assert rows_of(store, manifest)[0] == before


def test_a_changed_manifest_changes_only_its_own_row(store: Store, clock: Clock) -> None:
    ids = declare(store, "extract", "load")
    kept = rows_of(store, manifest)[1]
    ran(store, "extract")
    state = state_of(store)
    wakes_of(store)
    later = clock.advance(hours=1)
    changed = a_manifest("extract", schedule=every(minutes=5), input="[1]")
    assert apply(store, a_declaration(changed, a_manifest("load"))) == Applied(
        changed=1, unchanged=1
    )
    extract, load = rows_of(store, manifest)
    assert load == kept
    assert (extract["id"], extract["created_at"]) == (ids["extract"], NOON)
    assert (extract["interval_seconds"], extract["input"]) == (300, "[1]")
    assert extract["updated_at"] == later
    assert state_of(store) == state
    assert wakes_of(store) == [(ids["extract"], "children"), (ids["extract"], "self")]


def test_a_schedule_of_another_kind_clears_the_fields_of_the_last(store: Store) -> None:
    declare(store, "extract")
    declare(store, a_manifest("extract", schedule=cron("*/5 * * * *")))
    [row] = rows_of(store, manifest)
    assert (row["schedule_kind"], row["interval_seconds"]) == ("cron", None)


def test_a_declared_group_is_changed_by_its_declaration_and_wakes_its_manifests(
    store: Store, clock: Clock
) -> None:
    declare(store, "extract", groups=[Group("etl", 4, 10)])
    later = clock.advance(hours=1)
    declare(store, "extract", groups=[Group("etl", 2, 20)])
    [group] = rows_of(store, manifest_group)
    assert (group["max_active_jobs"], group["priority"]) == (2, 20)
    assert (group["created_at"], group["updated_at"]) == (NOON, later)
    assert wakes_of(store) == [(group["id"], "group")]


def test_a_group_merely_named_keeps_what_it_has(store: Store, clock: Clock) -> None:
    declare(store, "extract", groups=[Group("etl", 4, 10)])
    before = rows_of(store, manifest_group)
    clock.advance(hours=1)
    declare(store, a_manifest("extract", group=Group("etl", 9, 9)), "load")
    assert rows_of(store, manifest_group) == before


def test_a_group_nobody_declared_starts_with_the_priority_of_its_manifest(store: Store) -> None:
    declare(store, a_manifest("extract", group=Group("etl", priority=7)))
    [group] = rows_of(store, manifest_group)
    assert (group["priority"], group["declared"]) == (7, None)


def test_an_operators_change_to_a_group_survives_an_unchanged_declaration_of_it(
    store: Store, clock: Clock
) -> None:
    declare(store, "extract", groups=[Group("etl", 4, 10)])
    change_group(store, "etl", max_active_jobs=1, enabled=False)
    clock.advance(hours=1)
    declare(store, "extract", "load", groups=[Group("etl", 4, 10)])
    [group] = rows_of(store, manifest_group)
    assert (group["max_active_jobs"], group["enabled"]) == (1, False)
    assert group["updated_at"] == NOON


def test_an_operators_change_to_a_manifest_survives_an_unchanged_declaration_of_it(
    store: Store,
) -> None:
    declare(store, "extract")
    change_manifest(store, "extract", enabled=False)
    declare(store, "extract", "load")
    assert [row["enabled"] for row in rows_of(store, manifest)] == [False, True]


def test_a_declaration_without_anything_is_applied_like_any_other(store: Store) -> None:
    assert apply(store, a_declaration()) == Applied()
    declare(store, "extract")
    nothing = apply(store, a_declaration(), allow_removal=True, go_back=True)
    assert nothing == Applied(removed=1)


def test_half_of_what_is_owned_is_removed_and_more_than_half_stays(store: Store) -> None:
    declare(store, "extract", "load", "report")
    assert apply(store, a_declaration(a_manifest("load"))) == Applied(unchanged=1, kept_back=2)
    assert set(manifest_ids(store)) == {"extract", "load", "report"}
    declare(store, "extract", "load", "report", "mail")
    two = a_declaration(a_manifest("load"), a_manifest("mail"))
    assert apply(store, two) == Applied(unchanged=2, removed=2)
    assert set(manifest_ids(store)) == {"load", "mail"}


def test_removing_is_soft_and_cancels_what_is_queued(store: Store, clock: Clock) -> None:
    declare(store, "extract", "load")
    for source in (Source.SCHEDULE, Source.TRIGGER, Source.TRIGGER):
        queue(store, "extract", source=source)
    queue(store, "load")
    later = clock.advance(hours=1)
    assert apply(store, a_declaration(a_manifest("load"))).removed == 1
    extract, load = rows_of(store, manifest)
    assert (extract["removed_at"], load["removed_at"]) == (later, None)
    *cancelled, kept = rows_of(store, work_queue)
    assert kept["status"] == "queued"
    for entry in cancelled:
        assert (entry["status"], entry["ended_at"]) == ("cancelled", later)
        assert entry["ended_reason"] == "the manifest is no longer declared"


def test_allowing_reaches_what_the_same_declaration_kept_back(store: Store) -> None:
    declare(store, "extract", "load", "report")
    wanted = a_declaration(a_manifest("load"))
    assert apply(store, wanted).kept_back == 2
    assert apply(store, wanted).kept_back == 2, "and says so until somebody decides"
    assert apply(store, wanted, allow_removal=True) == Applied(unchanged=1, removed=2)
    assert set(manifest_ids(store)) == {"load"}


def test_removing_leaves_other_applications_alone(store: Store) -> None:
    declare(store, "extract")
    other = a_declaration(a_manifest("invoice"), application="billing")
    assert apply(store, other, allow_removal=True) == Applied(created=1)
    assert set(manifest_ids(store)) == {"extract", "invoice"}


def test_what_was_removed_and_is_declared_again_is_a_new_manifest(store: Store) -> None:
    old = declare(store, "extract")
    apply(store, a_declaration(), allow_removal=True)
    new = declare(store, "extract")
    assert new["extract"] > old["extract"]
    assert len(rows_of(store, manifest)) == 2


@pytest.fixture
def broken() -> Declaration:
    """One whose last manifest no database takes, after a whole chunk that is fine."""
    items = [a_manifest(f"extract-{number}") for number in range(CHUNK)]
    bad = a_manifest("bad", priority=99)
    return a_declaration(*items, bad, groups=[Group("etl", 7)])


def test_a_failure_in_the_middle_leaves_nothing(store: Store, broken: Declaration) -> None:
    declare(store, "load", groups=[Group("etl", 4)])
    before = everything(store)
    with pytest.raises(DatabaseError):
        apply(store, broken, allow_removal=True)
    assert everything(store) == before


def test_every_applied_declaration_is_remembered(store: Store, clock: Clock) -> None:
    one, two = a_declaration(a_manifest("extract")), a_declaration(a_manifest("load"))
    for wanted in (one, two, one):
        apply(store, wanted, go_back=True)
    kept = rows_of(store, declaration)
    alike = {"application": "warehouse", "manifests": 1, "applied_at": NOON}
    assert kept == [
        alike | {"id": row["id"], "digest": wanted.digest()}
        for row, wanted in zip(kept, (one, two, one), strict=True)
    ]


def test_an_old_process_that_restarts_does_not_undo_the_new_declaration(store: Store) -> None:
    old, new = (
        a_declaration(a_manifest("extract")),
        a_declaration(a_manifest("extract", priority=3)),
    )
    apply(store, old)
    apply(store, new)
    before = everything(store)
    assert apply(store, old) == Applied(outdated=True)
    assert apply(store, old, allow_removal=True) == Applied(outdated=True)
    assert everything(store) == before
    assert apply(store, new) == Applied(unchanged=1), "the current one is there already"


def test_somebody_may_go_back_and_then_that_is_the_current_one(store: Store) -> None:
    old, new = (
        a_declaration(a_manifest("extract")),
        a_declaration(a_manifest("extract", priority=3)),
    )
    apply(store, old)
    apply(store, new)
    assert apply(store, old, go_back=True) == Applied(changed=1)
    assert apply(store, old) == Applied(unchanged=1)
    assert apply(store, new) == Applied(outdated=True)


def test_going_back_to_the_current_declaration_makes_good_what_is_missing(store: Store) -> None:
    wanted = a_declaration(a_manifest("extract"), a_manifest("load"))
    apply(store, wanted)
    with store.writing() as tx:
        removal.remove(tx, [manifest_ids(store)["load"]], "somebody did")
    assert apply(store, wanted) == Applied(unchanged=2), "a start leaves that to people"
    assert apply(store, wanted, go_back=True) == Applied(created=1, unchanged=1)
    linked = a_declaration(
        a_manifest("extract"), a_manifest("load", schedule=Never(), parents=("extract",))
    )
    apply(store, linked)
    edges = len(rows_of(store, dependency))
    with store.writing() as tx:
        tx.connection.execute(dependency.delete())
    apply(store, linked)
    assert rows_of(store, dependency) == []
    apply(store, linked, go_back=True)
    assert len(rows_of(store, dependency)) == edges == 1
    apply(store, wanted, go_back=True)
    remembered = len(rows_of(store, declaration))
    assert apply(store, wanted, go_back=True) == Applied(unchanged=2)
    assert len(rows_of(store, declaration)) == remembered == 3


def test_another_application_makes_no_declaration_outdated(store: Store) -> None:
    mine = a_declaration(a_manifest("extract"))
    apply(store, mine)
    apply(store, a_declaration(a_manifest("invoice"), application="billing"))
    assert apply(store, mine) == Applied(unchanged=1)


@pytest.mark.parametrize("owner", ["billing", "billing:runtime"])
def test_what_another_application_owns_is_refused_even_if_it_is_declared_alike(
    store: Store, owner: str
) -> None:
    apply(store, a_declaration(a_manifest("invoice"), application=owner))
    before = everything(store)
    for application in ("warehouse", "warehouse:runtime"):
        wanted = a_declaration(a_manifest("extract"), a_manifest("invoice"))
        with pytest.raises(OwnedByAnother, match="'invoice': belongs to the application 'billing'"):
            apply(store, replace(wanted, application=application))
    assert everything(store) == before


def test_what_another_application_took_over_is_missed_by_the_current_declaration(
    store: Store,
) -> None:
    mine = a_declaration(a_manifest("extract"), a_manifest("load"))
    apply(store, mine)
    with store.writing() as tx:
        removal.remove(tx, [manifest_ids(store)["load"]], "somebody did")
    apply(store, a_declaration(a_manifest("load"), application="billing"))
    for again in (mine, replace(mine, manifests=mine.manifests[::-1])):
        with pytest.raises(OwnedByAnother, match="'load': belongs to the application 'billing'"):
            apply(store, again)
    with pytest.raises(OwnedByAnother, match="'load': belongs to the application 'billing'"):
        settled(store, mine)


def settled(store: Store, wanted: Declaration) -> Applied | None:
    before = everything(store)
    with store.reading() as tx:
        answer = declarations.settled(tx, wanted)
    assert everything(store) == before
    return answer


def test_whether_there_is_anything_to_apply_is_known_without_writing(store: Store) -> None:
    old = a_declaration(a_manifest("extract"), a_manifest("load"))
    new = a_declaration(a_manifest("extract", priority=3), a_manifest("load"))
    assert settled(store, old) is None
    apply(store, old)
    assert settled(store, old) == Applied(unchanged=2)
    assert settled(store, new) is None
    apply(store, new)
    assert settled(store, old) == Applied(outdated=True)
    assert settled(store, new) == Applied(unchanged=2)


def test_what_was_kept_back_is_left_to_do(store: Store) -> None:
    declare(store, "extract", "load", "report")
    wanted = a_declaration(a_manifest("load"))
    apply(store, wanted)
    assert settled(store, wanted) is None
    apply(store, wanted, allow_removal=True)
    assert settled(store, wanted) == Applied(unchanged=1)


def test_how_far_it_has_come_is_told_after_every_chunk(store: Store) -> None:
    told: list[tuple[int, int]] = []
    wanted = a_declaration(*(a_manifest(f"extract-{number}") for number in range(3)))
    apply(store, wanted, progress=lambda done, total: told.append((done, total)))
    assert told == [(3, 3)]


def test_what_was_made_at_run_time_may_be_declared_alike(store: Store) -> None:
    apply(store, a_declaration(a_manifest("extract"), application="warehouse:runtime"))
    assert apply(store, a_declaration(a_manifest("extract"))) == Applied(unchanged=1)


def test_giving_everything_a_new_name_counts_as_removing_everything(store: Store) -> None:
    declare(store, "extract", "load")
    renamed = a_declaration(a_manifest("extract-2"), a_manifest("load-2"))
    assert apply(store, renamed) == Applied(created=2, kept_back=2)
    assert apply(store, renamed, allow_removal=True) == Applied(unchanged=2, removed=2)


def test_two_applications_do_not_mistake_each_others_declaration_for_their_own(
    store: Store,
) -> None:
    apply(store, a_declaration(a_manifest("extract")))
    apply(store, a_declaration(a_manifest("invoice"), application="billing"))
    assert apply(store, a_declaration(a_manifest("extract"))) == Applied(unchanged=1)


def test_more_manifests_than_fit_one_chunk_are_all_declared(store: Store) -> None:
    items = [a_manifest(f"extract-{number}") for number in range(CHUNK + 5)]
    assert apply(store, a_declaration(*items)).created == len(items)
    changed = [a_manifest(f"extract-{number}", priority=1) for number in range(len(items))]
    assert apply(store, a_declaration(*changed)).changed == len(items)
    with store.reading() as tx:
        states = tx.connection.execute(select(manifest_state.c.manifest_id)).all()
    assert len(states) == len(items)
