"""What the living server processes can do together."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from headway.domain.routing import Routing, Share
from headway.store import executions, leases, outcomes, servers
from headway.store.engine import Store
from headway.store.servers import ServerProcess, Workers
from headway.store.tables import execution
from tests.store.factories import COMPLETED, ME, NOON, Clock, declare, dispatched, finish, started

LEASE = timedelta(seconds=15)
WORKER = ServerProcess("b", "host", 7, ["worker"], ["load", "train"], 4)


def register(store: Store, *processes: ServerProcess) -> None:
    with store.writing() as tx:
        for one in processes:
            leases.register(tx, one, LEASE)


def living(store: Store) -> Workers:
    with store.reading() as tx:
        return servers.living_workers(tx)


def names(*workflows: str) -> frozenset[str]:
    return frozenset(workflows)


def test_a_process_says_its_roles_and_workflows_in_order() -> None:
    said = replace(WORKER, roles=["worker", "manager"], workflows=["train", "load"]).said()
    assert (said["roles"], said["workflows"]) == ('["manager", "worker"]', '["load", "train"]')
    assert Routing.from_json(said["routes"]) == Routing()


def test_workers_add_up(store: Store) -> None:
    other = replace(WORKER, id="a", workflows=["report"], slots=2)
    web = replace(WORKER, id="c", roles=["web"], workflows=["hidden"], slots=0)
    register(store, WORKER, other, web)
    found = living(store)
    assert (found.slots, found.workflows) == (6, names("load", "train", "report"))
    assert found.in_no_group == names("load", "train", "report")
    assert (found.routed, found.delivered, found.for_themselves) == (names(), names(), names())
    assert (found.everybody, found.ids) == (False, ("a", "b", "c"))


def test_whose_lease_is_over_counts_no_more(store: Store, clock: Clock) -> None:
    register(store, replace(WORKER, roles=["worker", "manager"]))
    clock.advance(seconds=14)
    assert living(store).slots == 4
    with store.reading() as tx:
        assert servers.living_managers(tx) == ["b"]
        assert servers.living_roles(tx) == {"worker", "manager"}
    clock.advance(seconds=1)
    assert living(store) == Workers(0, names())
    with store.reading() as tx:
        assert servers.living_managers(tx) == []
        assert servers.living_roles(tx) == names()


def test_managers_are_told_in_order_and_roles_together(store: Store) -> None:
    register(
        store,
        replace(WORKER, id="z", roles=["manager"]),
        replace(WORKER, id="m", roles=["worker"]),
        replace(WORKER, id="a", roles=["manager", "web"]),
    )
    with store.reading() as tx:
        assert servers.living_managers(tx) == ["a", "z"]
        assert servers.living_roles(tx) == {"manager", "web", "worker"}


def test_what_goes_elsewhere_is_not_for_the_workers(store: Store) -> None:
    routing = Routing(by_workflow={"train": "gpu"}, by_group={"nightly": "batch"})
    dispatcher = replace(WORKER, roles=["worker", "dispatcher"], routing=routing)
    executor = replace(WORKER, id="e", roles=["executor"], workflows=["train"], slots=0)
    register(store, dispatcher, executor)
    found = living(store)
    assert found.workflows == names("load")
    assert found.shares == (Share(names("load"), names("nightly")),)
    assert found.in_no_group == names("load")
    assert (found.routed, found.delivered) == (names("load", "train"), names("train"))
    assert (found.slots, found.everybody) == (4, False)
    assert found.for_themselves == names("b")


@pytest.mark.parametrize(
    ("others", "for_themselves", "everybody"),
    [
        ([], ["b"], True),
        ([{}], ["a0", "b"], False),
        ([{"workflows": ["load"]}], [], False),
        ([{"roles": ["worker"]}], [], False),
        ([{"routing": Routing(default="celery")}], [], False),
        ([{"roles": ["manager"], "slots": 0}], ["b"], False),
    ],
)
def test_workers_that_are_alike_and_dispatch_are_there_for_themselves(
    store: Store, others: list[dict[str, object]], for_themselves: list[str], everybody: bool
) -> None:
    first = replace(WORKER, roles=["worker", "dispatcher"])
    more = [
        replace(first, id=f"a{number}", **changes)  # type: ignore[arg-type]
        for number, changes in enumerate(others)
    ]
    register(store, first, *more)
    found = living(store)
    assert (found.for_themselves, found.everybody) == (names(*for_themselves), everybody)


def test_a_process_alone_is_what_its_row_would_say(store: Store) -> None:
    process = replace(WORKER, roles=["worker", "dispatcher", "manager"])
    register(store, process)
    assert servers.workers_of(process) == living(store)


def test_what_was_started_since_is_found_running_or_ended(store: Store, clock: Clock) -> None:
    def claimed_since(moment: timedelta) -> bool:
        with store.reading() as tx:
            return servers.claimed_since(tx, NOON + moment)

    declare(store, "extract", "load")
    minute = timedelta(minutes=1)
    assert not claimed_since(timedelta())
    dispatched(store, "load")
    assert not claimed_since(timedelta()), "nobody has started it"
    clock.advance(minutes=1)
    one = started(store)
    assert claimed_since(minute)
    assert not claimed_since(minute + timedelta(seconds=1))
    clock.advance(minutes=1)
    finish(store, one)
    assert claimed_since(minute)
    assert not claimed_since(2 * minute), "it ended then, and had been started before"


def test_what_another_task_server_has_started_is_not_the_workers(store: Store) -> None:
    declare(store, "extract")
    one = started(store)
    with store.writing() as tx:
        tx.connection.execute(execution.update().values(task_server="gpu"))
        assert not servers.claimed_since(tx, NOON)
        outcomes.finish(tx, ME, {one.id: COMPLETED})
        assert not servers.claimed_since(tx, NOON)
        assert executions.find(tx, one.id) is not None
