"""The outbox and its relay: what is dispatched is told, told again, and never lost on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from headway.dispatcher.cycle import DispatchResult, JobDispatcher
from headway.domain.execution import ExecutionState, FailureCode
from headway.domain.work_queue import NewEntry, Source
from headway.relay import LONGEST_PAUSE, Relay, Relayed
from headway.servers.local import LocalServer
from headway.store import absent_servers, deliveries, leases, outbox
from headway.store.servers import EXECUTOR, ServerProcess
from headway.store.tables import outbox as outbox_table
from headway.store.tables import work_queue
from tests.builders import Scene
from tests.store.factories import rows_of

PENDING, HANDED_BACK = ExecutionState.PENDING, ExecutionState.HANDED_BACK
MANY = 250


class Broker:
    """A server that notes what it is told, as long as it is there."""

    def __init__(self) -> None:
        self.told: list[int] = []
        self.asked = 0
        self.away_after: int | None = None

    def publish(self, execution_id: int) -> None:
        if self.away_after is not None and len(self.told) >= self.away_after:
            raise ConnectionError("no broker")
        self.told.append(execution_id)

    def reach(self) -> None:
        self.asked += 1
        if self.away_after is not None:
            raise ConnectionError("still no broker")


class Post:
    """A scene whose work goes to a broker through the outbox."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.broker = Broker()
        scene.configure(max_active_jobs=None, max_queued_jobs_per_cycle=None)
        scene.app.task_servers.add("broker", self.broker, default=True)
        self.relay = self.new_relay()

    def new_relay(self) -> Relay:
        app, clock = self.scene.app, self.scene.clock
        return Relay(
            self.scene.store,
            app.registry,
            app.task_servers,
            app.observer,
            clock=lambda: clock.now.timestamp(),
            settings=app.settings,
        )

    def enqueue(self, count: int = 1) -> None:
        self.scene.enqueue(*[NewEntry("work", Source.AD_HOC, "null")] * count)

    def dispatch(self) -> DispatchResult:
        app = self.scene.app
        dispatcher = JobDispatcher(
            self.scene.store,
            app.settings,
            app.observer,
            LocalServer(lambda: None),
            to_own_workers=True,
            task_servers=app.task_servers,
        )
        return dispatcher.run_once()

    def send(self, count: int = 1) -> tuple[int, ...]:
        self.enqueue(count)
        return self.dispatch().dispatched

    def publish(self, **after: float) -> Relayed:
        self.scene.clock.advance(**after)
        return self.relay.run_once()

    def claim(self, execution_id: int) -> None:
        with self.scene.store.writing() as tx:
            assert deliveries.claim_delivered(tx, "me", execution_id, ["work"])

    def states(self) -> set[ExecutionState]:
        return {one.state for one in self.scene.history.executions.all()}


@pytest.fixture
def post(database_url: str) -> Iterator[Post]:
    with Scene(database_url) as scene:
        yield Post(scene)


def test_what_is_dispatched_is_written_into_the_outbox_and_told_by_the_relay(post: Post) -> None:
    sent = post.send(3)
    assert post.broker.told == [], "the dispatcher tells nobody"
    assert [row["execution_id"] for row in rows_of(post.scene.store, outbox_table)] == list(sent)

    assert post.publish().published == 3
    assert post.broker.told == list(sent)
    assert post.publish().published == 0


def test_more_than_one_batch_is_told_in_one_pass(post: Post) -> None:
    sent = post.send(MANY)
    assert post.publish().published == MANY
    assert post.broker.told == list(sent)


def test_a_dispatch_that_is_rolled_back_leaves_nothing_to_tell(post: Post) -> None:
    post.enqueue()

    class Lost(Exception):
        pass

    with pytest.raises(Lost), post.scene.store.writing() as tx:
        outbox.put(tx, {7: "broker"})
        raise Lost
    assert rows_of(post.scene.store, outbox_table) == []


@pytest.mark.story(31)
def test_what_nobody_claims_is_told_again_after_a_minute_and_then_ever_later(post: Post) -> None:
    [sent] = post.send()
    post.publish()

    assert post.publish(seconds=59).published == 0
    assert post.publish(seconds=1).published == 1
    assert post.publish(seconds=119).published == 0
    assert post.publish(seconds=1).published == 1
    assert post.publish(seconds=239).published == 0
    assert post.publish(seconds=1).published == 1
    assert post.broker.told == [sent] * 4
    assert len(post.scene.events.named("relay.unclaimed", task_server="broker", count=1)) == 3


def test_what_was_claimed_is_told_nobody_again_and_forgotten(post: Post) -> None:
    [sent] = post.send()
    post.publish()
    post.claim(sent)

    assert post.publish(seconds=60).published == 0
    assert rows_of(post.scene.store, outbox_table) == []


