"""Stories in which two do the same thing in the same moment."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from sqlalchemy import delete, text

from headway import Item, every
from headway.domain.execution import Execution, ExecutionState
from headway.domain.work_queue import NewEntry, Source
from headway.manager.cycle import ManagerResult
from headway.runner.recording import Recording
from headway.store import executions, leases, outcomes, work_queue
from headway.store.engine import Store
from headway.store.locks import Lock
from headway.store.servers import ServerProcess
from headway.store.tables import server
from tests.builders import OWNER, PATIENCE, Scene, names
from tests.store.factories import at_once
from tests.stories.servers import COMPLETED, LEASE

MANAGERS = 8


def elsewhere(scene: Scene) -> Store:
    """Another server's way to the same database."""
    return Store(scene.url, clock=scene.clock, durable=False)


@pytest.fixture
def others(scene: Scene) -> Iterator[list[Store]]:
    with ExitStack() as stack:
        stores = [elsewhere(scene) for _ in range(MANAGERS)]
        for store in stores:
            stack.callback(store.close)
        yield stores


@pytest.mark.story(2)
@pytest.mark.long
def test_a_thousand_races_of_reaper_against_finisher_have_one_winner_each(
    scene: Scene, others: list[Store]
) -> None:
    """Each run is of a server that is buried in the very moment in which the run completes."""
    races = 1000 if scene.store.on_postgresql else 300
    runs = start_one_each(scene, [f"worker-{number}" for number in range(races)])
    together, believed, reaped = threading.Barrier(2), set[int](), set[int]()

    def finish_each() -> None:
        for one in runs:
            record = Recording(others[0], str(one.owner), scene.app.observer)
            together.wait(PATIENCE)
            believed.update(record({one.id: COMPLETED}))

    def bury_each() -> None:
        for one in runs:
            together.wait(PATIENCE)
            with others[1].briefly() as tx:
                tx.connection.execute(delete(server).where(server.c.id == one.owner))
            with others[1].briefly() as tx:
                reaped.update(lost.id for lost in outcomes.end_orphans(tx, 3)[0])

    at_once(finish_each, bury_each)

    assert not believed & reaped, "never two winners"
    assert believed | reaped == {one.id for one in runs}, "never none"
    assert {one.id for one in scene.ended(ExecutionState.COMPLETED)} == believed
    assert {one.id for one in scene.ended(ExecutionState.FAILED)} == reaped
    assert len(scene.history.queue.all()) == len(reaped), "the loser's success starts nothing twice"
    told = {one.fields["execution_id"] for one in scene.events.named("execution.completed")}
    assert told == believed, "nobody was told of a success that was refused"


def start_one_each(scene: Scene, owners: list[str]) -> list[Execution]:
    """A run without a manifest for each of these servers, who all are alive."""
    with scene.store.writing() as tx:
        entries = [NewEntry("work", Source.AD_HOC, "null") for _ in owners]
        work_queue.dispatch(tx, work_queue.enqueue(tx, entries))
        started = []
        for owner in owners:
            leases.register(tx, ServerProcess(owner, "host", 1, ["worker"], ["work"], 1), LEASE)
            started += executions.claim_pending(tx, owner, 1, ["work"])
    return started


@pytest.mark.full
@pytest.mark.story(16)
@pytest.mark.parametrize("analyzed", [True, False], ids=["statistics", "no statistics"])
@pytest.mark.parametrize(
    ("count", "limit"),
    [
        pytest.param(1000, 7, id="a thousand"),
        pytest.param(
            100_000,
            50,
            id="a hundred thousand",
            marks=[pytest.mark.long, pytest.mark.timeout(600)],
        ),
    ],
)
def test_no_claim_takes_more_than_it_asked_for(
    scene: Scene, others: list[Store], analyzed: bool, count: int, limit: int
) -> None:
    with scene.store.writing() as tx:
        for _ in range(0, count, 1000):
            entries = [NewEntry("work", Source.AD_HOC, "null") for _ in range(1000)]
            work_queue.dispatch(tx, work_queue.enqueue(tx, entries))
        if analyzed:
            tx.connection.execute(text("ANALYZE"))

    def claim_all(store: Store, owner: str) -> list[list[int]]:
        batches: list[list[int]] = []
        while True:
            with store.writing() as tx:
                batch = executions.claim_pending(tx, owner, limit, ["work"])
            if not batch:
                return batches
            batches.append([one.id for one in batch])

    claims = [partial(claim_all, store, f"worker-{n}") for n, store in enumerate(others[:4])]
    batches = [batch for mine in at_once(*claims) for batch in mine]

    assert max(map(len, batches)) <= limit
    assert Counter(key for batch in batches for key in batch).most_common(1)[0][1] == 1
    assert sum(map(len, batches)) == count


