"""What waits for the manifests of one application, with its input."""

from __future__ import annotations

from headway.domain.work_queue import QueuedInput, Source
from headway.store import queued_inputs, removal, work_queue
from headway.store.engine import Store
from tests.store.factories import (
    a_declaration,
    a_manifest,
    apply,
    declare,
    manifest_ids,
    queue,
    queue_ad_hoc,
)


def test_what_waits_for_ones_own_manifests_comes_oldest_first(store: Store) -> None:
    declare(store, a_manifest("load", workflow="copy"), "extract", "cancelled", "removed")
    apply(store, a_declaration(a_manifest("theirs"), application="billing"))
    first = queue(store, "load", input="[2]")
    second = queue(store, "extract", source=Source.TRIGGER, input="[1]")
    for name in ("cancelled", "removed", "theirs"):
        queue(store, name)
    queue_ad_hoc(store)
    ids = manifest_ids(store)
    with store.writing() as tx:
        work_queue.cancel_queued(tx, [ids["cancelled"]], "not today")
        removal.remove(tx, [ids["removed"]])
        assert queued_inputs.of_application(tx, "warehouse") == [
            QueuedInput(first, "load", "copy", "[2]"),
            QueuedInput(second, "extract", "work", "[1]"),
        ]
        assert queued_inputs.of_application(tx, "nobody") == []