def test_a_relay_that_dies_with_what_it_took_costs_seconds(post: Post) -> None:
    [sent] = post.send()
    with post.scene.store.writing() as tx:
        assert len(outbox.take(tx, "broker", ["work"], 100)) == 1

    assert post.publish().published == 0, "it may be about to tell it"
    assert post.publish(seconds=outbox.HELD_FOR.total_seconds()).published == 1
    assert post.broker.told == [sent]


def test_what_could_not_be_told_again_is_told_as_soon_as_its_server_is_back(post: Post) -> None:
    [sent] = post.send()
    post.publish()
    post.broker.away_after = 1
    assert post.publish(minutes=1).published == 0
    post.broker.away_after = None

    assert post.publish(seconds=LONGEST_PAUSE).published == 1
    assert post.broker.told == [sent, sent]


def test_two_relays_tell_each_execution_once(post: Post) -> None:
    sent = post.send(MANY)
    relays = [post.relay, post.new_relay()]
    for relay in relays:
        relay.run_once()
    assert post.broker.told == list(sent)


def test_another_applications_server_of_the_same_name_is_told_nothing_of_ours(post: Post) -> None:
    post.send()
    with post.scene.store.writing() as tx:
        assert outbox.take(tx, "broker", ["theirs"], 100) == []


@pytest.mark.story(32)
def test_while_a_server_is_away_entries_wait_in_the_queue_uncharged(post: Post) -> None:
    post.broker.away_after = 2
    post.send(5)

    result = post.publish()

    assert (result.published, result.recalled) == (2, 3)
    assert len(post.scene.history.queue.all()) == 3
    waiting = rows_of(post.scene.store, work_queue)
    assert [(row["dispatch_attempts"], row["attempts"], row["delayed"]) for row in waiting] == [
        (0, 0, False)
    ] * 3
    assert post.states() == {PENDING, HANDED_BACK}
    assert post.dispatch().dispatched == (), "nothing more is sent there"
    [told] = post.scene.events.named("task_server.away")
    assert told.fields == {"task_server": "broker", "error": "ConnectionError: no broker"}


@pytest.mark.story(32)
def test_it_is_asked_with_pauses_of_seconds_and_gets_everything_when_it_is_back(post: Post) -> None:
    post.broker.away_after = 0
    post.send(3)
    post.publish()
    for _ in range(60):
        post.publish(seconds=1)
    asked = post.broker.asked
    assert 60 / LONGEST_PAUSE - 1 <= asked <= 60 / LONGEST_PAUSE + 5
    assert post.broker.told == []

    post.broker.away_after = None
    assert post.publish(seconds=LONGEST_PAUSE).back
    sent = post.dispatch().dispatched
    post.publish()

    assert post.broker.told == list(sent) and len(sent) == 3
    assert post.scene.events.named("task_server.back") != []
    assert len(post.scene.events.named("task_server.away")) == 1
    assert post.scene.history.queue.all() == []


def test_a_server_that_is_away_holds_up_no_other(post: Post) -> None:
    other = Broker()
    post.scene.app.workflow("more")(lambda: None)
    post.scene.app.task_servers.add("other", other, workflows=["more"])
    post.broker.away_after = 0
    post.send()
    post.publish()
    post.scene.configure(max_active_jobs=1)
    post.enqueue(20)
    post.scene.enqueue(NewEntry("more", Source.AD_HOC, "null"))

    sent = post.dispatch().dispatched
    post.publish()

    assert other.told == list(sent) and len(sent) == 1


def published(post: Post, roles: list[str], workflows: list[str]) -> None:
    with post.scene.store.writing() as tx:
        leases.leave(tx, "theirs")
        row = ServerProcess("theirs", "host", 1, roles, workflows, 0)
        leases.register(tx, row, timedelta(minutes=2))


def test_waiting_in_the_broker_is_not_stale_while_somebody_there_is_alive(post: Post) -> None:
    [sent] = post.send()
    for _ in range(30):
        published(post, [EXECUTOR], ["work"])
        post.publish(minutes=1)
        assert post.scene.manage().reaped_pending == 0
    assert post.scene.execution(sent).state is PENDING

    post.scene.clock.advance(minutes=3)
    assert post.scene.manage().reaped_pending == 1
    failure = post.scene.execution(sent).failure
    assert failure is not None and failure.type == FailureCode.STALE_PENDING


def test_an_executor_that_does_not_know_the_workflow_keeps_nothing_from_going_stale(
    post: Post,
) -> None:
    post.send()
    post.publish()
    post.scene.clock.advance(minutes=21)
    published(post, [EXECUTOR], ["another"])
    assert post.scene.manage().reaped_pending == 1


def test_what_was_never_told_is_not_stale(post: Post) -> None:
    post.send()
    post.scene.clock.advance(hours=5)
    assert post.scene.manage().reaped_pending == 0
    assert post.publish().published == 1


class Picky(Broker):
    """A server that answers, and takes only what it likes."""

    def __init__(self, likes: Callable[[int], bool]) -> None:
        super().__init__()
        self.likes = likes
        self.refusals = 0

    def publish(self, execution_id: int) -> None:
        if not self.likes(execution_id):
            self.refusals += 1
            raise ValueError("no exchange 'jobs'")
        super().publish(execution_id)


