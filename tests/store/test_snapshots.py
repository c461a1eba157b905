"""All statements of one look see the same moment, whatever others commit in between."""

from __future__ import annotations

from headway.store.engine import Store
from headway.store.gauges import read_gauges
from tests.store.factories import queue_ad_hoc


def test_a_snapshot_does_not_see_what_is_committed_after_its_first_statement(
    store: Store, second: Store
) -> None:
    queue_ad_hoc(store)
    with store.picturing() as tx:
        before = read_gauges(tx, 10).ready
        queue_ad_hoc(second)
        assert (before, read_gauges(tx, 10).ready) == (1, 1)
    with store.picturing() as tx:
        assert read_gauges(tx, 10).ready == 2