@pytest.mark.story(21)
@pytest.mark.long
@pytest.mark.timeout(600)
def test_parents_that_end_together_start_their_child_once(
    scene: Scene, others: list[Store]
) -> None:
    """Fan-ins of two to eight parents, whose ends are let go at one moment."""
    children, rounds = (70, 15) if scene.store.on_postgresql else (35, 1)
    families = declare_fan_ins(scene, children)
    for number in range(1, rounds + 1):
        queue_and_dispatch(scene)
        running = {str(one.external_id): one for one in scene.claim(10_000)}
        assert running.keys() >= {parent for parents in families.values() for parent in parents}
        for parents in families.values():
            ends = [
                partial(finish, store, running[parent])
                for store, parent in zip(others, parents, strict=False)
            ]
            assert all(at_once(*ends))
        queue_and_dispatch(scene)
        claimed = scene.claim(10_000)
        with scene.store.writing() as tx:
            outcomes.finish(tx, OWNER, {one.id: COMPLETED for one in claimed})
        ended = Counter(names(scene.ended(ExecutionState.COMPLETED)))
        assert {child: ended[child] for child in families} == dict.fromkeys(families, number)
        scene.clock.advance(hours=1)


def queue_and_dispatch(scene: Scene) -> None:
    """Everything that is due, in as many cycles as that takes."""
    while scene.manage().queued:
        pass
    while scene.dispatch().dispatched:
        pass


def declare_fan_ins(scene: Scene, count: int) -> dict[str, list[str]]:
    """Children and their parents, two to eight of each."""
    scene.configure(max_active_jobs=None, max_queued_jobs_per_cycle=None)
    families: dict[str, list[str]] = {}
    for number in range(count):
        parents = [f"parent-{number}-{place}" for place in range(2 + number % 7)]
        for parent in parents:
            scene.app.schedule("work", parent, None, every(hours=1), group="parents")
        families[f"child-{number}"] = parents
    chain = scene.app.schedule("work", "first", None, every(days=365), group="parents")
    items = [Item(key.removeprefix("child-"), None, depends_on=of) for key, of in families.items()]
    chain.include_many("work", "child", items, group="children")
    scene.apply()
    return families


def finish(store: Store, run: Execution) -> bool:
    with store.writing() as tx:
        return bool(outcomes.finish(tx, OWNER, {run.id: COMPLETED}))


@pytest.mark.story(26)
def test_of_eight_that_ask_to_lead_exactly_one_does(postgres_url: str) -> None:
    """Nobody lets go before all have asked."""
    all_asked = threading.Barrier(MANAGERS)
    with Scene(postgres_url) as scene, ExitStack() as stack:
        stores = [elsewhere(scene) for _ in range(MANAGERS)]
        for store in stores:
            stack.callback(store.close)

        def lead(store: Store) -> bool:
            with store.leading(Lock.MANAGE, seconds=int(PATIENCE)) as tx:
                all_asked.wait(PATIENCE)
                return tx is not None

        for _ in range(5):
            leading = at_once(*(partial(lead, store) for store in stores))
            assert sum(leading) == 1


@pytest.mark.story(39)
def test_eight_managers_on_one_expired_deadline_have_one_effect(
    scene: Scene, others: list[Store]
) -> None:
    scene.app.schedule("work", "load", None, every(hours=1), max_retries=1)
    scene.apply()
    scene.manage()
    scene.dispatch()
    [late] = scene.claim()
    scene.clock.advance(hours=24)

    results: list[ManagerResult] = at_once(*(partial(scene.manage, store) for store in others))

    assert sum(one.reaped_in_progress for one in results) == 1
    assert sum(one.dead_lettered for one in results) == 1
    [failed] = scene.ended(ExecutionState.FAILED)
    [letter] = scene.history.dead_letters.awaiting()
    assert failed.id == late.id
    assert (letter.external_id, letter.failures) == ("load", 1)


@pytest.mark.story(49)
@pytest.mark.parametrize("again", ["trigger", "rerun"])
def test_who_starts_again_what_still_runs_gets_it_afterwards(scene: Scene, again: str) -> None:
    scene.app.schedule("work", "load", None, every(hours=1))
    scene.apply()
    scene.manage()
    scene.dispatch()
    [live] = scene.claim()

    asked: dict[str, Any] = {"source": Source(again)}
    manifest_id, group_id = scene.ids_of("load")
    scene.enqueue(
        NewEntry("work", input="null", manifest_id=manifest_id, group_id=group_id, **asked)
    )
    assert scene.dispatch().dispatched == (), "never two at a time"
    assert [one.id for one in scene.history.executions.all()] == [live.id]
    assert finish(scene.store, live)
    assert len(scene.dispatch().dispatched) == 1