@pytest.mark.parametrize("many", [1, 12])
def test_a_server_that_answers_but_takes_nothing_fails_what_it_is_sent(
    post: Post, many: int
) -> None:
    post.scene.app.task_servers.relayed["broker"] = Picky(lambda sent: False)  # type: ignore[index]
    post.enqueue(many)

    for _ in range(200):
        if not post.scene.history.queue.all():
            break
        post.dispatch()
        post.publish(minutes=2)

    failed = post.scene.ended(ExecutionState.FAILED)
    assert len(failed) == many and post.scene.history.queue.all() == []
    [failure] = {one.failure for one in failed}
    assert failure is not None and failure.type == FailureCode.REFUSED
    assert failure.message == (
        "task server 'broker' answers, but does not take it: ValueError: no exchange 'jobs'"
    )


def test_one_execution_that_a_server_does_not_take_keeps_no_other_from_it(post: Post) -> None:
    [refused] = post.send()
    others = post.send(5)
    picky = Picky(lambda sent: sent != refused)
    post.scene.app.task_servers.relayed["broker"] = picky  # type: ignore[index]

    assert post.publish().published == 5

    assert picky.told == list(others)
    [waiting] = rows_of(post.scene.store, work_queue)
    assert (waiting["dispatch_attempts"], waiting["delayed"]) == (1, True)
    [left] = post.scene.ended(HANDED_BACK)
    assert left.id == refused and left.failure is not None
    assert left.failure.message == (
        "task server 'broker' answers, but does not take it: ValueError: no exchange 'jobs'"
    )
    [told] = post.scene.events.named("dispatch.refused")
    assert told.fields == {
        "task_server": "broker",
        "count": 1,
        "error": "ValueError: no exchange 'jobs'",
    }
    [back] = post.scene.events.named("execution.handed_back")
    assert back.fields == left.told()
    assert not post.scene.events.named("task_server.away")


def test_what_is_refused_goes_back_as_often_and_as_long_as_the_settings_say(
    database_url: str,
) -> None:
    with Scene(database_url) as scene:
        post = Post(scene)
        scene.configure(
            max_active_jobs=None,
            max_dispatch_attempts=2,
            unknown_workflow_timeout="15s",
            default_retry_delay="3h",
            max_retry_delay="9h",
        )
        scene.app.task_servers.relayed["broker"] = Picky(lambda sent: False)  # type: ignore[index]
        post.relay = post.new_relay()
        scene.enqueue(NewEntry("work", Source.AD_HOC, "null", max_attempts=2))
        waits: list[timedelta] = []
        for _ in range(4):
            post.dispatch()
            post.publish()
            [entry] = rows_of(scene.store, work_queue)
            waits.append(entry["scheduled_at"] - scene.clock.now)
            scene.clock.now = entry["scheduled_at"]
            if entry["attempts"]:
                break

    assert waits == [timedelta(seconds=5), timedelta(seconds=10), timedelta(hours=3)]


def test_what_a_relay_has_to_do_next_says_when(post: Post) -> None:
    assert post.publish() == Relayed()
    post.send()
    assert post.publish() == Relayed(published=1, due_in=1.0)
    assert post.publish() == Relayed(due_in=60.0)
    assert post.publish(seconds=20) == Relayed(due_in=40.0)
    post.broker.away_after = 0
    assert post.publish(seconds=40) == Relayed(due_in=0.5)
    assert post.publish() == Relayed(due_in=0.5)
    assert post.publish(seconds=0.5) == Relayed(due_in=1.0)
    post.broker.away_after = None
    assert post.publish(seconds=1) == Relayed(published=1, back=True, due_in=1.0)


def why_away(post: Post) -> dict[str, str]:
    with post.scene.store.reading() as tx:
        return {name: one.reason for name, one in absent_servers.absent_servers(tx).items()}


def test_why_a_server_is_away_is_on_record_until_it_is_back(post: Post) -> None:
    post.broker.away_after = 0
    post.send()
    post.publish()
    assert why_away(post) == {"broker": "ConnectionError: no broker"}
    assert post.scene.app.task_servers.away == {"broker"}

    post.broker.away_after = None
    post.publish(seconds=1)
    assert why_away(post) == {}
    assert post.scene.app.task_servers.away == frozenset()
    told = [one.fields for one in post.scene.events.named("task_server.back")]
    assert told == [{"task_server": "broker"}]


def test_a_connection_that_was_lost_meanwhile_is_opened_again_and_charged_to_nobody(
    post: Post,
) -> None:
    [sent] = post.send()
    stale = Picky(lambda sent: stale.asked > 0)
    post.scene.app.task_servers.relayed["broker"] = stale  # type: ignore[index]
    stale.away_after = None

    assert post.publish().published == 1

    assert (stale.told, stale.refusals, stale.asked) == ([sent], 1, 1)
