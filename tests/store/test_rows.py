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
from tests.store.factories import rows_of

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
    "parents_seen",
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


def test_a_moment_without_a_time_zone_is_refused(store: Store) -> None:
    naive = NewEntry("extract", Source.AD_HOC, "null", scheduled_for=datetime(2030, 1, 1))
    with pytest.raises(Exception, match="has no time zone"):
        enqueued(store, [naive])
