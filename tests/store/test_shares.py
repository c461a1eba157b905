"""Shares of work asked for in SQL are what they are in Python, on both databases."""

from __future__ import annotations

import random

import pytest

from headway.domain.manifest import Group
from headway.domain.routing import Routing, Share
from headway.domain.work_queue import NewEntry, Source
from headway.store import deliveries, executions, work_queue
from headway.store.deliveries import Waiting
from headway.store.engine import Store
from tests.store.factories import ME, a_manifest, declare, entry_for

WORKFLOWS = ["extract", "load", "train"]
GROUPS = ["daily", "nightly", "weekly"]
SERVERS = ["local", "gpu", "batch"]


def some_routing(chance: random.Random) -> Routing:
    def routes(names: list[str]) -> dict[str, str]:
        return {name: chance.choice(SERVERS) for name in names if chance.random() < 0.5}

    return Routing(chance.choice(SERVERS), routes(WORKFLOWS), routes(GROUPS))


def fill(store: Store) -> dict[int, tuple[str, str | None]]:
    """An entry of every workflow in every group, and without any; by what was queued."""
    manifests = [
        a_manifest(f"{workflow}-{group}", workflow=workflow, group=Group(group))
        for workflow in WORKFLOWS
        for group in GROUPS
    ]
    declare(store, *manifests)
    kinds = [(one.workflow, one.group.name, one.external_id) for one in manifests]
    with store.writing() as tx:
        entries = [entry_for(tx, name, workflow=workflow) for workflow, _, name in kinds]
        entries += [NewEntry(workflow, Source.AD_HOC, "null") for workflow in WORKFLOWS]
        ids = work_queue.enqueue(tx, entries)
    groups = [*((workflow, group) for workflow, group, _ in kinds), *((w, None) for w in WORKFLOWS)]
    return dict(zip(ids, groups, strict=True))


@pytest.mark.parametrize("seed", range(12))
def test_what_is_taken_is_what_the_shares_hold(store: Store, seed: int) -> None:
    chance = random.Random(seed)
    queued, routing = fill(store), some_routing(chance)
    known = chance.sample(WORKFLOWS, chance.randrange(4))
    for shares in (routing.local(known), routing.elsewhere(known)):
        with store.reading() as tx:
            found = {one.id for one in work_queue.dispatchable(tx, None, 100, taken=shares)}
        held = {
            key
            for key, (workflow, group) in queued.items()
            if any(share.holds(workflow, group) for share in shares)
        }
        assert found == held


def test_only_what_is_taken_comes_of_what_is_excluded_from_the_global_limit(store: Store) -> None:
    queued = fill(store)
    taken = [Share(frozenset({"load", "train"}), frozenset({"daily"}), only=True)]

    with store.reading() as tx:
        found = work_queue.dispatchable(tx, 1, 2, excluded=["train"], taken=taken)

    assert {queued[one.id] for one in found} <= {("load", "daily"), ("train", "daily")}
    assert ("train", "daily") in {queued[one.id] for one in found}


def test_each_entry_is_written_with_its_server_in_one_statement(store: Store) -> None:
    queued = sorted(fill(store))
    elsewhere = {queued[0]: "gpu", queued[1]: "batch", queued[4]: "gpu"}

    with store.writing() as tx:
        dispatched, refused, _ = work_queue.dispatch_each(tx, queued, elsewhere)
        found = {key: executions.find(tx, dispatched[key]) for key in queued}
        own = executions.claim_pending(tx, ME, 100, WORKFLOWS)

    sent = {key: one.task_server for key, one in found.items() if one is not None}
    assert refused == {}
    assert sent == {key: elsewhere.get(key, "local") for key in queued}
    assert len(own) == len(queued) - 3


def test_fifty_deliveries_on_one_connection(store: Store) -> None:
    with store.writing() as tx:
        for _ in range(50):
            [entry] = work_queue.enqueue(tx, [NewEntry("train", Source.AD_HOC, "null")])
            [waiting] = work_queue.dispatch(tx, [entry], {entry: "gpu"}).values()
            assert executions.count_active(tx, []).local == 0
            assert deliveries.find_waiting(tx, waiting) == Waiting("train", 0)
            assert deliveries.claim_delivered(tx, ME, waiting, ["load"]) is None
            claimed = deliveries.claim_delivered(tx, ME, waiting, ["train"], {"train": "fit"})
            assert claimed is not None and claimed.running_step == "fit"
            assert deliveries.claim_delivered(tx, "other", waiting, ["train"]) is None
            assert deliveries.find_waiting(tx, waiting) is None
            tx.connection.exec_driver_sql("DELETE FROM headway_execution")
