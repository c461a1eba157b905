"""However many manifests of one group are waiting, those of another are looked at in time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headway.domain.manifest import Group
from headway.store import manifests, wakes
from headway.store.engine import Store
from headway.store.manifests import LOOKED_AT
from tests.store.factories import NOON, a_manifest, declare

LIMIT = 4
CROWD = LIMIT * LOOKED_AT * 2 + 20


@pytest.mark.parametrize("waited", [timedelta(0), timedelta(hours=2)])
def test_a_crowd_larger_than_what_is_looked_at_hides_no_other_group(
    store: Store, waited: timedelta
) -> None:
    crowd = [a_manifest(f"cache-{number}", group=Group("cache")) for number in range(CROWD)]
    few = [a_manifest(f"delta-{number}", group=Group("delta")) for number in range(2)]
    ids = declare(store, *crowd, *few)
    with store.writing() as tx:
        early = NOON - timedelta(hours=1)
        wakes.set_wake_times(tx, {ids[one.external_id]: early for one in crowd})
        wakes.set_wake_times(tx, {ids[one.external_id]: NOON - waited for one in few})

        candidates = manifests.due_candidates(tx, LIMIT)

    assert {ids["delta-0"], ids["delta-1"]} < set(candidates)
    assert len(candidates) == LIMIT


def test_who_is_among_the_longest_waiting_and_the_latest_is_there_once(store: Store) -> None:
    ids = declare(store, "extract", "load")
    with store.writing() as tx:
        assert manifests.due_candidates(tx, LIMIT) == sorted(ids.values())
