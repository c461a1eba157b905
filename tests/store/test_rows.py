"""Many rows in one statement come out as they went in, whatever stands in them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.domain.work_queue import NewEntry, Source
from headway.store import work_queue
from headway.store.engine import Store
from headway.store.tables import work_queue as entries
from tests.store.factories import NOON, declare, rows_of

WICKED = ["", "NULL", "{}", '{"a","b"}', "a,b", 'say "hi"', "\\", '\\"', " ", "\t\n\r", "%s", "🚀"]
texts = st.sampled_from(WICKED) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0")
)
moments = st.none() | st.datetimes(
    min_value=datetime(1971, 1, 1),
    max_value=datetime(2200, 1, 1),
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=-9, minutes=-30))]),
)
new_entries = st.builds(
    NewEntry,
    workflow=texts,
    source=st.just(Source.AD_HOC),
    input=texts,
    input_type=texts,
    priority=st.integers(0, 31),
    manifest_id=st.none(),
    group_id=st.none() | st.integers(1, 2**62),
    scheduled_at=moments,
    scheduled_for=moments,
    attempts=st.integers(0, 9),
    max_attempts=st.integers(1, 9),
    parents_seen=st.none() | texts,
)
COLUMNS = (
    "workflow",
    "input",
    "input_type",
    "priority",
    "group_id",
    "scheduled_at",
    "scheduled_for",
    "attempts",
    "max_attempts",
    "parents_seen",
    "source",
)


def enqueued(store: Store, some: list[NewEntry]) -> list[dict[str, Any]]:
    with store.writing() as tx:
        tx.connection.execute(entries.delete())
        work_queue.enqueue(tx, some)
    return rows_of(store, entries)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(new_entries, min_size=1, max_size=5))
def test_what_is_written_together_comes_out_as_it_went_in(
    store: Store, some: list[NewEntry]
) -> None:
    found = enqueued(store, some)
    for name in COLUMNS:
        assert [row[name] for row in found] == [getattr(one, name) for one in some]
    assert {(row["status"], row["created_at"]) for row in found} == {("queued", NOON)}


SECOND = timedelta(seconds=1)


@pytest.mark.parametrize("alone", [True, False])
def test_only_what_is_queued_for_later_is_delayed(store: Store, alone: bool) -> None:
    moments = (None, NOON - SECOND, NOON, NOON + SECOND)
    some = [NewEntry("extract", Source.AD_HOC, "null", scheduled_at=one) for one in moments]
    batches = [[one] for one in some] if alone else [some]
    found = [row["delayed"] for batch in batches for row in enqueued(store, batch)]
    assert found == [False, False, False, True]


def test_many_are_queued_like_one_but_for_their_inputs(store: Store) -> None:
    like = NewEntry(
        "extract",
        Source.AD_HOC,
        "null",
        input_type="Day",
        priority=4,
        scheduled_at=NOON + SECOND,
        scheduled_for=NOON,
        attempts=1,
        max_attempts=3,
    )
    [one] = enqueued(store, [like])
    with store.writing() as tx:
        tx.connection.execute(entries.delete())
        work_queue.enqueue_like(tx, like, ["[1]", "[2]"])
    found = rows_of(store, entries)
    assert [row | {"id": one["id"], "input": "null"} for row in found] == [one, one]
    assert [row["input"] for row in found] == ["[1]", "[2]"]


def test_a_moment_without_a_time_zone_is_refused(store: Store) -> None:
    naive = NewEntry("extract", Source.AD_HOC, "null", scheduled_for=datetime(2030, 1, 1))
    with pytest.raises(Exception, match="has no time zone"):
        enqueued(store, [naive])


def test_what_the_database_refuses_costs_no_other_its_entry(store: Store) -> None:
    ids = declare(store, *(f"m-{number}" for number in range(5)))
    some = [
        NewEntry("work", Source.SCHEDULE, "null", manifest_id=key, priority=99 * (place in (0, 3)))
        for place, key in enumerate(ids.values())
    ]
    with store.writing() as tx:
        queued, refused = work_queue.enqueue_each(tx, some)
        assert work_queue.enqueue_each(tx, []) == ([], {})
    found = {row["id"]: row["manifest_id"] for row in rows_of(store, entries)}
    assert found.keys() == set(queued)
    assert sorted(found.values()) == [ids["m-1"], ids["m-2"], ids["m-4"]]
    assert refused.keys() == {ids["m-0"], ids["m-3"]}
    assert all("priority" in reason for reason in refused.values())
